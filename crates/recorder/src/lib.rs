//! Records the requests of programs and drives, into traces of Flashgrain's own format.
//!
//! A recording goes through three phases:
//!
//! 1. [`Recording::begin`] opens the sources: `calls`, the system calls of a program as `strace` prints
//!    them, and `blocks`, the requests of drives out of a private instance of the kernel's tracefs. A
//!    source that cannot be had is an error, or a note if another one is left.
//! 2. [`Recording::run`] writes their requests into a file next to the trace, until the program has ended,
//!    the drive is gone, or the user wants an end. That file can be read at any time.
//! 3. At the end it compares the counts with those of the drives, looks up where the files are on them
//!    (`places`, `place`), writes the trace, and takes everything away that it has made in the system.
//!
//! Nothing that the sources say is trusted. This crate judges nothing.

mod blocks;
mod calls;
mod drives;
mod error;
mod place;
mod places;
mod program;
mod recording;
mod runner;
mod sink;

pub use error::Error;
pub use program::Program;
pub use recording::{Options, Recorded, Recording};
