//! A learned profile as a simulated drive.
//!
//! It stands here because the profiler must not know its targets, nor the simulator the profiles.

mod drive;
mod facts;

pub use drive::{LearnedDrive, Overhead};
pub use facts::Facts;
