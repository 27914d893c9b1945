//! The write path: cache, layout, read-modify-write, flushes.

use flashgrain_device::Op;

use super::harness::{Bench, nand};
use crate::config::{LayoutConfig, NandConfig, StartState, WriteCacheConfig};

const UNIT: u32 = 4096;
/// Units that one program writes, and their programming.
const ROW: u32 = 4;
const PROGRAM_NS: u64 = 16_384 + 500_000;

fn with_cache(bytes: u64, volatile: bool) -> NandConfig {
    NandConfig { write_cache: WriteCacheConfig { bytes, volatile }, ..nand() }
}

/// All chunks go to one die, row by row.
fn on_one_die(config: NandConfig) -> NandConfig {
    let layout = LayoutConfig { chunk_bytes: 65536, ..config.layout };
    NandConfig { layout, ..config }
}

#[test]
fn a_cache_takes_a_write_at_once_and_answers_reads_of_it() {
    let mut bench = Bench::new(&nand(), StartState::Filled);
    assert_eq!(bench.finish(Op::Write, 0, UNIT).sum(), 0);
    assert_eq!(bench.finish(Op::Read, 0, UNIT).medium, 0);
    let counters = &bench.around.tally.counters;
    assert_eq!((counters.write_cache_hits, counters.flash_reads, counters.flash_programs), (1, 0, 0));
    bench.check();
}

#[test]
fn full_rows_are_programmed_and_then_read_from_flash() {
    let mut bench = Bench::new(&nand(), StartState::Fresh);
    // Eight chunks of two units fill a row on each of four dies.
    bench.finish(Op::Write, 0, 65536);
    let counters = bench.around.tally.counters;
    assert_eq!((counters.flash_programs, counters.programmed_bytes), (4, 65536));
    assert_eq!([0, 1, 2, 4, 6, 8].map(|unit| bench.die(unit)), [0, 0, 1, 2, 3, 0]);
    assert_eq!(bench.ftl.writes.used, 0);
    assert_eq!(bench.finish(Op::Read, 0, UNIT).medium, 50_000 + 4096);
    bench.check();
}

#[test]
fn the_next_piece_goes_on_with_the_next_die() {
    let mut bench = Bench::new(&on_one_die(nand()), StartState::Fresh);
    for piece in 0..6 {
        bench.finish(Op::Write, piece * 65536, 65536);
    }
    assert_eq!([0, 16, 32, 48, 64, 80].map(|unit| bench.die(unit)), [0, 1, 2, 3, 0, 1]);
    // Stripes are cut at their boundaries, wherever the write begins.
    bench.finish(Op::Write, 10 * 65536 + 32768, 65536);
    assert_eq!([168, 175, 176, 183].map(|unit| bench.die(unit)), [2, 2, 3, 3]);
}

#[test]
fn rewriting_a_unit_in_an_open_row_takes_no_more_room() {
    let mut bench = Bench::new(&nand(), StartState::Fresh);
    for _ in 0..10 {
        bench.finish(Op::Write, 0, UNIT);
    }
    assert_eq!((bench.ftl.writes.used, bench.around.tally.counters.flash_programs), (1, 0));
    bench.check();
}

#[test]
fn small_writes_go_to_few_dies_block_by_block_and_are_read_with_less_parallelism() {
    let layout = LayoutConfig { desirable_write_bytes: 65536, small_write_dies: 2, ..nand().layout };
    let config = NandConfig { layout, ..nand() };
    let mut bench = Bench::new(&config, StartState::Fresh);
    let units_per_block = 32;
    for unit in 0..4 * units_per_block {
        bench.finish(Op::Write, u64::from(unit * UNIT), UNIT);
    }
    let dies = |units: std::ops::Range<u32>| {
        let mut dies: Vec<u32> = units.map(|unit| bench.die(unit)).collect();
        dies.sort_unstable();
        dies.dedup();
        dies
    };
    assert_eq!(dies(0..2 * units_per_block), [0, 1]);
    assert_eq!(dies(2 * units_per_block..4 * units_per_block), [2, 3]);
    let small = bench.finish(Op::Read, 0, 65536).sum();
    bench.finish(Op::Write, 1 << 20, 65536);
    let striped = bench.finish(Op::Read, 1 << 20, 65536).sum();
    // Two rows on each of two dies, or one on each of four.
    assert!(small >= striped + 30_000, "{small} {striped}");
    bench.check();
}

