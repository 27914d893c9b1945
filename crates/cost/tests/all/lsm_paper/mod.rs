//! The MQSSD paper's experiments with RocksDB (its §5.3) beside what the model predicts.

mod compaction;
mod experiment;
mod queries;
mod tables;
