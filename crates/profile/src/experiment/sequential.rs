//! `sequential`: streams that never jump, of small and of large requests. The exports for other software need
//! both rates, and they show the cost of a request when the drive has nothing to look up.

use flashgrain_model::Workload;

use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::trial::Trial;

/// Streams and request size: many and one, of pages and of large requests.
const SHAPES: [(u32, u32); 4] = [(64, 4 << 10), (8, 1 << 20), (1, 4 << 10), (1, 1 << 20)];

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let mut found = Trials::default();
    for (shape, (streams, bytes)) in SHAPES.into_iter().enumerate() {
        for read_share in [1.0, 0.0] {
            let workload = Workload {
                read_share,
                request_bytes: f64::from(bytes).max(setting.site.page_bytes as f64),
                random_share: 0.0,
                concurrency: f64::from(streams),
            };
            found.trials.push(Trial::load(ExperimentName::Sequential, shape as u32 / 2, workload));
        }
    }
    found.that_fit(setting.site)
}
