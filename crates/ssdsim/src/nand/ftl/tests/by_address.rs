//! Planes that are written each by itself, as in MQSim.

use flashgrain_device::Op;

use super::harness::{Bench, nand};
use crate::config::{
    LayoutConfig, MappingCache, MappingConfig, NandConfig, PlacementRule, StartState, WriteCacheConfig,
};

const UNIT: u32 = 8192;

/// Four dies of two planes, which are eight parts; units of a page; room for two of them in the cache.
fn config() -> NandConfig {
    NandConfig {
        mapping: MappingConfig { unit_bytes: UNIT, ..nand().mapping },
        layout: LayoutConfig { placement: PlacementRule::ByAddress, ..nand().layout },
        write_cache: WriteCacheConfig { bytes: 2 * u64::from(UNIT), volatile: false },
        ..nand()
    }
}

fn start(unit: u32) -> u64 {
    u64::from(unit) * u64::from(UNIT)
}

#[test]
fn the_address_decides_which_plane_a_unit_goes_to_however_it_is_written() {
    for state in [StartState::Fresh, StartState::Filled, StartState::SteadyRandom { working_set: 1.0 }] {
        let mut bench = Bench::new(&config(), state);
        assert_eq!(bench.ftl.geometry.dies, 8);
        for unit in [5, 3, 900, 17, 3] {
            bench.finish(Op::Write, start(unit), UNIT / 2);
            assert_eq!(bench.die(unit), unit % 8, "{state:?}");
        }
        if state != StartState::Fresh {
            (0..2048).for_each(|unit| assert_eq!(bench.die(unit), unit % 8, "{state:?}"));
        }
        bench.check();
    }
}

#[test]
fn every_write_is_programmed_by_itself_whole_or_not() {
    let mut bench = Bench::new(&config(), StartState::Fresh);
    for unit in 0..10 {
        bench.finish(Op::Write, start(unit * 8), UNIT / 2);
    }
    let counters = &bench.around.tally.counters;
    assert_eq!((counters.flash_programs, counters.programmed_bytes), (10, 10 * u64::from(UNIT)));
}

#[test]
fn the_cache_has_room_for_sectors_rather_than_units() {
    let mut bench = Bench::new(&config(), StartState::Fresh);
    // Four halves are as much as two units; the fifth waits for a program.
    let writes: Vec<u32> = (0..5).map(|unit| bench.start(Op::Write, start(unit), UNIT / 2)).collect();
    while bench.done.len() < 4 {
        assert!(bench.step());
    }
    assert_eq!(bench.done, writes[..4]);
    assert_eq!(bench.around.tally.counters.flash_programs, 0);
    bench.run();
    assert_eq!(bench.done, writes);
}

#[test]
fn planes_program_together_where_their_next_pages_are_the_same() {
    let took_ns = |units: [u32; 4]| {
        let write_cache = WriteCacheConfig { bytes: 1 << 20, volatile: false };
        let mut bench = Bench::new(&NandConfig { write_cache, ..config() }, StartState::Fresh);
        units.iter().for_each(|unit| _ = bench.start(Op::Write, start(*unit), UNIT));
        bench.run();
        bench.around.events.now()
    };
    let program_ns = 500_000;
    let transfers_ns = 4 * u64::from(UNIT);
    assert_eq!(took_ns([0, 8, 16, 24]), 4 * program_ns + transfers_ns, "pages of one plane go one by one");
    // Planes of the same die are four parts apart. The first write keeps the die busy, the second finds no
    // equal, the others are the second pages of both planes.
    assert_eq!(took_ns([0, 4, 8, 12]), 3 * program_ns + transfers_ns);
}

#[test]
fn what_was_never_written_is_sensed_all_the_same() {
    let mut bench = Bench::new(&config(), StartState::Fresh);
    let stages = bench.finish(Op::Read, start(3), 4096);
    assert_eq!((stages.medium, bench.around.tally.counters.flash_reads), (50_000 + 4096, 1));
}

#[test]
fn a_table_that_is_not_written_back_is_read_until_it_stays_in_memory() {
    let small = |write_back| {
        let cache = MappingCache::EntriesBytes(64);
        let mapping = MappingConfig { cache, entry_bytes: 8, write_back, ..config().mapping };
        let mut bench = Bench::new(&NandConfig { mapping, ..config() }, StartState::Fresh);
        for unit in (0..2000).map(|step| step * 7 % 2048) {
            bench.write_unit(unit);
        }
        bench.run();
        bench.check();
        let counters = &bench.around.tally.counters;
        (counters.mapping_programmed_bytes, counters.mapping_reads)
    };
    // Nothing leaves the cache of eight entries before it is full; then a changed entry of each of the two
    // parts of the table does.
    assert_eq!(small(false), (0, 8 + 2));
    assert!(small(true).0 > 0 && small(true).1 > 100, "{:?}", small(true));
}
