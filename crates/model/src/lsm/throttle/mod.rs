//! Write throttling: how an LSM tree holds writers back while level 0 grows (3D XPoint paper §IV-A, §V-A).
//!
//! 1. [`throttled_rate`] is the paper's formula for the rate that remains once every write waits.
//! 2. [`DelayedWrites`] is the write controller itself: [`Controller::Waiting`] as the paper prints it for
//!    RocksDB 5.17, [`Controller::Crediting`] as newer versions are, which delay only what exceeds their
//!    rate.
//! 3. A [`Throttle`] decides from the files in level 0 what the controller is asked: [`OneStage`] as RocksDB
//!    does, [`TwoStage`] as the paper proposes, [`Graded`] with a rate that falls file by file.
//! 4. [`simulate_level_zero`] runs a writer, flushes and compactions of level 0 against a throttle and counts
//!    what arrives in each second.
//!
//! The *3D XPoint paper* is "From Flash to 3D XPoint: Performance Bottlenecks and Potentials in RocksDB with
//! Storage Evolution".

mod controller;
mod load;
mod policy;
mod rate;

pub use controller::{Controller, DelayedWrites};
pub use load::{LevelZeroLoad, LevelZeroOutcome, Phase, simulate_level_zero};
pub use policy::{Graded, LevelZeroLimits, OneStage, Throttle, TwoStage};
pub use rate::throttled_rate;
