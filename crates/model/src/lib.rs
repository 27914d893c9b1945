//! The DAM, PDAM, affine and MQSSD cost models of a drive: predicting, fitting, comparing.
//!
//! Pure mathematics: no files, no clock, no threads. Costs are in seconds; setup costs are per random access, transfer
//! costs per byte in code and per page where a paper's table is quoted. All costs are *device time*: what a run of
//! n random accesses and N bytes by k streams together takes is `n * setup(k) + N * transfer(k)` (MQSSD paper §4.2; its equations
//! 3, 7 and 8 print a sum of throughputs where its own definition adds times).

mod contract;
mod estimate;
mod sample;
mod workload;

pub use contract::*;
pub use estimate::Estimate;
pub use sample::Sample;
pub use workload::{Access, Workload};
