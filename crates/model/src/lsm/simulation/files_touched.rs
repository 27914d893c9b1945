//! Files that a compaction touches, as a function of the fanout (MQSSD paper §5.2.1).

use serde::{Deserialize, Serialize};

use super::movement::Movement;
use super::tree::{Tree, TreeShape};
use crate::lsm::TouchedLine;
use crate::{Error, Line, line_fit};

/// Files that compactions of one file touched, as counted in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilesTouched {
    /// The paper's F.
    pub fanout: f64,
    /// Mean number of files that are read per file moved, which is one of them.
    pub mean: f64,
    /// Compactions counted: those between levels from 1 on whose lower one was full.
    pub compactions: usize,
}

/// Simulates `files` flushes one after another, each followed by all compactions that it causes, and counts
/// the files that compactions of one file into a full level touch.
///
/// A level counts as full from nine tenths of its capacity on, since the last level of a growing tree is
/// smaller than its capacity and says nothing about F. `None` if no compaction had a full level below it.
pub fn files_touched(shape: &TreeShape, files: usize, movement: &mut dyn Movement) -> Option<FilesTouched> {
    let mut tree = Tree::new(*shape);
    let (mut compactions, mut touched) = (0, 0);
    for _ in 0..files {
        tree.flush();
        while let Some(level) = tree.overfull_levels().first().copied() {
            let compaction = tree.start(level, movement)?;
            tree.finish(&compaction);
            if level > 0 && compaction.into_full_level {
                compactions += 1;
                touched += 1 + compaction.lower.len();
            }
        }
    }
    let mean = touched as f64 / compactions as f64;
    (compactions > 0).then_some(FilesTouched { fanout: shape.fanout, mean, compactions })
}

/// The line through the files touched at several fanouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilesTouchedLine {
    /// The counts.
    pub points: Vec<FilesTouched>,
    /// Files touched over F; its R² is the paper's figure of 0.974.
    pub line: Line,
}

impl FilesTouchedLine {
    /// The line for the formulas of a tree that moves its files by that policy. A constant that the counts do
    /// not determine is zero.
    pub fn touched(&self) -> TouchedLine {
        TouchedLine {
            intercept: self.line.intercept.value().unwrap_or(0.0),
            slope: self.line.slope.value().unwrap_or(0.0),
        }
    }
}

/// Simulates each fanout with the shape's other numbers and fits a line.
///
/// # Errors
/// [`Error::Samples`] if fewer than two fanouts fill a level within `files` flushes.
pub fn files_touched_line(
    shape: &TreeShape,
    fanouts: &[f64],
    files: usize,
    movement: &mut dyn Movement,
) -> Result<FilesTouchedLine, Error> {
    let at = |fanout: &f64| files_touched(&TreeShape { fanout: *fanout, ..*shape }, files, movement);
    let points: Vec<FilesTouched> = fanouts.iter().filter_map(at).collect();
    let pairs: Vec<(f64, f64)> = points.iter().map(|point| (point.fanout, point.mean)).collect();
    Ok(FilesTouchedLine { line: line_fit(&pairs, RESAMPLES, shape.seed)?, points })
}

/// Resamples behind the intervals of the line.
const RESAMPLES: u32 = 200;

#[cfg(test)]
mod tests {
    use super::super::movement::{Candidate, FewestOverlap, Oldest, RoundRobin};
    use super::*;

    const FANOUTS: [f64; 10] = [2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0, 24.0, 32.0];

    fn shape(seed: u64) -> TreeShape {
        TreeShape { fanout: 2.0, level_one_files: 4, levels_max: 20, keys_per_file: 64, seed }
    }

    #[test]
    fn files_touched_grow_linearly_with_the_fanout() {
        for seed in [1, 2, 3] {
            let touched = files_touched_line(&shape(seed), &FANOUTS, 1000, &mut FewestOverlap).unwrap();
            println!("seed {seed}: files touched {:?}", touched.line);
            for point in &touched.points {
                println!(
                    "  F {:>4}: {:>6.2}, line {:>6.2}, {} compactions",
                    point.fanout,
                    point.mean,
                    touched.touched().at(point.fanout),
                    point.compactions
                );
            }
            assert_eq!(touched.points.len(), FANOUTS.len());
            assert!(touched.line.r_squared.unwrap() >= 0.95);
        }
    }

    #[test]
    fn any_policy_can_be_put_in_and_the_papers_is_better_than_none() {
        /// Always the first file of the level.
        struct First;
        impl Movement for First {
            fn pick(&mut self, _: usize, _: &[Candidate]) -> usize {
                0
            }
        }
        let shape = TreeShape { fanout: 10.0, ..shape(5) };
        let count = |movement: &mut dyn Movement| files_touched(&shape, 1000, movement).unwrap().mean;
        let (fewest, first) = (count(&mut FewestOverlap), count(&mut First));
        let (oldest, round_robin) = (count(&mut Oldest), count(&mut RoundRobin::default()));
        println!(
            "F 10: fewest {fewest:.2}, oldest {oldest:.2}, round robin {round_robin:.2}, first {first:.2}"
        );
        // A file of a full level spans F files below; policies that take turns or choose find emptier ranges.
        for policy in [fewest, oldest, round_robin] {
            assert!(policy < 1.0 + shape.fanout && policy < first);
        }
    }
}
