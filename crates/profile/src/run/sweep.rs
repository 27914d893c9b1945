//! Running a sweep: single reads, batch after batch, each with one read of every group in random order.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::bench::Bench;
use crate::Error;
use crate::series::SweepRead;
use crate::stats::mix_seed;
use crate::trial::{Group, Sweep};

/// Batches of the first call of a sweep; it tells how long a batch takes.
const FIRST_BATCHES: usize = 2;

/// Batches of a call at most: between calls the run looks at the time.
const BATCHES_MAX: usize = 256;

/// A sweep on its way through the rounds: every place of a group is read once before any is read again.
#[derive(Debug)]
pub(super) struct Sweeping {
    length_bytes: u32,
    groups: Vec<Places>,
    random: Pcg64,
}

/// The places of a group in the order of their turn.
#[derive(Debug)]
struct Places {
    group: Group,
    /// Number of the group among those of its label.
    region: u32,
    order: Vec<u32>,
    next: usize,
}

impl Places {
    fn next_offset(&mut self, random: &mut Pcg64) -> u64 {
        if self.next >= self.order.len() {
            self.order.shuffle(random);
            self.next = 0;
        }
        let place = self.order.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        self.group.first_bytes + u64::from(place) * self.group.stride_bytes
    }
}

impl Sweeping {
    pub(super) fn new(sweep: &Sweep, seed: u64) -> Self {
        let places = |(index, group): (usize, &Group)| {
            let order: Vec<u32> = (0..u32::try_from(group.count).unwrap_or(u32::MAX)).collect();
            let before = sweep.groups.iter().take(index);
            let region = before.filter(|other| other.label == group.label).count() as u32;
            // Exhausted, so that the first read shuffles.
            Places { group: *group, region, next: order.len(), order }
        };
        Self {
            length_bytes: sweep.length_bytes,
            groups: sweep.groups.iter().enumerate().map(places).collect(),
            random: Pcg64::seed_from_u64(mix_seed(seed, u64::from(sweep.length_bytes))),
        }
    }

    /// Labels with regions, and offsets, of the next reads: `count` batches.
    fn batches(&mut self, count: usize) -> (Vec<(u64, u32)>, Vec<u64>) {
        let mut turn: Vec<usize> = (0..self.groups.len()).collect();
        let (mut labels, mut offsets) = (Vec::new(), Vec::new());
        for _ in 0..count {
            turn.shuffle(&mut self.random);
            for index in &turn {
                if let Some(places) = self.groups.get_mut(*index) {
                    labels.push((places.group.label, places.region));
                    offsets.push(places.next_offset(&mut self.random));
                }
            }
        }
        (labels, offsets)
    }

    /// Reads for `slice_s`.
    pub(super) fn run(
        &mut self,
        bench: &mut Bench<'_>,
        round: u32,
        slice_s: f64,
    ) -> Result<Vec<SweepRead>, Error> {
        let mut reads = Vec::new();
        let began_s = bench.elapsed_s();
        let (mut batches, mut done) = (FIRST_BATCHES, 0);
        loop {
            let (labels, mut offsets) = self.batches(batches);
            // The first read of a call finds the drive idle; it is made twice and counted once.
            offsets.splice(0..0, offsets.first().copied());
            let timed = bench.time_reads(self.length_bytes, &offsets)?;
            let places = labels.iter().zip(offsets.iter().skip(1));
            reads.extend(timed.iter().skip(1).zip(places).map(|(timed, ((label, region), offset_bytes))| {
                SweepRead {
                    sweep: round,
                    label: *label,
                    region: *region,
                    offset_bytes: *offset_bytes,
                    latency_us: timed.latency.seconds() * 1e6,
                }
            }));
            done += batches;
            let used_s = bench.elapsed_s() - began_s;
            let affordable = (slice_s - used_s) * done as f64 / used_s.max(1e-9);
            if affordable < 1.0 {
                return Ok(reads);
            }
            // Half of the rest at a time: an estimate from two batches may be off.
            batches = ((affordable / 2.0).ceil() as usize).clamp(1, BATCHES_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_read_once_before_any_again() {
        let group = |label: u64, first_bytes: u64| Group { label, first_bytes, stride_bytes: 4096, count: 5 };
        let sweep = Sweep { length_bytes: 4096, groups: vec![group(1, 0), group(2, 1 << 20)] };
        let mut sweeping = Sweeping::new(&sweep, 1);
        for _ in 0..3 {
            let (labels, offsets) = sweeping.batches(5);
            for (label, first) in [(1, 0), (2, 1 << 20)] {
                let mut of_group: Vec<u64> = labels
                    .iter()
                    .zip(&offsets)
                    .filter(|((one, _), _)| *one == label)
                    .map(|(_, offset)| *offset)
                    .collect();
                of_group.sort_unstable();
                assert_eq!(of_group, (0..5).map(|place| first + place * 4096).collect::<Vec<_>>());
            }
        }
        let (labels, _) = sweeping.batches(20);
        assert_ne!(labels, [(1, 0), (2, 0)].repeat(20), "groups always in the same order");
        let twice = Sweep { length_bytes: 4096, groups: vec![group(1, 0), group(1, 1 << 20)] };
        let (mut labels, _) = Sweeping::new(&twice, 1).batches(1);
        labels.sort_unstable();
        assert_eq!(labels, [(1, 0), (1, 1)]);
    }
}
