//! `size`: random reads of one block to 16 MiB, one at a time (dictionaries paper §4.2): the affine model's
//! line.

use flashgrain_model::{Access, Workload};

use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::trial::{Trial, Work, doublings, grid_level};

const REQUEST_BYTES_MAX: u64 = 16 << 20;

/// Reads of each size and repeat, as in the paper.
const READS: u64 = 64;

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let sizes = doublings(setting.site.page_bytes, REQUEST_BYTES_MAX);
    let trials = sizes.iter().enumerate().map(|(index, bytes)| {
        let workload = Workload::random(Access::Read, *bytes as f64, 1.0);
        let mut trial = Trial::load(ExperimentName::Size, grid_level(index, sizes.len()), workload);
        if let Work::Load(load) = &mut trial.work {
            load.max_requests = Some(READS);
        }
        // A large read takes many times the time of a small one; equal slices would leave too few of them.
        trial.weight = 1.0 + (*bytes as f64 / f64::from(1 << 20)).min(4.0);
        trial
    });
    Trials { trials: trials.collect(), left_out: Vec::new() }.that_fit(setting.site)
}
