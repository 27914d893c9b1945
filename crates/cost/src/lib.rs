//! The I/O that data structures make, and its cost on a drive.
//!
//! Pure arithmetic: no files, no clock, no random numbers, no linear algebra. A [`Workload`] describes I/O,
//! an [`IoModel`] says how much device time it takes. [`dictionary`] says which I/O the operations of B-trees
//! and Bε-trees make, [`lsm`] says the same of LSM-trees, and [`dictionary::price`] puts it on a drive.
//! [`ranking`] compares all of them for a program's workload. [`budget`] compares the memory and the drives
//! that the same money buys.
//!
//! ```
//! use flashgrain_cost::AffineCosts;
//! use flashgrain_cost::dictionary::{BTree, Design, Operation, Records, Situation, powers_of_two, price};
//!
//! let drive = AffineCosts { setup_seconds: 60e-6, transfer_seconds_per_byte: 0.5e-9 };
//! let records = Records { count: 1e8, key_bytes: 16.0, value_bytes: 100.0 };
//! let situation = Situation::new(records, 1e9, 1.0);
//! for node_bytes in powers_of_two(4096.0, 1_048_576.0) {
//!     let demand = BTree::new(node_bytes).demand(Operation::PointHit, &situation);
//!     let cost = price(&demand, &drive, &situation);
//!     println!("{node_bytes}: {:?} s", cost.map(|cost| cost.latency_seconds));
//! }
//! ```

mod affine_costs;
pub mod budget;
pub mod dictionary;
pub mod interference;
mod interval;
mod io_model;
pub mod lsm;
mod neighbours;
pub mod ranking;
#[cfg(test)]
mod test_support;
mod workload;

pub use affine_costs::AffineCosts;
pub use interval::{End, Interval};
pub use io_model::IoModel;
pub use workload::{Access, Workload, WorkloadKey};
