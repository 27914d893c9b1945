//! The DAM, PDAM, affine and MQSSD cost models of a drive: predicting, fitting, comparing.
//!
//! Pure mathematics: no files, no clock, no threads. A [`Workload`] describes I/O for every model, a
//! [`Sample`] is the throughput that a trial of one reached; [`fit`] makes [`Models`] of samples, [`compare`]
//! judges them on workloads that they were not fitted to. Each model predicts through [`IoModel`]; each
//! fitted number is an [`Estimate`] with its bootstrap interval, or the reason why the samples do not
//! determine it. [`segmented_fit`] and [`line_fit`] are the regressions of PDAM and affine on their own.
//! [`dictionary`] prices what data structures do under any of the models; [`lsm`] is the LSM tree among them,
//! with simulations of its compactions.
//!
//! Costs are in seconds; setup costs are per random access, transfer costs per byte in code and per page
//! where a paper's table is quoted. All costs are *device time*: n random accesses and N bytes by k streams
//! together take `n * setup(k) + N * transfer(k)` (MQSSD paper §4.2; its equations 3, 7 and 8 print a sum of
//! throughputs where its own definition adds times).
//!
//! Every fit minimises the squared logarithm of predicted over measured, which is the relative error where
//! that is small: a drive's costs span three orders of magnitude. Reads and writes are fitted on their own,
//! repeats count with their median.
//!
//! # From measurements to a node-size curve
//!
//! Samples in CSV (`docs/samples-csv.md`), or the models of a profile, become what look-ups in a B-tree cost
//! over its node size; `examples/node_size.rs` is the whole program. Drives that were not measured are made
//! of plain numbers, such as [`Affine::from_costs`]; other designs and operations are in [`dictionary`].
//!
//! ```
//! use flashgrain_model::dictionary::{
//!     BTree, Operation, Records, Situation, best_node_size, node_size_curve, powers_of_two,
//! };
//! use flashgrain_model::{FitOptions, fit, read_csv};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = include_bytes!("../examples/node_size.csv").as_slice();
//! let models = fit(&read_csv(file)?, &FitOptions::default())?;
//! let records = Records { count: 1e8, key_bytes: 16.0, value_bytes: 100.0 };
//! let situation = Situation::new(records, 1e9, 1.0);
//! let sizes = powers_of_two(4096.0, 4_194_304.0);
//! let affine = models.affine.ok_or("the samples have one request size only")?;
//! let mix = [(0.95, Operation::PointHit), (0.05, Operation::Range { bytes: 1e6 })];
//! let curve = node_size_curve(&sizes, BTree::new, &mix, &situation, &affine);
//! let best = best_node_size(&curve).ok_or("no reads were measured")?;
//! println!("{} bytes: {} look-ups a second", best.node_bytes, best.cost.operations_per_second);
//! # // Range queries pull the best node above that of look-ups alone.
//! # assert!(best.node_bytes >= 65_536.0 && best.node_bytes <= 1_048_576.0, "{best:?}");
//! # Ok(())
//! # }
//! ```

mod affine;
mod bootstrap;
mod compare;
mod dam;
pub mod dictionary;
mod error;
mod estimate;
mod fitting;
mod io_model;
pub mod lsm;
mod mqssd;
mod observation;
mod pdam;
mod per_access;
mod regression;
mod sample;
mod samples_csv;
mod statistics;
mod workload;

pub use affine::{Affine, AffineCosts};
pub use bootstrap::bootstrap;
pub use compare::{ComparedPoint, Comparison, ComparisonRow, NoiseFloor, WithoutRow, compare};
pub use dam::Dam;
pub use error::Error;
pub use estimate::Estimate;
pub use fitting::{FitOptions, Models, fit};
pub use io_model::{IoModel, ModelName, Parameter};
pub use mqssd::{CostCurve, CostPart, CurveQuality, Mqssd, MqssdCosts, Regression};
pub use pdam::{Pdam, PdamCosts};
pub use regression::{Line, Segmented, line_fit, segmented_fit};
pub use sample::Sample;
pub use samples_csv::{read_csv, write_csv};
pub use workload::{Access, Workload};
