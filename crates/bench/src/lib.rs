//! Benchmarks of Flashgrain beside other key-value stores: the same keys, durability and memory in the same run.

pub mod engine;
pub mod tpcc;
