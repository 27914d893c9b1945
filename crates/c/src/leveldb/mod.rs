//! LevelDB's C API, as version 1.23 has it, on the store: the functions of `include/leveldb/c.h`.
//!
//! A database is a directory with a store that has one LSM-tree, `leveldb:` with the comparator's name.
//! Options without a meaning there are accepted and have no effect; `docs/c.md` lists them. Requests that
//! would have other answers than LevelDB's are refused: comparators that do not order by bytes, and empty
//! keys.

mod cache;
mod comparator;
mod database;
mod environment;
mod filter_policy;
mod iterator;
mod maintenance;
mod message;
mod options;
mod order;
mod property;
mod read;
mod read_options;
mod snapshot;
mod version;
mod write;
mod write_batch;
mod write_options;
