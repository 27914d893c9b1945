//! A simulated drive in virtual time: multi-queue flash, 3D XPoint or a hard disk, with faults.
//!
//! A [`SimDevice`] implements [`flashgrain_device::Device`]. It is a discrete-event simulation: every request
//! passes the host queue, command fetch and link, and then the medium: for flash a write cache, a translation
//! layer with a cached mapping table, queues per chip, channels, dies and planes with real timings, and
//! garbage collection (MQSSD paper §3.1-3.2, hidden-parameters paper §2). Bytes that are written are stored
//! and read back. Everything repeats exactly from a seed: the digest of the event log is the same in every
//! run.
//!
//! It knows no experiment and no store, and no time but its own.

pub mod config;
mod content;
mod disk;
mod drive;
mod engine;
mod error;
pub mod fault;
mod medium;
pub mod mqsim;
mod nand;
pub mod preset;
mod random;
mod statistics;
mod xpoint;

pub use config::SimConfig;
pub use drive::{FaultId, Image, SimDevice, UnsettledWrite};
pub use error::Error;
pub use random::random_drive;
pub use statistics::{Counters, StageTotals, Statistics};

/// The programs of the guide, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/faults.md")]
mod guides {}
