//! LSM-trees: memtables, and runs of tables in segments of their own.
//!
//! ```text
//! tree       the index: reads, commits, flushes       options      the numbers of a tree
//! merge      flushes and compactions                  workload     the design for what is done to a tree
//! policy     which tables are merged next             jobs         those that are running
//! retention  which versions stay                      throttling   writers wait for merges
//! hidden     tables of which nobody sees anything     turn         one task at a time changes the tables
//! cursor     versions of several sources in order     scan         records in order
//! manifest   pages that say which tables there are    levels       the tables, and their order
//! memtable   versions in memory                       table        records in segments: blocks, fences, filters
//! block      records with common beginnings           compression  data blocks with fewer bytes
//! filter     keys that a table surely does not have   ranges       removals of ranges of keys
//! versions   those of one key                         load         records become tables at once
//! stats      what is counted
//! ```

mod below;
mod block;
mod compression;
mod cursor;
mod filter;
mod hidden;
mod index;
mod jobs;
mod levels;
mod load;
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
pub use options::LsmOptions;
pub(crate) use options::{Decided, Room};
pub use policy::LsmLayout;
pub use throttling::LsmThrottling;
pub(crate) use tree::{Lsm, Shared};
pub use workload::LsmWorkload;
