//! A learned profile as a simulated drive.
//!
//! It stands here because the profiler must not know what it may be run against, nor the simulator what is
//! learned of it.

mod drive;
mod facts;

pub use drive::{LearnedDrive, Overhead};
pub use facts::Facts;
