//! The advised configuration.

use flashgrain_model::Access;

use super::super::tuned::Tuned;
use super::configuration::{DEFAULT, MEBI, MEMTABLES, RocksDb};
use crate::drive::Drive;

/// Larger memtables than the default's take at most this part of the memory, all of them.
const MEMTABLES_FRACTION: f64 = 0.25;
/// Where a memtable of the default's size is larger than the memory, it takes this part.
const SMALL_FRACTION: f64 = 0.25;
const MEMTABLE_BYTES: [f64; 3] = [64.0 * MEBI, 128.0 * MEBI, 256.0 * MEBI];
/// The smallest that is advised where memory has no room for the default's.
const MEMTABLE_BYTES_MIN: f64 = MEBI;
const LEVEL_ZERO_FILES: [f64; 3] = [2.0, 4.0, 8.0];
const FANOUTS: [f64; 6] = [4.0, 6.0, 8.0, 10.0, 12.0, 16.0];
/// Larger ones make scans read more than they need, which no formula has: of 50 KiB, blocks of 32 KiB read
/// 112 KiB of all runs, those of 16 KiB 91 and those of 4 KiB 81, and were slower in one of three pairs.
const BLOCK_BYTES: [f64; 3] = [4096.0, 8192.0, 16384.0];
const FILTER_BITS: [f64; 2] = [0.0, 10.0];
/// Rounds over all settings: each is chosen with the others as they are then.
const ROUNDS: usize = 2;
/// Jobs beyond this need processors that the model does not know.
const JOBS_MAX: f64 = 16.0;

/// Chooses each setting with the others as they are, in rounds.
pub(super) fn choose(tuned: &mut Tuned<'_, RocksDb>) {
    (0..ROUNDS).for_each(|_| choose_each(tuned));
}

fn choose_each(tuned: &mut Tuned<'_, RocksDb>) {
    let memory = tuned.workload.memory_bytes as f64;
    let most = memory * MEMTABLES_FRACTION / MEMTABLES;
    let memtables: Vec<f64> = MEMTABLE_BYTES.into_iter().filter(|bytes| *bytes <= most).collect();
    tuned.advised.filter_bits =
        tuned.best(&FILTER_BITS, DEFAULT.filter_bits, |rocks, bits| rocks.filter_bits = bits);
    // Less than the default only where there is no room for it: the sizes of levels follow from it, and
    // many small ones are merged more often than the cache that is spared is worth. With memtables of a
    // quarter of the default's size, updates ran at 0.5 to 0.9 of its rate (docs/advise.md). Both memtables
    // are full only for moments.
    tuned.advised.memtable_bytes = match DEFAULT.memtable_bytes > memory {
        true => (memory * SMALL_FRACTION).log2().floor().exp2().max(MEMTABLE_BYTES_MIN),
        false => tuned.best(&memtables, DEFAULT.memtable_bytes, |rocks, bytes| rocks.memtable_bytes = bytes),
    };
    tuned.advised.level_zero_files =
        tuned
            .best(&LEVEL_ZERO_FILES, DEFAULT.level_zero_files, |rocks, files| rocks.level_zero_files = files);
    tuned.advised.fanout = tuned.best(&FANOUTS, DEFAULT.fanout, |rocks, fanout| rocks.fanout = fanout);
    tuned.advised.block_bytes =
        tuned.best(&BLOCK_BYTES, DEFAULT.block_bytes, |rocks, bytes| rocks.block_bytes = bytes);
    if let Some(most) = jobs_max(tuned.drive) {
        let jobs: Vec<f64> = [4.0, 6.0, 8.0, 12.0, 16.0].into_iter().filter(|jobs| *jobs <= most).collect();
        tuned.advised.jobs = tuned.best(&jobs, DEFAULT.jobs, |rocks, jobs| rocks.jobs = jobs);
        let parts: Vec<f64> = [2.0, 4.0, 8.0].into_iter().filter(|parts| *parts <= most).collect();
        tuned.advised.subcompactions =
            tuned.best(&parts, DEFAULT.subcompactions, |rocks, parts| rocks.subcompactions = parts);
    }
}

/// Background jobs that the drive can reward; `None` if the profile has no costs of writes.
pub(super) fn jobs_max(drive: &Drive) -> Option<f64> {
    drive
        .is_measured(Access::Write)
        .then(|| (drive.costs().write_concurrency() * 4.0 / 3.0).ceil().clamp(2.0, JOBS_MAX))
}
