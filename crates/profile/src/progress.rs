//! Progress of a run, as its caller sees it.

use crate::plan::Plan;

/// Progress of a run.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// Share of the time budget that is used, 0 to 1.
    pub fraction: f64,
    /// The current activity, such as `round 2: order`.
    pub what: &'a str,
    /// Since the start, seconds.
    pub elapsed_s: f64,
    /// Expected until the end, seconds.
    pub remaining_s: f64,
    /// Bytes written so far.
    pub written_bytes: u64,
}

/// Listens to a run.
pub trait Progress {
    /// The plan, before anything is touched.
    fn planned(&mut self, _plan: &Plan) {}

    /// A step forward; some ten to fifty a second.
    fn step(&mut self, _step: &Step<'_>) {}
}

/// Listens to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}
