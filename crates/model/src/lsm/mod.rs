//! What log-structured merge trees cost, how they move their data, and when they hold writers back.
//!
//! - [`LsmTree`] is a [`Design`](crate::dictionary::Design): leveled, tiered, lazy leveled or single-level
//!   (MQSSD paper §5.2, Eq. 9 to 12), with constants where the paper has orders.
//! - [`simulation`] moves the files of a leveled tree, alone and by several threads. What it counts is in the
//!   formulas: files touched per compaction, threads that find something to do.
//! - [`SearchSpace`] and [`best_of`] find the fanout, file size, files of level 0 and compaction threads that
//!   a mix of operations wants under any cost model of a drive.
//! - [`throttle`] holds writers back while level 0 grows; [`LevelZeroCosts`] weighs its files' number against
//!   their size.
//! - [`MergeProcessor`] is the speed of threads that merge together.
//!
//! ```
//! use flashgrain_model::dictionary::{Design, Operation, Records, Situation, price};
//! use flashgrain_model::lsm::{Layout, LsmTree};
//! use flashgrain_model::{Affine, AffineCosts};
//!
//! let costs = AffineCosts { setup_seconds: 60e-6, transfer_seconds_per_byte: 0.5e-9 };
//! let drive = Affine::from_costs(4096.0, costs, costs);
//! let records = Records { count: 1e8, key_bytes: 16.0, value_bytes: 1000.0 };
//! let situation = Situation::new(records, 1e9, 1.0);
//! for fanout in [2.0, 4.0, 8.0, 16.0] {
//!     let tree = LsmTree { fanout, filter_bits_per_key: 10.0, ..LsmTree::new(Layout::Leveled) };
//!     let query = price(&tree.demand(Operation::PointHit, &situation), &drive, &situation);
//!     let writes = tree.demand(Operation::Insert, &situation).write_amplification();
//!     println!("F {fanout}: {:?} s, writes {writes:?} times", query.map(|cost| cost.latency_seconds));
//! }
//! ```
//!
//! Sizes are in bytes, times in seconds. *Level 0* holds flushed memtables, whose keys overlap; level 1 and
//! those below are as [`Layout`] says.

mod cache;
mod compaction;
mod filter;
mod layout;
mod level_zero;
mod merge_rate;
mod optimum;
mod runs;
mod scan;
pub mod simulation;
pub mod throttle;
mod touched;
mod tree;

pub use compaction::{CompactionWork, Step};
pub use filter::false_positive_rate;
pub use layout::Layout;
pub use level_zero::{LevelZeroChoice, LevelZeroCosts};
pub use merge_rate::{MergeProcessor, move_seconds_per_byte};
pub use optimum::{Optimum, SearchSpace, best_of};
pub use runs::Runs;
pub use touched::TouchedLine;
pub use tree::LsmTree;
