//! `depth`: queue depth x request size of random reads (NVMe paper §2.2-2.3): the best page size and the depth that a drive needs.

use flashgrain_model::{Access, Workload};

use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::trial::{Trial, bytes_text, doublings, grid_level};

const SMALLEST_BYTES: u64 = 512;
const LARGEST_BYTES: u64 = 64 << 10;
const DEEPEST: u64 = 256;
const PAGE_WEIGHT: f64 = 2.0;

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let mut found = Trials::default();
    let align_bytes = setting.site.align_bytes;
    let (sizes, impossible): (Vec<u64>, Vec<u64>) = doublings(SMALLEST_BYTES, LARGEST_BYTES)
        .into_iter()
        .partition(|bytes| bytes.is_multiple_of(align_bytes));
    if let Some(largest) = impossible.last() {
        found.left_out.push(format!(
            "depth: requests of {} and less, because the device takes multiples of {} only",
            bytes_text(*largest),
            bytes_text(align_bytes)
        ));
    }
    let depths = doublings(1, DEEPEST);
    for (size_index, bytes) in sizes.iter().enumerate() {
        for (depth_index, depth) in depths.iter().enumerate() {
            // The page's column is what the depths for 90 % and 99 % of the plateau are read from: it stays as long as anything, and longer
            // slices make it sharper.
            let rank = if *bytes == setting.site.page_bytes {
                0
            } else {
                grid_level(size_index, sizes.len()) + grid_level(depth_index, depths.len())
            };
            let workload = Workload::random(Access::Read, *bytes as f64, *depth as f64);
            let mut trial = Trial::load(ExperimentName::Depth, rank, workload);
            trial.weight = if *bytes == setting.site.page_bytes { PAGE_WEIGHT } else { 1.0 };
            found.trials.push(trial);
        }
    }
    found.that_fit(setting.site)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing;

    #[test]
    fn small_requests_are_left_out_where_the_device_cannot_take_them() {
        let whole = testing::trials(ExperimentName::Depth);
        assert_eq!((whole.trials.len(), whole.left_out.len()), (9 * 8, 0));
        let site = crate::target::Site { align_bytes: 4096, ..testing::site() };
        let coarse = super::trials(&Setting { site: &site, backends: &[], location_groups: 16, seed: 1 });
        assert_eq!(coarse.trials.len(), 9 * 5);
        assert_eq!(
            coarse.left_out,
            ["depth: requests of 2 KiB and less, because the device takes multiples of 4 KiB only"]
        );
    }
}
