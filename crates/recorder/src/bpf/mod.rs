//! Small programs for the kernel (BPF), which look at what an event points to.
//!
//! 1. [`Assembler`] makes the instructions of a program.
//! 2. [`Map`] is memory that programs share with this process.
//! 3. [`Attached`] runs a program at an event, until it is dropped.
//! 4. [`Types`] tells where the kernel has the fields of its structures.

mod assembler;
mod system;
mod types;

pub use assembler::{Assembler, Register, Width, helper};
pub use system::{Attached, Map};
pub use types::Types;
