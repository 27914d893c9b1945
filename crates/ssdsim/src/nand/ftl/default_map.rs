//! The mapping at the start: a formula rather than a table, so that a drive needs memory only for units that
//! are written.

use std::ops::Range;

use super::geometry::{FlashAddress, Geometry};
use super::steady::Steady;

/// The state before the first write.
#[derive(Debug)]
pub(super) enum DefaultMap {
    /// Nothing is mapped.
    Fresh,
    /// Written from front to back: chunk after chunk goes to the next die.
    Filled(Striped),
    /// Written at random for a long time.
    Steady(Steady),
}

impl DefaultMap {
    /// Place of the unit at the start.
    #[inline]
    pub fn get(&self, unit: u32) -> Option<FlashAddress> {
        match self {
            Self::Fresh => None,
            Self::Filled(striped) => Some(striped.get(unit)),
            Self::Steady(steady) => steady.get(unit),
        }
    }

    /// The unit at this place at the start.
    pub fn unit_at(&self, place: FlashAddress) -> Option<u32> {
        match self {
            Self::Fresh => None,
            Self::Filled(striped) => striped.unit_at(place),
            Self::Steady(steady) => steady.unit_at(place),
        }
    }

    /// Calls `each` with blocks, and how many of the units in `units` were in them at the start.
    pub fn for_each_block(&self, units: Range<u32>, mut each: impl FnMut(u32, u32)) {
        match self {
            Self::Fresh => {}
            Self::Filled(striped) => striped.for_each_block(units, each),
            Self::Steady(steady) => {
                for place in units.filter_map(|unit| steady.get(unit)) {
                    each(place.0 / steady.units_per_block(), 1);
                }
            }
        }
    }
}

/// Chunk `c` is on die `c % dies`; each die is filled block by block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Striped {
    dies: u32,
    units_per_chunk: u32,
    units_per_die: u32,
    units_per_block: u32,
    /// Mapped units.
    units: u32,
}

impl Striped {
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            dies: geometry.dies,
            units_per_chunk: geometry.units_per_chunk,
            units_per_die: geometry.blocks_per_die * geometry.units_per_block,
            units_per_block: geometry.units_per_block,
            units: geometry.logical_units(),
        }
    }

    #[inline]
    fn get(&self, unit: u32) -> FlashAddress {
        let (chunk, in_chunk) = (unit / self.units_per_chunk, unit % self.units_per_chunk);
        let (round, die) = (chunk / self.dies, chunk % self.dies);
        FlashAddress(die * self.units_per_die + round * self.units_per_chunk + in_chunk)
    }

    fn unit_at(&self, place: FlashAddress) -> Option<u32> {
        let (die, in_die) = (place.0 / self.units_per_die, place.0 % self.units_per_die);
        let (round, in_chunk) = (in_die / self.units_per_chunk, in_die % self.units_per_chunk);
        let chunk = u64::from(round) * u64::from(self.dies) + u64::from(die);
        let unit = chunk * u64::from(self.units_per_chunk) + u64::from(in_chunk);
        (unit < u64::from(self.units)).then_some(unit as u32)
    }

    /// Units below `unit` that are on `die`.
    fn on_die_below(&self, unit: u32, die: u32) -> u32 {
        let round_units = u64::from(self.units_per_chunk) * u64::from(self.dies);
        let (rounds, rest) = (u64::from(unit) / round_units, u64::from(unit) % round_units);
        let before = u64::from(die) * u64::from(self.units_per_chunk);
        let chunk = u64::from(self.units_per_chunk);
        (rounds * chunk + rest.saturating_sub(before).min(chunk)) as u32
    }

    pub fn for_each_block(&self, units: Range<u32>, mut each: impl FnMut(u32, u32)) {
        let blocks_per_die = self.units_per_die / self.units_per_block;
        for die in 0..self.dies {
            let (mut from, to) = (self.on_die_below(units.start, die), self.on_die_below(units.end, die));
            while from < to {
                let block = from / self.units_per_block;
                let until = to.min((block + 1) * self.units_per_block);
                each(die * blocks_per_die + block, until - from);
                from = until;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CollectPolicy, StartState};
    use crate::nand::ftl::history::{History, RowTimes};
    use crate::nand::ftl::tests::harness::{drive, nand};

    fn geometry() -> Geometry {
        let nand = nand();
        Geometry::new(&nand, &drive(&nand, StartState::Filled)).unwrap()
    }

    /// Every unit has a place of its own, places know their units, and ranges are counted right.
    fn check(map: &DefaultMap, geometry: &Geometry, mapped: u32) {
        let mut taken = vec![false; (geometry.blocks() * geometry.units_per_block) as usize];
        let mut count = 0;
        for unit in 0..geometry.logical_units() {
            let Some(place) = map.get(unit) else { continue };
            assert!(!std::mem::replace(&mut taken[place.0 as usize], true), "{place:?} is taken twice");
            assert_eq!(map.unit_at(place), Some(unit));
            count += 1;
        }
        assert_eq!(count, mapped);
        for place in (0..taken.len()).filter(|place| !taken[*place]) {
            assert_eq!(map.unit_at(FlashAddress(place as u32)), None);
        }
        for range in [0..geometry.logical_units(), 1..2, 37..1203] {
            let mut counted = vec![0; geometry.blocks() as usize];
            map.for_each_block(range.clone(), |block, units| counted[block as usize] += units);
            let mut expected = vec![0; geometry.blocks() as usize];
            for place in range.filter_map(|unit| map.get(unit)) {
                expected[(place.0 / geometry.units_per_block) as usize] += 1;
            }
            assert_eq!(counted, expected);
        }
    }

    #[test]
    fn chunks_go_round_the_dies() {
        let geometry = geometry();
        let map = DefaultMap::Filled(Striped::new(&geometry));
        check(&map, &geometry, 4096);
        let die = |unit| geometry.at(map.get(unit).unwrap()).die;
        assert_eq!([0, 1, 2, 3, 4, 6, 8].map(die), [0, 0, 1, 1, 2, 3, 0]);
    }

    #[test]
    fn the_steady_state_scatters_what_was_written() {
        let geometry = geometry();
        let (greedy, fifo) = (CollectPolicy::Greedy, CollectPolicy::Fifo);
        let fixed_dies = History::FixedDies { queued_rows: 4.0 };
        let times = RowTimes { program_s: 5e-4, dies_per_channel: 2.0, ..RowTimes::default() };
        let free_dies = History::FreeDies { programming: 2.0, cached_rows: None, units_per_s: 1e5, times };
        // All, most, four units, none.
        for (working_set, policy, history) in [
            (1.0, greedy, fixed_dies),
            (1.0, greedy, free_dies),
            (0.6, fifo, fixed_dies),
            (0.001, greedy, fixed_dies),
            (0.0001, fifo, fixed_dies),
        ] {
            let steady = Steady::new(&geometry, working_set, policy, history, 1);
            let mapped = (4096.0 * working_set).round() as u32;
            for die in 0..geometry.dies {
                let total: u32 = (0..geometry.blocks_per_die).map(|block| steady.valid(die, block)).sum();
                assert_eq!(total, mapped / 4 + u32::from(die < mapped % 4));
                let rising = (1..steady.phase(die).closed)
                    .all(|block| steady.valid(die, block - 1) <= steady.valid(die, block) + 1);
                assert!(rising, "older blocks have fewer valid units");
            }
            check(&DefaultMap::Steady(steady), &geometry, mapped);
        }
    }
}
