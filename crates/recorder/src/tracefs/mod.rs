//! The kernel's trace events, out of private instances of its tracefs.
//!
//! 1. [`Instance`] is a set of events that no other tracing sees, and that goes with its owner.
//! 2. [`Rings`] takes the pages of its buffers out as they are, one buffer for each processor ([`ring`]).
//! 3. [`Field`] finds the parts of an event by the layout that the kernel tells.

mod field;
mod instance;
mod ring;
mod rings;

pub use field::{Field, field, fields, id};
pub use instance::Instance;
pub use rings::Rings;
