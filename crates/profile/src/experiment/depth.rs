//! `depth`: queue depth x request size of random reads (NVMe paper §2.2-2.3): the best page size and the
//! depth that a drive needs.

use flashgrain_model::{Access, Workload};

use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::trial::{Trial, bytes_text, doublings, grid_level};

const REQUEST_BYTES_MIN: u64 = 512;
const REQUEST_BYTES_MAX: u64 = 64 << 10;
pub(crate) const DEEPEST: u64 = 256;

/// How far the depths of the page go on while the rate rises.
const DEEPEST_OF_ALL: u64 = 4096;
const PAGE_WEIGHT: f64 = 2.0;

/// Growth over the last two doublings of the depth at and above which the rate still rises: as `learn::curve`
/// judges it, so that a series whose depths end here has reached its plateau there.
const RISING: f64 = 1.04;

/// Whether a depth is worth measuring after shallower ones have been: all up to 256, and then one after the
/// other while the rate rises. `rate_at` is the rate at a depth, as far as it was measured.
pub(crate) fn is_worth_measuring(depth: u64, rate_at: impl Fn(u64) -> Option<f64>) -> bool {
    depth <= DEEPEST
        || matches!((rate_at(depth / 2), rate_at(depth / 8)), (Some(last), Some(before)) if last > RISING * before)
}

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let mut found = Trials::default();
    let align_bytes = setting.site.align_bytes;
    let (sizes, impossible): (Vec<u64>, Vec<u64>) = doublings(REQUEST_BYTES_MIN, REQUEST_BYTES_MAX)
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
        let is_page = *bytes == setting.site.page_bytes;
        let deepest = if is_page { DEEPEST_OF_ALL } else { DEEPEST };
        for (depth_index, depth) in doublings(1, deepest).iter().enumerate() {
            // The depths for 90 % and 99 % of the plateau are read from the page's column: it is dropped
            // last, and longer slices make it sharper.
            let rank = if is_page {
                0
            } else {
                grid_level(size_index, sizes.len()) + grid_level(depth_index, depths.len())
            };
            let workload = Workload::random(Access::Read, *bytes as f64, *depth as f64);
            let mut trial = Trial::load(ExperimentName::Depth, rank, workload);
            trial.weight = if is_page { PAGE_WEIGHT } else { 1.0 };
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
    fn depths_go_on_until_two_doublings_bring_nothing() {
        let deepest = |saturating: u64| {
            let rate_at = |depth: u64| Some(depth.min(saturating) as f64);
            doublings(1, DEEPEST_OF_ALL)
                .into_iter()
                .take_while(|depth| is_worth_measuring(*depth, rate_at))
                .max()
        };
        assert_eq!(deepest(16), Some(256));
        assert_eq!(deepest(64), Some(256));
        assert_eq!(deepest(128), Some(512));
        assert_eq!(deepest(1000), Some(4096));
    }

    #[test]
    fn small_requests_are_left_out_where_the_device_cannot_take_them() {
        let whole = testing::trials(ExperimentName::Depth);
        assert_eq!((whole.trials.len(), whole.left_out.len()), (9 * 8 + 4, 0));
        let site = crate::target::Site { align_bytes: 4096, ..testing::site() };
        let coarse = super::trials(&Setting {
            site: &site,
            backends: &[],
            location_groups: 16,
            can_grow: false,
            seed: 1,
        });
        assert_eq!(coarse.trials.len(), 9 * 5 + 4);
        assert_eq!(
            coarse.left_out,
            ["depth: requests of 2 KiB and less, because the device takes multiples of 4 KiB only"]
        );
    }
}
