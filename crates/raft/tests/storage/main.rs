//! Log stores and state machines, without a cluster.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod crash;
mod flushes;
mod groups;
mod log;
mod reopened;
mod snapshots;
mod suite;
mod types;
