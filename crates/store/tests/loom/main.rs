//! The store's lock-free pieces under all orders that the memory model allows, by
//! [loom](https://docs.rs/loom): the very files of the store, over loom's atomics.
//!
//! Each model is also run with an ordering taken away that it needs, and must then fail.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]
#![expect(dead_code, reason = "of what the store's files offer some is for others")]

#[path = "../../src/pool/gate.rs"]
mod gate;
#[path = "../../src/pool/latch.rs"]
mod latch;
mod sync;
mod task;
#[path = "../../src/pool/waiters.rs"]
mod waiters;

mod models;
