//! Records the requests of programs and drives, into traces of Flashgrain's own format.
//!
//! A recording goes through three phases:
//!
//! 1. [`Recording::begin`] opens the sources: `calls`, the system calls of a program, by the kernel's trace
//!    events or as `strace` prints them, and `blocks`, the requests of drives. Events of the kernel come out
//!    of private instances of its `tracefs`; small programs in the kernel (`bpf`) see what they point to. A
//!    source that cannot be had is an error, or a note if another one is left.
//! 2. [`Recording::run`] writes their requests into a file next to the trace, until the program has ended,
//!    the drive is gone, or the user wants an end. That file can be read at any time.
//! 3. At the end it compares the counts with those of the drives, looks up where the files are on them
//!    (`places`, `place`), writes the trace, and takes everything away that it has made in the system.
//!
//! Nothing that the sources say is trusted. This crate judges nothing.

mod blocks;
mod bpf;
mod calls;
mod drives;
mod error;
mod place;
mod places;
mod precedence;
mod program;
mod recording;
mod runner;
mod sink;
mod tracefs;

pub use calls::CallSource;
pub use error::Error;
pub use program::Program;
pub use recording::{Options, Recorded, Recording};
