//! Virtual time: the queue of events.

mod events;
mod slab;

pub(crate) use events::{Event, Events, nanos_of_us, transfer_ns};
pub(crate) use slab::Slab;
