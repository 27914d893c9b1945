//! `parallel`: rounds of 64 KiB random reads by p streams (dictionaries paper §4.1). A segmented regression
//! of them finds the PDAM's P.

use flashgrain_model::{Access, Workload};

use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::trial::{Trial, grid_level};

const STREAMS: [u32; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64];
const REQUEST_BYTES: u32 = 64 << 10;

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let trials = STREAMS.into_iter().enumerate().map(|(index, p)| {
        let workload = Workload::random(Access::Read, f64::from(REQUEST_BYTES), f64::from(p));
        Trial::load(ExperimentName::Parallel, grid_level(index, STREAMS.len()), workload)
    });
    Trials { trials: trials.collect(), left_out: Vec::new() }.that_fit(setting.site)
}
