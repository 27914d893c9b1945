//! Power cuts, and the surviving parts of writes.

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// Sectors are the smallest unit that a power cut leaves whole.
const SECTOR_BYTES: u64 = crate::content::SECTOR_BYTES;

/// A power cut, and the parts of the writes on their way to the medium that survive it.
///
/// These are the *unsettled* writes: on a drive with a volatile cache, those whose data have arrived in the
/// drive and are not yet on the medium, acknowledged or not; and, if `in_flight`, on any drive those whose
/// data were on the link. They are numbered from 0 in the order of their arrival (see
/// [`Image::unsettled`](crate::Image::unsettled)). Those that survive are applied in that order, so every
/// subset amounts to a reordering, too. Settled writes always survive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PowerCut {
    /// Choice of the unsettled writes that survive.
    pub survivors: Survivors,
    /// Tearing of the writes that survive.
    pub tear: Tear,
    /// Whether writes whose data were on the link count.
    pub in_flight: bool,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Choice of the unsettled writes that survive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Survivors {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// Each with probability one half.
    Random,
    /// This number of the oldest: those that an ordered cache leaves.
    First(usize),
    /// All but one.
    AllBut(usize),
    /// These.
    Only(Vec<usize>),
}

/// Tearing of the writes that survive. Units are aligned on the drive, and at least a sector of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tear {
    /// It is whole.
    #[default]
    Whole,
    /// With probability one half it is torn: only its first units survive, at least one and not all.
    Prefix {
        /// Size of the unit that is never torn: 512, 4096, or the drive's atomic unit.
        unit_bytes: u32,
    },
    /// With probability one half it is shorn: each of its units survives with probability one half.
    Shorn {
        /// Size of the unit that is never torn.
        unit_bytes: u32,
    },
    /// Of this one write, only the first bytes survive (rounded down to sectors); all others are whole.
    One {
        /// Number of the write.
        write: usize,
        /// How much of it is left.
        first_bytes: u64,
    },
}

impl PowerCut {
    /// The ranges that survive of each write, given the unsettled bytes on its drive: ascending.
    pub(crate) fn decide(&self, writes: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
        let mut random = Pcg64::seed_from_u64(self.seed);
        writes
            .iter()
            .enumerate()
            .map(|(index, range)| {
                // Always drawn, so that the choice of survivors and the choice of how they tear do not depend
                // on one another.
                let (lucky, torn) = (random.random::<bool>(), random.random::<bool>());
                let mut tearing = Pcg64::seed_from_u64(random.random());
                let survives = match &self.survivors {
                    Survivors::None => false,
                    Survivors::All => true,
                    Survivors::Random => lucky,
                    Survivors::First(count) => index < *count,
                    Survivors::AllBut(lost) => index != *lost,
                    Survivors::Only(kept) => kept.contains(&index),
                };
                if !survives {
                    return Vec::new();
                }
                match self.tear {
                    Tear::Prefix { unit_bytes } if torn => prefix(range, unit_bytes, &mut tearing),
                    Tear::Shorn { unit_bytes } if torn => shorn(range, unit_bytes, &mut tearing),
                    Tear::One { write, first_bytes } if write == index => {
                        let kept = first_bytes / SECTOR_BYTES * SECTOR_BYTES;
                        let end = range.end.min(range.start.saturating_add(kept));
                        std::iter::once(range.start..end).collect()
                    }
                    _ => vec![range.clone()],
                }
            })
            .collect()
    }
}

/// The units that a range touches, cut to it.
fn units(range: &Range<u64>, unit_bytes: u32) -> impl Iterator<Item = Range<u64>> {
    let unit = u64::from(unit_bytes).max(SECTOR_BYTES);
    let (start, end) = (range.start, range.end);
    (start / unit..end.div_ceil(unit)).map(move |at| start.max(at * unit)..end.min((at + 1) * unit))
}

fn prefix(range: &Range<u64>, unit_bytes: u32, random: &mut Pcg64) -> Vec<Range<u64>> {
    let count = units(range, unit_bytes).count();
    if count < 2 {
        return vec![range.clone()];
    }
    let kept = random.random_range(1..count);
    units(range, unit_bytes).take(kept).collect()
}

