//! How many files a compaction touches (MQSSD paper §5.2.1).

use serde::{Deserialize, Serialize};

/// Files touched per file moved into a full level: the line that
/// [`files_touched_line`](super::simulation::files_touched_line) fits for RocksDB's policy and uniform unique
/// inserts (F = 2 to 32, C = 4). The MQSSD paper §5.2.1 has the same form and does not print its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TouchedLine {
    /// Files touched at F = 0.
    pub intercept: f64,
    /// Files touched per unit of F.
    pub slope: f64,
}

impl TouchedLine {
    /// The simulation's for [`FewestOverlap`](super::simulation::FewestOverlap).
    pub const FEWEST_OVERLAP: Self = Self { intercept: 1.39, slope: 0.391 };

    /// Files read, and written, per file moved into a level that is `fanout` times as large; at least the
    /// file itself.
    pub fn at(&self, fanout: f64) -> f64 {
        (self.intercept + self.slope * fanout).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{FewestOverlap, TreeShape, files_touched_line};
    use super::*;

    #[test]
    fn the_line_of_files_touched_is_the_simulations() {
        let shape = TreeShape { fanout: 2.0, level_one_files: 4, levels_max: 20, keys_per_file: 64, seed: 9 };
        let fanouts = [2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0, 24.0, 32.0];
        let simulated = files_touched_line(&shape, &fanouts, 1000, &mut FewestOverlap).unwrap();
        for fanout in fanouts {
            let line = TouchedLine::FEWEST_OVERLAP.at(fanout);
            assert!((line / simulated.touched().at(fanout) - 1.0).abs() < 0.02, "{fanout}: {line}");
        }
    }
}
