//! The MQSSD paper's experiments with RocksDB (its §5.3) beside what the model predicts.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod compaction;
mod experiment;
mod queries;
mod tables;
