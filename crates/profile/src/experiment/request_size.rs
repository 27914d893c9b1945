//! `request-size`: the hidden-parameters paper's Experiment 1 (§3.1.1). Regions are created with sequential
//! writes of one size each; then 1 MiB reads of all of them tell by their latency which write sizes the drive
//! handles well.
//!
//! Additional smaller reads show the size of the parts that a write was cut into, which 1 MiB reads hide if
//! all channels work for them anyway.
//!
//! The paper uses files of 1 GB and a flush after every write. Here regions of one scratch file stand for the
//! files, two for each size, as a region may be faster or slower for where it lies; if there is not enough
//! time for a flush after every write, there is one flush after each region: a flush policy that differed
//! between sizes would itself show as a difference. Each size gets its place, and with it its time of
//! writing, by lot, so that neither place nor age can pass for an effect of size. The reads of all regions
//! take turns at random.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::group_latency::{self, GroupLatency};
use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::load::Region;
use crate::schema::RequestSizePoint;
use crate::series::Series;
use crate::stats::mix_seed;
use crate::target::Site;
use crate::trial::{Group, Sweep, Trial, Work, bytes_text, doublings, doublings_and_between};

/// Size of the paper's reads.
pub(crate) const READ_BYTES: u64 = 1 << 20;

/// Sizes of further reads.
const SMALLER_READS_BYTES: [u64; 3] = [16 << 10, 64 << 10, 256 << 10];

/// Time for each of them relative to that for the paper's.
const SMALLER_READS_WEIGHT: f64 = 0.5;
pub(crate) const WRITE_BYTES_MIN: u64 = 1 << 10;
const WRITE_BYTES_MAX: u64 = 1 << 20;

/// Sizes between doublings are multiples of this: stripes are whole pages.
const BETWEEN_UNIT_BYTES: u64 = 4 << 10;

/// Smallest region worth reading: fewer reads do not average out.
pub(crate) const REGION_BYTES_MIN: u64 = 5 << 20;

/// A region and the size of the writes that make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SizedRegion {
    pub write_request_bytes: u64,
    pub region: Region,
}

/// Write sizes that a device of this alignment can take, smallest first; the doublings alone if `room_bytes`
/// are too few for two regions of all.
pub(crate) fn write_sizes(align_bytes: u64, room_bytes: u64) -> Vec<u64> {
    let possible = |sizes: Vec<u64>| -> Vec<u64> {
        sizes.into_iter().filter(|size| size.is_multiple_of(align_bytes)).collect()
    };
    let all = possible(doublings_and_between(WRITE_BYTES_MIN, WRITE_BYTES_MAX, BETWEEN_UNIT_BYTES));
    match room_bytes / REGIONS_PER_SIZE / all.len().max(1) as u64 {
        each if each < REGION_BYTES_MIN => possible(doublings(WRITE_BYTES_MIN, WRITE_BYTES_MAX)),
        _ => all,
    }
}

/// Regions of each write size: repeats of each other.
const REGIONS_PER_SIZE: u64 = 2;

/// Regions of each size that `room_bytes` hold: one where they would be too small otherwise.
pub(crate) fn regions_per_size(sizes: u64, room_bytes: u64) -> u64 {
    (room_bytes / (sizes.max(1) * REGION_BYTES_MIN)).clamp(1, REGIONS_PER_SIZE)
}

/// Divides the site's space among the write sizes, in an order drawn from `seed`: the order of the regions on
/// the device, and that of their creation.
pub(crate) fn regions(site: &Site, seed: u64) -> Vec<SizedRegion> {
    let sizes = write_sizes(site.align_bytes, site.request_size.length_bytes);
    let per_size = regions_per_size(sizes.len() as u64, site.request_size.length_bytes);
    let mut sizes = sizes.repeat(per_size as usize);
    sizes.shuffle(&mut Pcg64::seed_from_u64(mix_seed(seed, 0x512e)));
    let each = site.request_size.length_bytes / sizes.len().max(1) as u64 / READ_BYTES * READ_BYTES;
    if each < REGION_BYTES_MIN {
        return Vec::new();
    }
    let offset_of = |index: usize| site.request_size.offset_bytes + index as u64 * each;
    let region = |(index, size): (usize, &u64)| SizedRegion {
        write_request_bytes: *size,
        region: Region { offset_bytes: offset_of(index), length_bytes: each },
    };
    sizes.iter().enumerate().map(region).collect()
}

/// Bytes to write after the regions, so that no data of the last region stay in the drive's cache: as much as
/// a region has.
pub(crate) fn tail_bytes(regions: &[SizedRegion]) -> u64 {
    regions.first().map_or(0, |sized| sized.region.length_bytes)
}

