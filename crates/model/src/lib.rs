//! The DAM, PDAM, affine and MQSSD cost models of a drive: predicting, fitting, comparing.
//!
//! Pure mathematics: no files, no clock, no threads. A [`Workload`] describes I/O for every model, a
//! [`Sample`] is the throughput that a trial of one reached; [`fit`] makes [`Models`] of samples, [`compare`]
//! judges them on workloads that they were not fitted to. Each model predicts through [`IoModel`]; each
//! fitted number is an [`Estimate`] with its bootstrap interval, or the reason why the samples do not
//! determine it. [`segmented_fit`] and [`line_fit`] are the regressions of PDAM and affine on their own.
//! [`Collection`] is the effect of garbage collection on the time of lasting writes, by the data that the
//! drive keeps. `flashgrain_cost` prices the operations of data structures under any of the models.
//!
//! Costs are in seconds; setup costs are per random access, transfer costs per byte in code and per page
//! where a paper's table is quoted. All costs are *device time*: n random accesses and N bytes by k streams
//! together take `n * setup(k) + N * transfer(k)` (MQSSD paper §4.2; its equations 3, 7 and 8 print a sum of
//! throughputs where its own definition adds times).
//!
//! Every fit minimises the squared logarithm of predicted over measured, which is the relative error where
//! that is small: a drive's costs span three orders of magnitude. Reads and writes are fitted on their own,
//! repeats count with their median.

mod affine;
mod bootstrap;
mod collection;
mod compare;
mod dam;
mod error;
mod estimate;
mod fitted_model;
mod fitting;
mod left_out;
mod mqssd;
mod observation;
mod one_thread;
mod pdam;
mod per_access;
mod regression;
mod sample;
mod samples_csv;
mod statistics;

pub use affine::Affine;
pub use bootstrap::bootstrap;
pub use collection::{Collection, FEWEST_VOLUMES, SteadyWrites};
pub use compare::{ComparedPoint, Comparison, ComparisonRow, NoiseFloor, WithoutRow, compare};
pub use dam::Dam;
pub use error::Error;
pub use estimate::Estimate;
pub use fitted_model::{FittedModel, ModelName, Parameter};
pub use fitting::{FitOptions, Models, fit};
pub use flashgrain_cost::{Access, AffineCosts, IoModel, Workload};
pub use mqssd::{CostCurve, CostPart, CurveQuality, Mqssd, MqssdCosts, Regression};
pub use one_thread::{CostsOf, OneThreadRow, one_thread};
pub use pdam::{Pdam, PdamCosts};
pub use regression::{Line, LinearSegmented, Segmented, line_fit, linear_segmented_fit, segmented_fit};
pub use sample::Sample;
pub use samples_csv::{read_csv, write_csv};
