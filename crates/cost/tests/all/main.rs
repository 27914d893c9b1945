//! Prices beside papers, and beside simulations that share no formula with them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod asymptotics;
mod compaction;
mod figures;
mod lsm_paper;
mod lsm_properties;
mod lsm_simulation;
