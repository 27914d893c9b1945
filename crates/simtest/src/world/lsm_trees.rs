//! How the LSM-trees of a store are kept, and how long its segments are, if nothing else is said.

use std::cell::Cell;
use std::fmt;

use flashgrain::testing::{Small, TreesOf, lsm_trees_of};
use flashgrain::{LsmLayout, LsmOptions};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x006c_736d;

const LAYOUTS: [LsmLayout; 4] =
    [LsmLayout::Leveled, LsmLayout::Tiered, LsmLayout::LazyLeveled, LsmLayout::SingleLevel];

/// Short segments are by this shorter than usual ones: little is a table then, and levels become deep.
const SHORTER: u64 = 4;

thread_local! {
    static SHORT_SEGMENTS: Cell<bool> = const { Cell::new(false) };
}

/// Bytes of the segments of stores that are made on this thread.
pub fn segment_bytes() -> u64 {
    let usual = Small::default().segment_bytes;
    if SHORT_SEGMENTS.get() { usual / SHORTER } else { usual }
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct LsmTrees {
    layout: LsmLayout,
    fanout: u32,
    level_zero_runs: u32,
    filter_bits: u32,
    jobs: u32,
    eager_jobs: bool,
    parts: u32,
    table_segments: u64,
    has_short_segments: bool,
}

/// Trees are made so on this thread, as long as this lives.
#[must_use]
pub struct LsmTreesOf {
    _trees: TreesOf,
    had_short_segments: bool,
}

impl Drop for LsmTreesOf {
    fn drop(&mut self) {
        SHORT_SEGMENTS.set(self.had_short_segments);
    }
}

impl LsmTrees {
    /// Drawn.
    pub fn draw(seed: u64) -> Self {
        let mut random = Pcg64::seed_from_u64(seed ^ STREAM);
        Self {
            layout: LAYOUTS[random.random_range(0..LAYOUTS.len())],
            fanout: random.random_range(2..9),
            level_zero_runs: [1, 1, 2, 3, 4][random.random_range(0..5)],
            filter_bits: [0, 5, 10][random.random_range(0..3)],
            jobs: random.random_range(1..5),
            eager_jobs: random.random(),
            parts: random.random_range(1..9),
            table_segments: [1, 1, 1, 2, 3][random.random_range(0..5)],
            has_short_segments: random.random(),
        }
    }

    /// See [`LsmTreesOf`].
    pub fn make(self) -> LsmTreesOf {
        let had_short_segments = SHORT_SEGMENTS.replace(self.has_short_segments);
        let options = LsmOptions::new()
            .layout(self.layout)
            .fanout(self.fanout)
            .level_zero_runs(self.level_zero_runs)
            .filter_bits_per_key(self.filter_bits.into())
            .jobs(self.jobs)
            .parts(self.parts)
            .table_bytes(self.table_segments * segment_bytes());
        LsmTreesOf { _trees: lsm_trees_of(options, self.eager_jobs), had_short_segments }
    }
}

impl fmt::Display for LsmTrees {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layout, fanout, level_zero_runs, filter_bits, jobs, parts, table_segments, .. } = self;
        let eager = if self.eager_jobs { "eager " } else { "" };
        let length = if self.has_short_segments { "short" } else { "usual" };
        write!(
            formatter,
            "{layout:?} LSM-trees of fanout {fanout}, {level_zero_runs} runs of level 0, {jobs} {eager}jobs of {parts} \
             parts, filters of {filter_bits} bits and tables of {table_segments} {length} segments"
        )
    }
}