#[test]
fn what_was_written_in_part_is_completed_from_flash_before_it_is_programmed() {
    // All small writes go to the same row.
    let layout = LayoutConfig { desirable_write_bytes: 65536, ..nand().layout };
    let config = NandConfig { layout, ..nand() };
    let mut bench = Bench::new(&config, StartState::Filled);
    bench.finish(Op::Write, 0, 512);
    bench.finish(Op::Write, u64::from(UNIT), UNIT * (ROW - 2));
    assert_eq!(bench.around.tally.counters.flash_reads, 0);
    let begin = bench.around.events.now();
    bench.finish(Op::Write, u64::from(UNIT * (ROW - 1)), UNIT);
    assert_eq!(bench.around.tally.counters.flash_reads, 1);
    assert_eq!(bench.around.events.now() - begin, 50_000 + 4096 - 512 + PROGRAM_NS);
    bench.check();

    // Whole in the end: nothing to read.
    let mut whole = Bench::new(&config, StartState::Filled);
    for sector in 0..8 {
        whole.finish(Op::Write, sector * 512, 512);
    }
    whole.finish(Op::Write, u64::from(UNIT), UNIT * (ROW - 1));
    // Never written before: neither.
    let mut fresh = Bench::new(&config, StartState::Fresh);
    fresh.finish(Op::Write, 512, UNIT * ROW - 1024);
    for bench in [whole, fresh] {
        assert_eq!(bench.around.tally.counters.flash_programs, 1);
        assert_eq!(bench.around.tally.counters.flash_reads, 0);
        bench.check();
    }
}

#[test]
fn regression_rows_of_a_block_are_programmed_in_their_order() {
    let layout = LayoutConfig { desirable_write_bytes: 65536, ..nand().layout };
    let mut bench = Bench::new(&NandConfig { layout, ..nand() }, StartState::Filled);
    // The first row must wait for a part of its first unit, the second must not.
    bench.start(Op::Write, 0, 512);
    bench.start(Op::Write, u64::from(UNIT), UNIT * (ROW - 1));
    bench.start(Op::Write, u64::from(UNIT * ROW), UNIT * ROW);
    while bench.around.tally.counters.flash_programs == 0 {
        assert!(bench.step());
    }
    bench.finish(Op::Read, 0, UNIT);
    assert_eq!(bench.around.tally.counters.write_cache_hits, 0, "the first row is on flash");
    bench.check();
}

#[test]
fn a_full_cache_makes_writes_wait_in_their_order() {
    let mut bench = Bench::new(&on_one_die(with_cache(u64::from(ROW * UNIT), false)), StartState::Fresh);
    // The first fills the cache; the second is taken when its row is programmed, the third with it.
    let writes = [(0, 4), (16, 2), (20, 1)]
        .map(|(unit, units)| bench.start(Op::Write, u64::from(unit * UNIT), units * UNIT));
    bench.run();
    assert_eq!(bench.done, writes);
    let waits = writes.map(|write| bench.around.commands[write].stages.wait);
    assert_eq!(waits, [0, PROGRAM_NS, PROGRAM_NS]);
    bench.check();
}

#[test]
fn a_write_larger_than_the_cache_passes_through_it_row_by_row() {
    let mut bench = Bench::new(&on_one_die(with_cache(u64::from(2 * ROW * UNIT), false)), StartState::Fresh);
    let stages = bench.finish(Op::Write, 0, 65536);
    // Two of four rows have to be programmed first; the transfers of all are one after another.
    assert_eq!(stages.wait, 2 * PROGRAM_NS);
    assert_eq!(bench.ftl.writes.used, 0);
}

#[test]
fn a_cache_that_is_full_of_unfinished_rows_pads_one() {
    let mut bench = Bench::new(&with_cache(u64::from(ROW * UNIT), false), StartState::Fresh);
    for unit in [0, 2, 4, 6, 8] {
        bench.start(Op::Write, u64::from(unit * UNIT), UNIT);
    }
    bench.run();
    assert_eq!(bench.done.len(), 5);
    assert_eq!(bench.around.tally.counters.programmed_bytes, 16_384);
    bench.check();
}

#[test]
fn without_a_cache_a_write_is_done_when_it_is_programmed() {
    let mut bench = Bench::new(&on_one_die(with_cache(0, true)), StartState::Fresh);
    let stages = bench.finish(Op::Write, 0, UNIT);
    assert_eq!((stages.medium, stages.wait), (4096 + 500_000, 0));
    let counters = &bench.around.tally.counters;
    assert_eq!((counters.flash_programs, counters.programmed_bytes), (1, 16_384));
    // Two rows on one die, one after another.
    assert_eq!(bench.finish(Op::Write, 65536, 2 * ROW * UNIT).sum(), 2 * PROGRAM_NS);
    assert_eq!(bench.finish(Op::Flush, 0, 0).sum(), 0);
    bench.check();
}