fn shorn(range: &Range<u64>, unit_bytes: u32, random: &mut Pcg64) -> Vec<Range<u64>> {
    units(range, unit_bytes).filter(|_| random.random::<bool>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(survivors: Survivors, tear: Tear) -> PowerCut {
        PowerCut { survivors, tear, in_flight: false, seed: 7 }
    }

    fn kept(survivors: Survivors) -> Vec<usize> {
        let writes: Vec<Range<u64>> = (0..4).map(|at| at * 4096..(at + 1) * 4096).collect();
        let decided = cut(survivors, Tear::Whole).decide(&writes);
        (0..4).filter(|at| decided[*at] == [writes[*at].clone()]).collect()
    }

    #[test]
    fn survivors_are_those_that_were_asked_for() {
        assert_eq!(kept(Survivors::None), [0; 0]);
        assert_eq!(kept(Survivors::All), [0, 1, 2, 3]);
        assert_eq!(kept(Survivors::First(2)), [0, 1]);
        assert_eq!(kept(Survivors::AllBut(1)), [0, 2, 3]);
        assert_eq!(kept(Survivors::Only(vec![3, 0])), [0, 3]);
    }

    #[test]
    fn every_random_subset_comes_up_and_repeats_from_its_seed() {
        let writes: Vec<Range<u64>> = (0..3).map(|at| at * 512..(at + 1) * 512).collect();
        let subset = |seed| {
            let decided = PowerCut { seed, ..cut(Survivors::Random, Tear::Whole) }.decide(&writes);
            decided.iter().fold(0, |bits, kept| bits << 1 | usize::from(!kept.is_empty()))
        };
        let mut seen = [0; 8];
        for seed in 0..400 {
            assert_eq!(subset(seed), subset(seed));
            seen[subset(seed)] += 1;
        }
        assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    }

    #[test]
    fn torn_writes_keep_their_first_units_and_shorn_ones_any() {
        let write = 1024..4096 * 3;
        let (mut prefixes, mut sets) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        for seed in 0..200 {
            let torn = PowerCut { seed, ..cut(Survivors::All, Tear::Prefix { unit_bytes: 4096 }) };
            let torn = torn.decide(std::slice::from_ref(&write)).remove(0);
            assert_eq!(torn[0].start, 1024, "a prefix begins where the write does");
            assert!(torn.windows(2).all(|pair| pair[0].end == pair[1].start));
            prefixes.insert(torn.last().map(|last| last.end));
            let shorn = PowerCut { seed, ..cut(Survivors::All, Tear::Shorn { unit_bytes: 4096 }) };
            let shorn = shorn.decide(std::slice::from_ref(&write)).remove(0);
            assert!(shorn.len() == 1 || shorn.iter().all(|unit| unit.end.is_multiple_of(4096)));
            sets.insert(shorn.iter().map(|unit| (unit.start, unit.end)).collect::<Vec<_>>());
        }
        assert_eq!(prefixes, [Some(4096), Some(8192), Some(12288)].into());
        assert_eq!(sets.len(), 9, "whole, and all subsets of three units");
        let one = cut(Survivors::All, Tear::One { write: 0, first_bytes: 1100 });
        let kept = one.decide(&[write.clone(), write]).concat();
        assert_eq!(kept, [1024..2048, 1024..12288]);
    }

    #[test]
    fn a_unit_is_never_torn() {
        let inside = 512..4096;
        for tear in [Tear::Prefix { unit_bytes: 4096 }, Tear::Shorn { unit_bytes: 4096 }] {
            let mut lost = 0;
            for seed in 0..50 {
                let kept =
                    PowerCut { seed, ..cut(Survivors::All, tear) }.decide(std::slice::from_ref(&inside));
                assert!(kept[0].is_empty() || kept[0] == std::slice::from_ref(&inside));
                lost += usize::from(kept[0].is_empty());
            }
            assert_eq!(
                lost > 0,
                matches!(tear, Tear::Shorn { .. }),
                "only a shorn write may lose its only unit"
            );
        }
    }
}