/// Bytes that are written to create the regions.
pub(crate) fn creation_bytes(regions: &[SizedRegion]) -> u64 {
    regions.iter().map(|sized| sized.region.length_bytes).sum::<u64>() + tail_bytes(regions)
}

/// The sweeps over regions: the paper's first.
pub(crate) fn sweeps(regions: &[SizedRegion]) -> Vec<Trial> {
    let sweep = |read_bytes: u64| {
        let group = |sized: &SizedRegion| Group {
            label: sized.write_request_bytes,
            // Writes begin at multiples of their size, which need not be those of the region: its edges are
            // left alone, in all regions alike.
            first_bytes: sized.region.offset_bytes + READ_BYTES,
            stride_bytes: read_bytes,
            count: sized.region.length_bytes.saturating_sub(2 * READ_BYTES) / read_bytes,
        };
        let papers = read_bytes == READ_BYTES;
        Trial {
            experiment: ExperimentName::RequestSize,
            regime: None,
            variant: None,
            work: Work::Sweep(Sweep {
                length_bytes: read_bytes as u32,
                groups: regions.iter().map(group).collect(),
            }),
            rank: u32::from(!papers),
            weight: if papers { 1.0 } else { SMALLER_READS_WEIGHT },
        }
    };
    std::iter::once(READ_BYTES).chain(SMALLER_READS_BYTES).map(sweep).collect()
}

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let mut found = Trials::default();
    let align_bytes = setting.site.align_bytes;
    if align_bytes > WRITE_BYTES_MIN {
        found.left_out.push(format!(
            "request-size: writes smaller than {}, which the device does not take",
            bytes_text(align_bytes)
        ));
    }
    let regions = regions(setting.site, setting.seed);
    if regions.is_empty() {
        found.left_out.push(format!(
            "request-size: needs a region of at least {} for each write size; the scratch file or the write budget is too small",
            bytes_text(REGION_BYTES_MIN)
        ));
    } else {
        found.trials = sweeps(&regions);
    }
    found
}

pub(super) fn points(series: &[&Series], seed: u64) -> Vec<RequestSizePoint> {
    let point = |group: GroupLatency| RequestSizePoint {
        write_request_bytes: group.label,
        read_request_bytes: group.read_bytes,
        latency: group.latency,
        mean_low_us: group.mean_low_us,
        mean_high_us: group.mean_high_us,
    };
    group_latency::of(series, seed).into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing;

    #[test]
    fn there_are_two_regions_of_each_write_size_in_an_order_drawn_by_lot() {
        let mut site = testing::site();
        site.request_size.length_bytes = 320 << 20;
        let regions = regions(&site, 1);
        let mut sizes: Vec<u64> = regions.iter().map(|sized| sized.write_request_bytes).collect();
        assert_eq!(sizes.len(), 48);
        assert!(!sizes.is_sorted());
        sizes.sort_unstable();
        assert!(sizes.chunks(2).all(|pair| pair[0] == pair[1]), "{sizes:?}");
        sizes.dedup();
        assert_eq!(sizes, write_sizes(512, u64::MAX));
        assert_eq!(sizes.len(), 24);
        assert!([40, 48, 96, 192, 384].iter().all(|kib| sizes.contains(&(kib << 10))));
        for pair in regions.windows(2) {
            assert_eq!(
                pair[0].region.offset_bytes + pair[0].region.length_bytes,
                pair[1].region.offset_bytes
            );
        }
        let last = regions[47].region;
        let end = site.request_size.offset_bytes + site.request_size.length_bytes;
        assert!(last.offset_bytes + last.length_bytes <= end);
        assert_ne!(regions, super::regions(&site, 2));
        // With less room, doublings alone: better two regions of few sizes than one of many.
        assert_eq!(super::regions(&testing::site(), 1).len(), 22);
    }

    #[test]
    fn small_writes_are_left_out_where_the_device_cannot_take_them() {
        let sizes = write_sizes(4096, u64::MAX);
        assert_eq!(write_sizes(4096, 64 << 20).len(), 9);
        assert_eq!(sizes[..7], [4, 8, 12, 16, 20, 24, 32].map(|kib: u64| kib << 10));
        let site = Site { align_bytes: 4096, ..testing::site() };
        let setting = Setting { site: &site, backends: &[], location_groups: 16, can_grow: false, seed: 1 };
        let found = trials(&setting);
        assert_eq!(
            found.left_out,
            ["request-size: writes smaller than 4 KiB, which the device does not take"]
        );
    }

    #[test]
    fn without_room_the_experiment_is_left_out() {
        let mut site = testing::site();
        site.request_size.length_bytes = 16 << 20;
        let setting = Setting { site: &site, backends: &[], location_groups: 16, can_grow: false, seed: 1 };
        let found = trials(&setting);
        assert!(found.trials.is_empty());
        assert_eq!(found.left_out.len(), 1);
    }
}
