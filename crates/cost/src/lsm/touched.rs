//! How many files a compaction touches (MQSSD paper §5.2.1).

use serde::{Deserialize, Serialize};

/// Files touched per file moved into a full level: the line fitted to the files that simulated compactions
/// touch under RocksDB's policy and with uniform unique inserts (F = 2 to 32, C = 4). The MQSSD paper §5.2.1
/// has the same form and does not print its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TouchedLine {
    /// Files touched at F = 0.
    pub intercept: f64,
    /// Files touched per unit of F.
    pub slope: f64,
}

impl TouchedLine {
    /// Of a tree that moves the file which overlaps the fewest files of the next level.
    pub const FEWEST_OVERLAP: Self = Self { intercept: 1.39, slope: 0.391 };

    /// Files read, and written, per file moved into a level that is `fanout` times as large; at least the
    /// file itself.
    pub fn at(&self, fanout: f64) -> f64 {
        (self.intercept + self.slope * fanout).max(1.0)
    }
}
