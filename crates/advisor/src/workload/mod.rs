//! The operations that a user's program has the store do, its records and its limits.
//!
//! 1. [`parse`] reads a TOML file (`file`), [`preset`] takes one of YCSB's (`presets`), and `observe` makes
//!    one from an engine's counters.
//! 2. [`checked`] refuses whatever cannot be, with the field and its range. Nothing else in this crate makes
//!    sure again.

mod check;
mod file;
mod presets;

pub use check::checked;
pub use file::{parse, print};
pub use flashgrain_cost::ranking::{Durability, Lifetime, Operations, Records, Workload};
pub use presets::{PRESETS, preset};
