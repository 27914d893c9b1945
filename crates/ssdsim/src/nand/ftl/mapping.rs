//! The mapping from units to places: the writes since the start, sparsely, over the state at the start.

use std::ops::Range;

use super::default_map::DefaultMap;
use super::geometry::FlashAddress;

/// Units of one table.
const TABLE_UNITS: u32 = 512;
/// Entry of a unit that is where it was at the start.
const AS_AT_START: u32 = u32::MAX;
/// Entry of a unit that is nowhere.
const UNMAPPED: u32 = u32::MAX - 1;

/// See the module.
#[derive(Debug)]
pub(super) struct Mapping {
    parts: Vec<Part>,
    units: u32,
    start: DefaultMap,
}

/// [`TABLE_UNITS`] consecutive units.
#[derive(Clone, Debug)]
enum Part {
    AsAtStart,
    Unmapped,
    Table(Box<[u32; TABLE_UNITS as usize]>),
}

impl Mapping {
    pub fn new(units: u32, start: DefaultMap) -> Self {
        Self { parts: vec![Part::AsAtStart; units.div_ceil(TABLE_UNITS) as usize], units, start }
    }

    /// Place of the unit.
    #[inline]
    pub fn get(&self, unit: u32) -> Option<FlashAddress> {
        match &self.parts[(unit / TABLE_UNITS) as usize] {
            Part::AsAtStart => self.start.get(unit),
            Part::Unmapped => None,
            Part::Table(entries) => self.decode(unit, entries[(unit % TABLE_UNITS) as usize]),
        }
    }

    #[inline]
    fn decode(&self, unit: u32, entry: u32) -> Option<FlashAddress> {
        match entry {
            AS_AT_START => self.start.get(unit),
            UNMAPPED => None,
            place => Some(FlashAddress(place)),
        }
    }

    /// The unit is at `place` from now on. It returns where it was.
    pub fn set(&mut self, unit: u32, place: FlashAddress) -> Option<FlashAddress> {
        let entry = std::mem::replace(self.entry(unit), place.0);
        self.decode(unit, entry)
    }

    fn entry(&mut self, unit: u32) -> &mut u32 {
        let part = &mut self.parts[(unit / TABLE_UNITS) as usize];
        let fill = match part {
            Part::AsAtStart => AS_AT_START,
            _ => UNMAPPED,
        };
        if !matches!(part, Part::Table(_)) {
            *part = Part::Table(Box::new([fill; TABLE_UNITS as usize]));
        }
        match part {
            Part::Table(entries) => &mut entries[(unit % TABLE_UNITS) as usize],
            _ => unreachable!("it has just been made a table"),
        }
    }

    /// The units are nowhere from now on. It calls `freed` with blocks of `units_per_block` and how many of
    /// the units were in them.
    pub fn clear(&mut self, units: Range<u32>, units_per_block: u32, mut freed: impl FnMut(u32, u32)) {
        let mut unit = units.start;
        while unit < units.end {
            let part = unit / TABLE_UNITS;
            let part_end = ((part + 1) * TABLE_UNITS).min(self.units);
            if !unit.is_multiple_of(TABLE_UNITS) || units.end < part_end {
                let end = part_end.min(units.end);
                for unit in unit..end {
                    let entry = std::mem::replace(self.entry(unit), UNMAPPED);
                    if let Some(place) = self.decode(unit, entry) {
                        freed(place.0 / units_per_block, 1);
                    }
                }
                unit = end;
                continue;
            }
            match std::mem::replace(&mut self.parts[part as usize], Part::Unmapped) {
                Part::Unmapped => unit = part_end,
                Part::Table(entries) => {
                    for (unit, &entry) in (unit..part_end).zip(entries.iter()) {
                        if let Some(place) = self.decode(unit, entry) {
                            freed(place.0 / units_per_block, 1);
                        }
                    }
                    unit = part_end;
                }
                Part::AsAtStart => {
                    let end = self.take_run_as_at_start(part + 1, units.end);
                    self.start.for_each_block(unit..end, &mut freed);
                    unit = end;
                }
            }
        }
    }

    /// Unmaps whole parts from `part` on that are as at the start and end by `limit`; returns the unit after
    /// the last of them.
    fn take_run_as_at_start(&mut self, mut part: u32, limit: u32) -> u32 {
        while let Some(next) = self.parts.get_mut(part as usize)
            && matches!(next, Part::AsAtStart)
            && ((part + 1) * TABLE_UNITS).min(self.units) <= limit
        {
            *next = Part::Unmapped;
            part += 1;
        }
        (part * TABLE_UNITS).min(self.units)
    }

    /// The state before the first write.
    pub fn start(&self) -> &DefaultMap {
        &self.start
    }

    /// The unit at this place at the start.
    pub fn unit_at_start(&self, place: FlashAddress) -> Option<u32> {
        self.start.unit_at(place)
    }

    /// Memory that it takes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.parts.len() * size_of::<Part>() + self.tables() * TABLE_UNITS as usize * 4
    }

    /// Tables that were made.
    #[cfg(test)]
    pub fn tables(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, Part::Table(_))).count()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::config::StartState;
    use crate::nand::ftl::default_map::Striped;
    use crate::nand::ftl::geometry::Geometry;
    use crate::nand::ftl::tests::harness::{drive, nand};

    #[derive(Clone, Debug)]
    enum Step {
        Set(u32),
        Clear(Range<u32>),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_u32..4096).prop_map(Step::Set),
            1 => (0_u32..4096, 0_u32..3000).prop_map(|(unit, units)| Step::Clear(unit..(unit + units).min(4096))),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec(step(), 0..60)) {
            let nand = nand();
            let geometry = Geometry::new(&nand, &drive(&nand, StartState::Filled)).unwrap();
            let mut mapping = Mapping::new(4096, DefaultMap::Filled(Striped::new(&geometry)));
            let mut model: BTreeMap<u32, FlashAddress> =
                (0..4096).filter_map(|unit| Some((unit, mapping.get(unit)?))).collect();
            prop_assert_eq!(model.len(), 4096);
            for (index, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Set(unit) => {
                        let place = FlashAddress(100_000 + index as u32);
                        prop_assert_eq!(mapping.set(unit, place), model.insert(unit, place));
                    }
                    Step::Clear(units) => {
                        let mut freed: BTreeMap<u32, u32> = BTreeMap::new();
                        let per_block = geometry.units_per_block;
                        mapping.clear(units.clone(), per_block, |block, units| *freed.entry(block).or_default() += units);
                        let mut expected: BTreeMap<u32, u32> = BTreeMap::new();
                        for place in units.filter_map(|unit| model.remove(&unit)) {
                            *expected.entry(place.0 / per_block).or_default() += 1;
                        }
                        prop_assert_eq!(freed, expected);
                    }
                }
            }
            for unit in 0..4096 {
                prop_assert_eq!(mapping.get(unit), model.get(&unit).copied());
            }
        }
    }
}
