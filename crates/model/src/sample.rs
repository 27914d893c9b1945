//! Measurements as the models see them, and their CSV form.

use serde::{Deserialize, Serialize};

use crate::Workload;

/// The throughput that one trial of a workload reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The experiment it belongs to, such as `order` or `mix`; free text for measurements made elsewhere.
    pub experiment: String,
    /// Which repetition of the same workload, from 0.
    pub repeat: u32,
    /// What was run.
    pub workload: Workload,
    /// Bytes moved by all streams together, divided by the time it took.
    pub bytes_per_second: f64,
}
