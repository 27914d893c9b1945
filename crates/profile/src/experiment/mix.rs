//! `mix`: random reads and writes together (NVMe paper §2.1): their cost to each other, the stated future
//! work of the MQSSD paper.

use flashgrain_model::Workload;

use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::trial::{Trial, grid_level};

const READ_PERCENT: [u32; 7] = [0, 10, 25, 50, 75, 90, 100];
const STREAMS: [u32; 3] = [1, 8, 64];
const REQUEST_BYTES: [u32; 2] = [4 << 10, 64 << 10];

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let mut found = Trials::default();
    for (size_index, bytes) in REQUEST_BYTES.into_iter().enumerate() {
        for (k_index, k) in STREAMS.into_iter().enumerate() {
            for (share_index, percent) in READ_PERCENT.into_iter().enumerate() {
                let workload = Workload {
                    read_share: f64::from(percent) / 100.0,
                    request_bytes: f64::from(bytes).max(setting.site.page_bytes as f64),
                    random_share: 1.0,
                    concurrency: f64::from(k),
                };
                let rank = size_index as u32
                    + grid_level(k_index, STREAMS.len())
                    + grid_level(share_index, READ_PERCENT.len());
                found.trials.push(Trial::load(ExperimentName::Mix, rank, workload));
            }
        }
    }
    found.that_fit(setting.site)
}
