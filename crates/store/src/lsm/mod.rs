//! LSM-trees: memtables, and runs of tables in segments of their own.
//!
//! ```text
//! tree       the index: reads, commits, flushes, compactions, scans
//! policy     which tables are merged next          retention  which versions stay
//! cursor     versions of several sources in order
//! manifest   pages that say which tables there are  levels     the tables, and their order
//! memtable   versions in memory                     table      records in segments: blocks, fences, filters
//! compression  data blocks with fewer bytes
//! block      records with common beginnings         filter     keys that a table certainly does not have
//! versions   those of one key                          throttling  writers wait for merges
//! ranges     removals of ranges of keys                 hidden    tables of which nobody sees anything
//! turn       one task at a time changes the tables      workload  the design for what is done to a tree
//! ```

mod block;
mod compression;
mod cursor;
mod filter;
mod hidden;
mod index;
mod jobs;
mod levels;
mod manifest;
mod memtable;
mod merge;
mod options;
mod policy;
mod ranges;
mod retention;
mod scan;
mod stats;
mod table;
mod table_cursor;
mod throttling;
mod tree;
mod turn;
mod versions;
mod workload;

pub use compression::LsmCompression;
pub(crate) use options::Decided;
pub use options::LsmOptions;
pub use policy::LsmLayout;
pub use throttling::LsmThrottling;
pub(crate) use tree::{Lsm, Shared};
pub use workload::LsmWorkload;
