//! Drives: one that records its requests, and one that holds the state after a power cut.

mod choice;
mod cut;
mod disk;
mod failing;
mod recorder;
mod tape;
mod timeline;

pub use choice::{Choice, Choices, Tear};
pub use cut::random_cut;
pub use disk::Disk;
pub use failing::{FailPlan, Way};
pub use recorder::Recorder;
pub use tape::{Event, Tape, Write};
pub use timeline::{Moment, Timeline};

/// Writes of this size are never torn; offsets and lengths are multiples of it.
pub const SECTOR_BYTES: usize = 512;
