//! Workers: each steps its tasks, its share of the store's upkeep and its I/O context (LeanStore's NVMe paper
//! §3.2, Figure 9).
//!
//! In real life every worker has a thread; [`Harness`] steps any number of them on one thread, over simulated
//! drives in virtual time: the same every time.

mod harness;
mod steps;
mod threads;

pub use harness::CpuCosts;
pub(crate) use harness::{Harness, spend};
pub(crate) use steps::Bounds;
pub(crate) use threads::Workers;
