//! How a leveled LSM tree moves its data: a deterministic simulation of files, picks and merges.
//!
//! A simulated tree holds keys alone, a few tens per file, and moves them as RocksDB does (MQSSD paper
//! §5.1.1):
//!
//! 1. A *flush* adds one file to level 0, which spans the whole range of keys.
//! 2. When level 0 has as many files as level 1 may have (the paper's C), all of its files are merged with
//!    all files of level 1 that they overlap.
//! 3. While a deeper level holds more than its capacity of C·F^(i-1) files, a [`Movement`] picks one of its
//!    files, which is merged with the files that it overlaps in the next level.
//!
//! [`files_touched`] counts the files that such merges touch, [`run_concurrently`] has several threads run
//! merges at the same time, as far as these share no file. Keys are uniform and unique, as those of
//! db_bench's `filluniquerandom`. Everything random comes from the seed in [`TreeShape`].

mod concurrent;
mod files_touched;
mod movement;
mod tree;

pub use concurrent::{ConcurrentOutcome, ConcurrentRun, run_concurrently};
pub use files_touched::files_touched;
pub use movement::{Candidate, FewestOverlap, Movement};
pub use tree::TreeShape;

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// A pinned generator, so that a seed means the same everywhere.
pub fn generator(seed: u64) -> Pcg64 {
    Pcg64::seed_from_u64(seed)
}
