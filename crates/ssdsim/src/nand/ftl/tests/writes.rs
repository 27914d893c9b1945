//! The write path.

use flashgrain_device::Op;

use super::harness::{Bench, nand};
use crate::config::{LayoutConfig, NandConfig, StartState, WriteCacheConfig};

const UNIT: u64 = 4096;

#[test]
fn a_cache_takes_a_write_at_once_and_answers_reads_of_it() {
    let mut bench = Bench::new(&nand(), StartState::Filled);
    assert_eq!(bench.finish(Op::Write, 0, 4096).sum(), 0);
    assert_eq!(bench.finish(Op::Read, 0, 4096).medium, 0);
    let counters = &bench.around.tally.counters;
    assert_eq!((counters.write_cache_hits, counters.flash_reads, counters.flash_programs), (1, 0, 0));
    bench.check();
}
