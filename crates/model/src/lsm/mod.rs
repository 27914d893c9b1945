//! LSM trees.

mod merge_rate;
pub mod simulation;

pub use merge_rate::{MergeProcessor, move_seconds_per_byte};
