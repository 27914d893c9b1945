//! Random numbers and a parallel drive for tests.

use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::{IoModel, Workload};

/// A pinned generator, so that a seed means the same everywhere.
pub(crate) fn generator(seed: u64) -> Pcg64 {
    Pcg64::seed_from_u64(seed)
}

/// A drive that serves up to P blocks in a step, whichever clients ask for them (dictionaries paper,
/// Definition 1).
pub(crate) struct ParallelDrive {
    pub block_bytes: f64,
    pub parallelism: f64,
    pub step_seconds: f64,
}

impl IoModel for ParallelDrive {
    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64> {
        let blocks = workload.whole_blocks(self.block_bytes);
        let busy = (workload.concurrency * blocks.max(1.0)).min(self.parallelism);
        Some(self.step_seconds * blocks / busy / workload.request_bytes)
    }
}
