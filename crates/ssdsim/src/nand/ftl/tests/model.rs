//! Random commands on a tiny drive against the contract of a translation layer, in any configuration.

use std::collections::{BTreeMap, BTreeSet};

use flashgrain_device::Op;
use proptest::prelude::*;

use super::harness::{Bench, drive, nand};
use crate::config::{
    CollectConfig, CollectPolicy, LayoutConfig, MappingCache, MappingConfig, NandConfig, PlacementRule,
    SimConfig, StartState, WriteCacheConfig,
};
use crate::nand::ftl::blocks::BlockState;
use crate::nand::ftl::geometry::FlashAddress;

const UNIT: u32 = 4096;
const UNITS: u32 = 512;
const SECTOR: u32 = 512;

/// A host's next step. Offsets and lengths are in sectors.
#[derive(Clone, Debug)]
enum Step {
    Write {
        offset: u32,
        length: u32,
        durable: bool,
    },
    Read {
        offset: u32,
        length: u32,
    },
    Flush,
    Discard {
        offset: u32,
        length: u32,
    },
    /// Lets this many events happen.
    Events(u32),
    PowerCycle,
}

fn range(longest: u32) -> impl Strategy<Value = (u32, u32)> {
    let sectors = UNITS * UNIT / SECTOR;
    // Half of them whole units, and half of them in a small part of the drive.
    (0..sectors, 1..=longest, any::<bool>(), any::<bool>()).prop_map(move |(offset, length, whole, near)| {
        let offset = if near { offset % (sectors / 8) } else { offset };
        let (offset, length) = if whole { (offset & !7, (length + 7) & !7) } else { (offset, length) };
        (offset, length.min(sectors - offset))
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (range(200), prop::bool::weighted(0.1))
            .prop_map(|((offset, length), durable)| Step::Write { offset, length, durable }),
        5 => range(100).prop_map(|(offset, length)| Step::Read { offset, length }),
        2 => Just(Step::Flush),
        2 => range(1000).prop_map(|(offset, length)| Step::Discard { offset, length }),
        10 => (0_u32..40).prop_map(Step::Events),
        1 => Just(Step::PowerCycle),
    ]
}

fn configuration() -> impl Strategy<Value = (NandConfig, StartState)> {
    let cache = prop_oneof![
        Just(MappingCache::Whole),
        Just(MappingCache::EntriesBytes(40)),
        Just(MappingCache::PagesBytes(4096)),
    ];
    let policy =
        prop_oneof![Just(CollectPolicy::Greedy), Just(CollectPolicy::CostBenefit), Just(CollectPolicy::Fifo)];
    let state = prop_oneof![
        Just(StartState::Fresh),
        Just(StartState::Filled),
        Just(StartState::SteadyRandom { working_set: 0.9 }),
    ];
    let write_cache = prop_oneof![
        Just(WriteCacheConfig { bytes: 0, volatile: false }),
        Just(WriteCacheConfig { bytes: 1 << 16, volatile: false }),
        Just(WriteCacheConfig { bytes: 1 << 17, volatile: true }),
    ];
    let desirable = prop_oneof![Just(4096_u64), Just(32768)];
    let by_address = prop_oneof![3 => Just(None), 1 => any::<bool>().prop_map(Some)];
    (cache, policy, state, write_cache, desirable, 0_u32..3, by_address).prop_map(
        |(cache, policy, state, write_cache, desirable_write_bytes, wear_gap, by_address)| {
            let nand = NandConfig {
                chips_per_channel: 1,
                pages_per_block: 4,
                over_provisioning: 0.8,
                mapping: MappingConfig { cache, entry_bytes: 64, ..nand().mapping },
                write_cache,
                layout: LayoutConfig { desirable_write_bytes, ..nand().layout },
                collect: CollectConfig { policy, wear_gap, ..CollectConfig::default() },
                ..nand()
            };
            (by_address.map_or(nand.clone(), |write_back| planes_by_address(nand, write_back)), state)
        },
    )
}

/// The same with planes that are written each by itself.
fn planes_by_address(nand: NandConfig, write_back: bool) -> NandConfig {
    NandConfig {
        page_bytes: nand.mapping.unit_bytes,
        pages_per_block: 8,
        mapping: MappingConfig { write_back, ..nand.mapping },
        layout: LayoutConfig { placement: PlacementRule::ByAddress, ..nand.layout },
        ..nand
    }
}

/// A translation layer, and the facts known about it from outside.
struct Watched {
    bench: Bench,
    /// Units that must be somewhere, and whether the unit's newest write has been taken for certain.
    written: BTreeMap<u32, u64>,
    /// Units that must be nowhere.
    nowhere: BTreeSet<u32>,
    /// Writes that are not done, and their units.
    under_way: BTreeMap<u32, (u64, std::ops::Range<u32>)>,
    /// Flushes that are not done, and the newest write that was done before each began.
    flushes: BTreeMap<u32, BTreeSet<u64>>,
    done_writes: BTreeSet<u64>,
    versions: u64,
    places: Vec<Option<FlashAddress>>,
}

impl Watched {
    fn new(nand: &NandConfig, state: StartState) -> Self {
        let capacity_bytes = u64::from(UNITS * UNIT);
        let bench = Bench::of(nand, &SimConfig { capacity_bytes, ..drive(nand, state) });
        let mut watched = Self {
            bench,
            written: BTreeMap::new(),
            nowhere: BTreeSet::new(),
            under_way: BTreeMap::new(),
            flushes: BTreeMap::new(),
            done_writes: BTreeSet::new(),
            versions: 0,
            places: Vec::new(),
        };
        watched.places = watched.places();
        for unit in 0..UNITS {
            match watched.places[unit as usize] {
                Some(_) => _ = watched.written.insert(unit, 0),
                None => _ = watched.nowhere.insert(unit),
            }
        }
        watched
    }

    fn places(&self) -> Vec<Option<FlashAddress>> {
        (0..self.bench.ftl.geometry.logical_units()).map(|unit| self.bench.place(unit)).collect()
    }

    /// Does something; afterwards no unit is elsewhere without a reason.
    fn act<T>(&mut self, act: impl FnOnce(&mut Bench) -> T) -> T {
        let blocks = &self.bench.ftl.blocks;
        let collecting: Vec<bool> =
            blocks.all.iter().map(|block| block.state == BlockState::Collecting).collect();
        let result = act(&mut self.bench);
        let places = self.places();
        for (unit, (before, after)) in self.places.iter().zip(&places).enumerate() {
            let unit = unit as u32;
            let is_written = unit >= UNITS || self.under_way.values().any(|(_, units)| units.contains(&unit));
            if before == after || is_written {
                continue;
            }
            // Only collection moves units that no command writes, and only out of the block that it collects.
            let from =
                before.expect("a unit appeared from nowhere").0 / self.bench.ftl.geometry.units_per_block;
            assert!(after.is_some() && collecting[from as usize], "unit {unit}: {before:?} to {after:?}");
        }
        self.places = places;
        for command in std::mem::take(&mut self.bench.done) {
            self.finished(command);
        }
        result
    }

    fn finished(&mut self, command: u32) {
        let version = self.under_way.remove(&command).map(|(version, _)| version);
        if let Some(before) = self.flushes.remove(&command) {
            let lost: Vec<u64> = self.bench.unsettled();
            let lost: Vec<&u64> =
                lost.iter().filter(|lost| before.contains(lost) || version == Some(**lost)).collect();
            assert!(lost.is_empty(), "writes {lost:?} do not survive the flush behind them");
        }
        self.done_writes.extend(version);
    }

    fn take(&mut self, step: &Step) {
        let bytes = |sectors: u32| u64::from(sectors * SECTOR);
        match *step {
            Step::Write { offset, length, durable } => {
                self.versions += 1;
                let units = offset / 8..(offset + length).div_ceil(8);
                let op = if durable { Op::WriteDsync } else { Op::Write };
                for unit in units.clone() {
                    self.written.insert(unit, self.versions);
                    self.nowhere.remove(&unit);
                }
                // Its number is known when it has begun, but it may be taken at once.
                self.under_way.insert(u32::MAX, (self.versions, units.clone()));
                let command = self.act(|bench| bench.start(op, bytes(offset), length * SECTOR));
                self.under_way.remove(&u32::MAX);
                self.under_way.insert(command, (self.versions, units));
                if durable {
                    self.flushes.insert(command, self.done_writes.clone());
                }
            }
            Step::Read { offset, length } => {
                self.act(|bench| bench.start(Op::Read, bytes(offset), length * SECTOR));
            }
            Step::Flush => {
                let command = self.act(|bench| bench.start(Op::Flush, 0, 0));
                self.flushes.insert(command, self.done_writes.clone());
            }
            Step::Discard { offset, length } => self.discard(offset, length),
            Step::Events(count) => {
                for _ in 0..count {
                    self.act(Bench::step);
                }
            }
            Step::PowerCycle => self.power_cycle(),
        }
    }

    fn discard(&mut self, offset: u32, length: u32) {
        // Writes that still wait for room might be taken before or after it.
        self.let_all_happen();
        let units = offset.div_ceil(8)..(offset + length) / 8;
        for unit in units.clone() {
            self.written.remove(&unit);
            self.nowhere.insert(unit);
            self.places[unit as usize] = None;
        }
        self.act(|bench| bench.start(Op::Discard, u64::from(offset * SECTOR), length * SECTOR));
    }

    fn power_cycle(&mut self) {
        self.bench.power_cycle();
        // The state of units under way is unknown.
        for (_, units) in std::mem::take(&mut self.under_way).into_values() {
            for unit in units {
                self.written.remove(&unit);
                self.nowhere.remove(&unit);
            }
        }
        self.flushes.clear();
        self.places = self.places();
        self.bench.check();
    }

    fn let_all_happen(&mut self) {
        while self.act(Bench::step) {}
        assert!(self.under_way.is_empty(), "not done: {:?}", self.under_way);
        assert!(self.flushes.is_empty(), "not done: {:?}", self.flushes);
        for unit in &self.nowhere {
            assert_eq!(self.places[*unit as usize], None, "unit {unit} was discarded or never written");
        }
        let unsettled = self.bench.unsettled();
        for (unit, version) in &self.written {
            let place = self.places[*unit as usize].expect("a unit is lost");
            let Some((row, slot)) = self.bench.ftl.open_slot(place) else { continue };
            let slot = self.bench.ftl.rows[row].slots[slot as usize];
            assert_eq!((slot.unit, slot.version), (*unit, *version));
            // A unit that is only in memory must not pass for durable.
            assert!(slot.durable || unsettled.contains(version), "unit {unit}: {slot:?}");
        }
        self.bench.check();
    }
}

/// `PROPTEST_CASES`, or few enough for every day.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(100, |cases| cases.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_moved_without_a_reason(
        (nand, state) in configuration(),
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut watched = Watched::new(&nand, state);
        for step in &steps {
            watched.take(step);
        }
        watched.let_all_happen();
    }
}
