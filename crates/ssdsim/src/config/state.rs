//! State of a drive when the simulation starts, constructed rather than simulated.

use serde::{Deserialize, Serialize};

/// State at the start. It applies to flash; other media only know whether they were written, which does not
/// matter to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum StartState {
    /// Never written: reads of it find no flash page and return zeros at once.
    Fresh,
    /// Written once from front to back with large requests; the over-provisioned space is free.
    #[default]
    Filled,
    /// Written at random until garbage collection has come to its steady state: valid units per block follow
    /// the analytic distribution for uniform random writes of one mapping unit over `working_set` of the
    /// capacity (0 to 1), and each die is at a point of its own in the cycle of filling, collecting and
    /// erasing blocks, with the backlog that hosts that write without pause leave.
    SteadyRandom {
        /// Share of the capacity that was written.
        working_set: f64,
    },
}
