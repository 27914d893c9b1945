//! The read path.

use flashgrain_device::Op;

use super::harness::{Bench, nand};
use crate::config::{LayoutConfig, MappingConfig, NandConfig, StartState};

#[test]
fn an_idle_read_takes_sensing_and_the_transfer_of_what_was_asked_for() {
    let mut bench = Bench::new(&nand(), StartState::Filled);
    for (offset, length) in [(0, 4096), (512, 512), (8192 + 1024, 2048)] {
        let stages = bench.finish(Op::Read, offset, length);
        assert_eq!((stages.medium, stages.link), (50_000 + u64::from(length), u64::from(length)));
        assert_eq!(stages.sum(), stages.medium + stages.link);
    }
    assert_eq!(bench.around.tally.counters.flash_reads, 3);
}

#[test]
fn units_of_a_row_are_read_together_and_chunks_on_different_dies_at_the_same_time() {
    let mut bench = Bench::new(&nand(), StartState::Filled);
    // One chunk.
    assert_eq!(bench.finish(Op::Read, 0, 8192).medium, 50_000 + 8192);
    assert_eq!(bench.around.tally.counters.flash_reads, 1);
    // Rows hold two chunks, which are four chunks apart: 8 chunks are a row on each of 4 dies, of which two
    // share a channel.
    let stages = bench.finish(Op::Read, 0, 65536);
    assert_eq!(bench.around.tally.counters.flash_reads, 1 + 4);
    assert_eq!((stages.medium, stages.wait), (50_000 + 16384, 16384));
}

#[test]
fn a_read_across_chunks_is_twice_as_parallel() {
    let layout = LayoutConfig { chunk_bytes: 65536, ..nand().layout };
    let mut bench = Bench::new(&NandConfig { layout, ..nand() }, StartState::Filled);
    let inside = bench.finish(Op::Read, 0, 65536);
    let across = bench.finish(Op::Read, 32768, 65536);
    // Four rows of 16 KiB on one die, or two on each of two.
    assert_eq!((inside.medium + inside.wait, across.medium + across.wait), (4 * 66_384, 2 * 66_384));
}

#[test]
fn what_was_never_written_is_answered_at_once() {
    let mut bench = Bench::new(&nand(), StartState::Fresh);
    assert_eq!(bench.finish(Op::Read, 4096, 8192).sum(), 8192);
    assert_eq!(bench.around.tally.counters.flash_reads, 0);
}

#[test]
fn lookups_and_joined_pages_take_controller_time() {
    let mapping = MappingConfig { lookup_ns: 300, ..nand().mapping };
    let config = NandConfig { mapping, misaligned_read_us: 10.0, ..nand() };
    let mut bench = Bench::new(&config, StartState::Filled);
    let aligned = bench.finish(Op::Read, 8192, 8192);
    assert_eq!((aligned.mapping, aligned.controller), (300, 0));
    for (offset, length) in [(8192, 4096), (4096, 4096), (4096, 8192)] {
        let misaligned = bench.finish(Op::Read, offset, length);
        assert_eq!((misaligned.mapping, misaligned.controller), (300, 10_000));
    }
}
