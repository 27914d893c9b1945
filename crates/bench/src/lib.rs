//! Benchmarks of Flashgrain beside other key-value stores: the same keys, durability and memory in the same run.

pub mod compare;
pub mod drive;
pub mod engine;
pub mod keys;
pub mod measure;
pub mod run;
pub mod suite;
pub mod tpcc;
pub mod workload;
