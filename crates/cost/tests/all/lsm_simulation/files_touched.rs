//! Files that a compaction touches, as a function of the fanout (MQSSD paper §5.2.1).

use super::movement::Movement;
use super::tree::{Tree, TreeShape};

/// Files that compactions of one file touched, as counted in a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
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

#[cfg(test)]
mod tests {
    use super::super::movement::{Candidate, FewestOverlap, Oldest, RoundRobin};
    use super::*;

    fn shape(seed: u64) -> TreeShape {
        TreeShape { fanout: 2.0, level_one_files: 4, levels_max: 20, keys_per_file: 64, seed }
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
