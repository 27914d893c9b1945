//! Workers: each steps its tasks, its share of the store's upkeep and its I/O context (LeanStore's NVMe paper
//! §3.2, Figure 9).
//!
//! A step of a worker:
//!
//! 1. Let ready tasks run, each until it waits; a share of them per class.
//! 2. Do the upkeep that was registered with the executor, if any task ran.
//! 3. Submit the tasks' requests, take in completions, and wake the tasks that wait for them.
//!
//! A worker without ready tasks sleeps until a completion, a timer or mail wakes it.
//!
//! Normally every worker has a thread; [`Harness`] steps any number of them on one thread, over simulated
//! drives in virtual time, deterministically.
//!
//! Synchronization: only the worker changes its tasks and its I/O context. Other threads leave jobs and
//! wake-ups in its mailbox.

mod harness;
mod steps;
mod threads;

pub use harness::CpuCosts;
pub(crate) use harness::{Harness, charge_compared, spend, spend_merged, spend_search};
pub(crate) use steps::Bounds;
pub(crate) use threads::Workers;
