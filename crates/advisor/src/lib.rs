//! A workload and a drive's profile in; ranked storage-engine designs and ready-to-use settings out.
//!
//! 1. A [`Workload`] comes from a file, from a preset, or from an engine's counters ([`observe`]).
//! 2. A [`Drive`] has the costs of a profile's drive, with intervals. Undetermined values widen the intervals
//!    and are noted; they are no error.
//! 3. [`rank`](rank::rank) compares designs by the prices of `flashgrain_cost::ranking`.
//! 4. [`engine::advise`] writes the settings of an engine that people run, each with its reason.
//!
//! This crate does no I/O: texts come in and go out.

mod advice;
mod drive;
pub mod engine;
mod error;
pub mod observe;
pub mod rank;
pub mod workload;

pub use advice::Advice;
pub use drive::Drive;
pub use error::Error;
pub use flashgrain_cost::Interval;
pub use flashgrain_cost::ranking::ProcessorTimes;
pub use workload::Workload;
