//! LSM-trees: memtables, and runs of tables in segments of their own.
//!
//! ```text
//! tree       the index: reads, commits, flushes       options      the numbers of a tree
//! merge      flushes and compactions                  jobs         those that are running
//! policy     which tables are merged next             throttling   writers wait for merges
//! retention  which versions stay                      chain        operands down to what they are over
//! folding    operands become values in merges         below        where tables end
//! hidden     tables of which nobody sees anything     scan         records in order
//! cursor     versions of several sources in order     levels       the tables, and their order
//! manifest   pages that say which tables there are    table        records in segments: blocks, fences, filters
//! memtable   versions in memory                       compression  data blocks with fewer bytes
//! block      records with common beginnings           ranges       removals of ranges of keys
//! filter     keys that a table surely does not have   load         records become tables at once
//! versions   those of one key                         stats        what is counted
//! withdrawal  tables move to the device's beginning
//! left       tables that no level has any more
//! walk       what is known of tables, beside what they have
//! flush_batch  memtables that a flush merges
//! ```

mod below;
mod block;
mod chain;
mod compression;
mod cursor;
mod filter;
mod flush_batch;
mod hidden;
mod index;
mod jobs;
mod left;
mod levels;
mod load;
mod manifest;
mod merge;
mod options;
mod policy;
mod range_blocks;
mod reader;
mod scan;
mod stats;
mod table;
mod table_cursor;
mod throttling;
mod tree;
mod walk;
mod withdrawal;

pub use flashgrain_settings::LsmWorkload;
pub(crate) use options::Decided;
pub use options::LsmOptions;
pub use policy::LsmLayout;
pub use throttling::LsmThrottling;
pub(crate) use tree::Lsm;
