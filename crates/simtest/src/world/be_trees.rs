//! How the Bε-trees of a store are kept, if nothing else is said.

use std::fmt;

use flashgrain::BeTreeOptions;
use flashgrain::testing::{TreesOf, be_trees_of};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x6265_7472_6565;

/// Trees are deep though they have few records.
const NODE_BYTES: [u64; 2] = [8 << 10, 32 << 10];

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct BeTrees {
    node_bytes: u64,
    fanout: u32,
    eager_jobs: bool,
}

impl BeTrees {
    /// Drawn.
    pub fn draw(seed: u64) -> Self {
        let mut random = Pcg64::seed_from_u64(seed ^ STREAM);
        let node_bytes = NODE_BYTES[random.random_range(0..NODE_BYTES.len())];
        let fanout = [2, 4, 4, 8][random.random_range(0..4)];
        Self { node_bytes, fanout, eager_jobs: random.random() }
    }

    /// Trees are made like this on this thread, as long as the returned value lives.
    pub fn make(self) -> TreesOf {
        be_trees_of(BeTreeOptions::new().node_bytes(self.node_bytes).fanout(self.fanout), self.eager_jobs)
    }
}

impl fmt::Display for BeTrees {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node_bytes, fanout, eager_jobs } = self;
        let eager = if *eager_jobs { " that make room early" } else { "" };
        write!(formatter, "Bε-trees of fanout {fanout}, with nodes of {node_bytes} bytes{eager}")
    }
}
