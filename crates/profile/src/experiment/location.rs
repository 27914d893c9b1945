//! `location`: the hidden-parameters paper's Experiment 2 (§3.1.2). In a region written with 512 KiB
//! requests, reads of a supposed chunk size start at one offset into the chunk; where latency depends on the
//! offset, channels and flash pages show.
//!
//! The paper reads group after group; here the groups of a chunk size take turns at random, request by
//! request, so that a drive that changes its pace does not look like one with hot locations. Unless told
//! otherwise only some of the groups are examined.
//!
//! Supposed sizes are the paper's doublings and sizes between them. A chunk of 96 KiB shows in reads of 96
//! KiB only, and a doubling is credible only if its neighbours were tried and show less.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::group_latency::{self, GroupLatency};
use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::schema::LocationPoint;
use crate::series::Series;
use crate::stats::mix_seed;
use crate::trial::{Group, Sweep, Trial, Work, bytes_text, doublings_and_between};

const CHUNK_BYTES_MIN: u64 = 4 << 10;
const CHUNK_BYTES_MAX: u64 = 512 << 10;
const OFFSET_UNIT_BYTES: u64 = 1 << 10;

/// Fewest chunks that a group is worth reading from.
const CHUNKS_MIN: u64 = 8;

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let mut found = Trials::default();
    let region = setting.site.location;
    let unit = OFFSET_UNIT_BYTES.max(setting.site.align_bytes);
    let chunk_sizes = doublings_and_between(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN);
    let mut unexamined = 0;
    for chunk_bytes in chunk_sizes {
        // Chunks are counted from the beginning of the device; sizes that are no doublings need not divide
        // the region's offset.
        let first_bytes = region.offset_bytes.next_multiple_of(chunk_bytes);
        let end_bytes = region.offset_bytes + region.length_bytes;
        let chunks = end_bytes.saturating_sub(first_bytes) / chunk_bytes;
        if chunks <= CHUNKS_MIN || chunk_bytes <= unit {
            found.left_out.push(format!(
                "location: chunks of {}, for want of {}",
                bytes_text(chunk_bytes),
                if chunk_bytes <= unit { "offsets that the device can address" } else { "room" }
            ));
            continue;
        }
        let seed = mix_seed(setting.seed, chunk_bytes);
        let offsets = offsets_to_examine(chunk_bytes, unit, setting.location_groups, seed);
        unexamined += (chunk_bytes / unit) as usize - offsets.len();
        let group = |offset: u64| Group {
            label: offset,
            first_bytes: first_bytes + offset,
            stride_bytes: chunk_bytes,
            // The last chunk is left alone: a read that starts inside of it ends after the region.
            count: chunks - 1,
        };
        let sweep =
            Sweep { length_bytes: chunk_bytes as u32, groups: offsets.into_iter().map(group).collect() };
        found.trials.push(Trial {
            experiment: ExperimentName::Location,
            variant: None,
            regime: None,
            // A slice must be long enough for as many reads of a large chunk as of a small one, roughly.
            weight: 1.0 + chunk_bytes as f64 / f64::from(128 << 10),
            work: Work::Sweep(sweep),
            // Half of the sizes would leave all conclusions open: each is as dear as any.
            rank: 0,
        });
    }
    if unexamined > 0 {
        found.left_out.push(format!("location: {unexamined} offset groups, drawn at random"));
    }
    found
}

/// At most `limit` offsets into a chunk: the eighths first, as periods show there, then others at random.
fn offsets_to_examine(chunk_bytes: u64, unit: u64, limit: usize, seed: u64) -> Vec<u64> {
    let all: Vec<u64> = (0..chunk_bytes / unit).map(|index| index * unit).collect();
    let eighth = (chunk_bytes / 8).max(unit);
    let (mut chosen, mut others): (Vec<u64>, Vec<u64>) =
        all.into_iter().partition(|offset| offset % eighth == 0);
    others.shuffle(&mut Pcg64::seed_from_u64(seed));
    others.truncate(limit.saturating_sub(chosen.len()));
    chosen.truncate(limit.max(2));
    chosen.extend(others);
    chosen.sort_unstable();
    chosen
}

pub(super) fn points(series: &[&Series], seed: u64) -> Vec<LocationPoint> {
    let point = |group: GroupLatency| LocationPoint {
        chunk_bytes: group.read_bytes,
        offset_bytes: group.label,
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
    fn small_chunks_are_examined_at_every_offset_and_large_ones_at_some() {
        let found = testing::trials(ExperimentName::Location);
        assert_eq!(found.trials.len(), 19);
        for trial in &found.trials {
            let Work::Sweep(sweep) = &trial.work else { panic!("{trial:?}") };
            let chunk = u64::from(sweep.length_bytes);
            assert_eq!(sweep.groups.len() as u64, (chunk / 1024).min(16), "{chunk}");
            assert!(sweep.groups.iter().any(|group| group.label == 0));
            assert!(sweep.groups.iter().any(|group| group.label == chunk / 2), "{chunk}");
            assert!(sweep.groups.iter().all(|group| (group.first_bytes - group.label).is_multiple_of(chunk)));
        }
        assert_eq!(found.left_out.len(), 1);
    }

    #[test]
    fn reads_stay_inside_the_region() {
        let region = testing::site().location;
        for trial in testing::trials(ExperimentName::Location).trials {
            let Work::Sweep(sweep) = &trial.work else { panic!("{trial:?}") };
            for group in &sweep.groups {
                let last = group.first_bytes + (group.count - 1) * group.stride_bytes;
                assert!(last + u64::from(sweep.length_bytes) <= region.offset_bytes + region.length_bytes);
            }
        }
    }

    #[test]
    fn a_coarse_device_has_no_offsets_in_small_chunks() {
        let site = crate::target::Site { align_bytes: 4096, ..testing::site() };
        let setting = Setting { site: &site, backends: &[], location_groups: 16, can_grow: false, seed: 1 };
        let found = trials(&setting);
        assert_eq!(found.trials.len(), 18);
        assert!(found.left_out.iter().any(|left_out| left_out.contains("4 KiB")), "{:?}", found.left_out);
    }
}
