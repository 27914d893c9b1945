//! The costs of log-structured merge trees, and their movement of data.
//!
//! - [`LsmTree`] is a [`Design`](crate::dictionary::Design): leveled, tiered, lazy leveled or single-level
//!   (MQSSD paper §5.2, Eq. 9 to 12), with constants where the paper has orders.
//! - [`CompactionWork`] is the data that its compactions move, and how many of them can run at a time. It is
//!   held to simulated compactions (`tests/all/lsm_simulation`).
//! - [`TableSize`] is the size of tables with which merges keep a drive busy.
//!
//! ```
//! use flashgrain_cost::dictionary::{Design, Operation, Records, Situation, price};
//! use flashgrain_cost::lsm::{Layout, LsmTree};
//! use flashgrain_cost::AffineCosts;
//!
//! let drive = AffineCosts { setup_seconds: 60e-6, transfer_seconds_per_byte: 0.5e-9 };
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
mod load;
mod out_of_place;
mod runs;
mod scan;
mod table_size;
mod throttling;
mod touched;
mod tree;

pub use compaction::{CompactionWork, Step};
pub use filter::false_positive_rate;
pub use layout::Layout;
pub use load::load_seconds;
pub use out_of_place::OutOfPlaceLsmTree;
pub use runs::Runs;
pub use table_size::TableSize;
pub use throttling::SlowedWrites;
pub use touched::TouchedLine;
pub use tree::{LsmTree, Metadata};
