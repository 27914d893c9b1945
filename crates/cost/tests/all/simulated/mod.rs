//! Trees of keys in memory that count what they read and write. They share no formula with the prices.

pub mod b_tree;
pub mod draws;
pub mod lru;
pub mod lsm_tree;