#[test]
fn a_flush_programs_what_is_in_unfinished_rows_and_leaves_it_there() {
    let mut bench = Bench::new(&with_cache(1 << 20, true), StartState::Fresh);
    bench.finish(Op::Write, 0, UNIT);
    bench.finish(Op::Write, 8 * u64::from(UNIT), UNIT);
    assert_eq!(bench.unsettled(), [1, 2]);
    let flush = bench.finish(Op::Flush, 0, 0);
    assert_eq!((flush.medium, flush.wait), (2 * 4096 + 500_000, 0));
    assert!(bench.unsettled().is_empty());
    let counters = bench.around.tally.counters;
    assert_eq!((counters.journal_programmed_bytes, counters.programmed_bytes), (8192, 0));
    // Nothing is left to do, unless something is written again.
    assert_eq!(bench.finish(Op::Flush, 0, 0).sum(), 0);
    bench.finish(Op::Write, 0, UNIT);
    assert_eq!(bench.finish(Op::Flush, 0, 0).medium, 4096 + 500_000);
    assert!(bench.unsettled().is_empty());
    // The units go to flash in their rows, in the end.
    bench.finish(Op::Write, 0, 65536);
    assert_eq!(bench.around.tally.counters.flash_programs, 2 + 3);
    // All but the units that are again in rows that are not full.
    assert_eq!(bench.unsettled(), [4]);
    bench.check();
}

#[test]
fn a_flush_waits_for_rows_that_are_being_programmed() {
    let mut bench = Bench::new(&on_one_die(with_cache(1 << 20, true)), StartState::Fresh);
    bench.start(Op::Write, 0, ROW * UNIT);
    let flush = bench.start(Op::Flush, 0, 0);
    bench.run();
    assert_eq!(bench.around.commands[flush].stages.sum(), PROGRAM_NS);
    assert!(bench.unsettled().is_empty());
}

#[test]
fn a_durable_write_is_done_when_it_survives() {
    let mut bench = Bench::new(&with_cache(1 << 20, true), StartState::Fresh);
    assert_eq!(bench.finish(Op::WriteDsync, 0, UNIT).medium, 4096 + 500_000);
    assert!(bench.unsettled().is_empty());
    let mut with_capacitors = Bench::new(&with_cache(1 << 20, false), StartState::Fresh);
    assert_eq!(with_capacitors.finish(Op::WriteDsync, 0, UNIT).sum(), 0);
    assert_eq!(with_capacitors.finish(Op::Flush, 0, 0).sum(), 0);
    assert_eq!(with_capacitors.around.tally.counters.journal_programmed_bytes, 0);
}

#[test]
fn the_journal_is_recycled() {
    let mut bench = Bench::new(&with_cache(1 << 20, true), StartState::Fresh);
    // Four dies of eight rows each.
    for _ in 0..32 {
        bench.finish(Op::WriteDsync, 0, UNIT);
    }
    assert_eq!(bench.around.tally.counters.erases, 4);
}

#[test]
fn discarded_units_are_nowhere_and_cost_no_collection() {
    let mut bench = Bench::new(&nand(), StartState::Filled);
    // Parts of units stay.
    bench.finish(Op::Discard, 512, 4 * UNIT);
    assert_eq!([0, 1, 3, 4].map(|unit| bench.place(unit).is_some()), [true, false, false, true]);
    assert_eq!(bench.finish(Op::Read, u64::from(UNIT), UNIT).medium, 0);
    bench.check();
    // A discard also removes data from the cache.
    bench.finish(Op::Write, 0, 2 * UNIT);
    bench.finish(Op::Discard, 0, 16 << 20);
    assert!((0..4096).all(|unit| bench.place(unit).is_none()));
    bench.check();
    for unit in 0..3 * 4096_u32 {
        bench.write_unit(unit * 7 % 4096);
    }
    bench.run();
    bench.check();
    let counters = &bench.around.tally.counters;
    assert!(counters.erases > 100 && counters.moved_units < 4096, "{counters:?}");
}

#[test]
fn a_discard_of_a_filled_drive_needs_no_memory() {
    let mut bench = Bench::new(&nand(), StartState::Filled);
    bench.finish(Op::Write, 0, UNIT);
    assert_eq!(bench.ftl.mapping.tables(), 1);
    bench.finish(Op::Discard, 0, 16 << 20);
    assert_eq!(bench.ftl.mapping.tables(), 0);
}
