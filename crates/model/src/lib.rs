//! The DAM, PDAM, affine and MQSSD cost models of a drive: predicting, fitting, comparing.
//!
//! Pure mathematics: no files, no clock, no threads. Costs are in seconds; setup costs are per random access, transfer
//! costs per byte in code and per page where a paper's table is quoted. All costs are *device time*: what a run of
//! n random accesses and N bytes by k streams together takes is `n * setup(k) + N * transfer(k)` (MQSSD paper §4.2; its equations
//! 3, 7 and 8 print a sum of throughputs where its own definition adds times).

mod affine;
mod bootstrap;
mod compare;
mod dam;
mod error;
mod estimate;
mod fitting;
mod io_model;
mod mqssd;
mod observation;
mod pdam;
mod per_access;
mod regression;
mod sample;
mod samples_csv;
mod statistics;
mod workload;

pub use affine::Affine;
pub use bootstrap::bootstrap;
pub use compare::{ComparedPoint, Comparison, ComparisonRow, NoiseFloor, compare};
pub use dam::Dam;
pub use error::Error;
pub use estimate::Estimate;
pub use fitting::{FitOptions, Models, fit};
pub use io_model::{IoModel, ModelName, Parameter};
pub use mqssd::{CostCurve, CostPart, CurveQuality, Mqssd};
pub use pdam::Pdam;
pub use regression::{Line, Segmented, line_fit, segmented_fit};
pub use sample::Sample;
pub use samples_csv::{read_csv, write_csv};
pub use workload::{Access, Workload};
