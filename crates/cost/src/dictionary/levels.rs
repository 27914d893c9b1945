//! The levels of a search tree, and which of them are in memory.

use super::uses::{Kind, time_to_fill};
use super::{Situation, Uses};

/// Parameters that decide the number and the sizes of a search tree's levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Records in a leaf.
    pub records_per_leaf: f64,
    /// Bytes of a leaf.
    pub leaf_bytes: f64,
    /// Children of an inner node whose children are leaves.
    pub lowest_fanout: f64,
    /// Children of an inner node above these.
    pub fanout: f64,
    /// Bytes of an inner node.
    pub inner_bytes: f64,
    /// Parts of a node that are read and kept in memory on their own; 1 if nodes are read as a whole.
    pub parts: f64,
}

/// One level of a search tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Nodes on the level.
    pub nodes: f64,
    /// Bytes of a node.
    pub node_bytes: f64,
    /// How much of the level a root-to-leaf path visits: 1, less for a root that is needed for some record
    /// counts only.
    pub visits: f64,
    /// Share of the visits of queries whose node, or part of it, is not in memory.
    pub miss_share: f64,
    /// The same in the steady state, whatever the operations since the memory was empty.
    pub steady_miss_share: f64,
    /// Nodes, or parts of them that are kept in memory on their own.
    places: f64,
    /// Visits after which the memory that the level has is full; infinite if that holds all of it.
    uses_until_full: f64,
}

impl Level {
    /// A level with nothing in memory.
    pub(super) fn unread(nodes: f64, node_bytes: f64, visits: f64) -> Self {
        Self {
            nodes,
            node_bytes,
            visits,
            miss_share: 1.0,
            steady_miss_share: 1.0,
            places: nodes,
            uses_until_full: f64::INFINITY,
        }
    }

    /// Share of the visits that change a node which are the first since it was last written, if a change of
    /// the dictionary makes `visits_per_change` of them. A node is written when it leaves the memory, and at
    /// checkpoints: then as if the memory were empty.
    pub fn first_changes(&self, situation: &Situation, visits_per_change: f64) -> f64 {
        situation.changes_per_checkpoint.map_or(self.steady_miss_share, |changes| {
            let visits = (changes * visits_per_change).max(1.0);
            self.uses(situation).misses_from_empty(visits, self.uses_until_full)
        })
    }

    fn uses(&self, situation: &Situation) -> Uses {
        let count = situation.records.count;
        Uses::of(&situation.skew, count, count / self.places)
    }
}

/// The levels of a search tree, leaves first.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels(Vec<Level>);

impl Levels {
    /// The levels of a tree of this shape, in a cache of the most recently used nodes.
    ///
    /// A node of a level with few is used more often than one of a level with many, so that the upper levels
    /// are in memory (dictionaries paper, Lemma 2), but for the time that a large leaf pushes them out.
    /// Summed over the levels and with uniform accesses, the misses are the paper's log_fanout(N/M) up to the
    /// rounding of one level.
    pub fn new(situation: &Situation, cache_bytes: f64, shape: &Shape) -> Self {
        Self::in_memory(situation, cache_bytes, Self::of_shape(situation, shape), shape.parts)
    }

    /// These levels, leaves first, with unknown misses, as the memory holds them.
    pub(super) fn in_memory(
        situation: &Situation,
        cache_bytes: f64,
        mut levels: Vec<Level>,
        parts_of_node: f64,
    ) -> Self {
        for level in &mut levels {
            level.places = level.nodes * parts_of_node.max(1.0);
        }
        let visits: Vec<f64> = levels.iter().map(|level| level.visits).collect();
        Self(levels).used(situation, cache_bytes, &visits)
    }

    /// The same levels in a cache where an operation uses `nodes_used` nodes of each, leaves first.
    pub(super) fn used(mut self, situation: &Situation, cache_bytes: f64, nodes_used: &[f64]) -> Self {
        let kinds = self.0.iter().zip(nodes_used).flat_map(|(level, used)| {
            let place_bytes = level.nodes * level.node_bytes / level.places;
            let of_kind = move |kind: Kind| (kind.places * place_bytes, used * kind.share / kind.places);
            level.uses(situation).0.into_iter().map(of_kind)
        });
        let kinds: Vec<(f64, f64)> = kinds.collect();
        let holds_all = cache_bytes >= self.total_bytes();
        let operations = match holds_all {
            true => f64::INFINITY,
            false => time_to_fill(kinds.iter().copied(), cache_bytes.max(0.0)),
        };
        for (level, used) in self.0.iter_mut().zip(nodes_used) {
            let uses = level.uses(situation);
            level.uses_until_full = if holds_all { f64::INFINITY } else { operations * used };
            level.steady_miss_share = uses.misses(level.uses_until_full).clamp(0.0, 1.0);
            level.miss_share =
                situation.operations_since_empty.map_or(level.steady_miss_share, |operations| {
                    uses.misses_from_empty((operations * used).max(1.0), level.uses_until_full)
                });
        }
        self
    }

    /// Levels with nothing in memory.
    fn of_shape(situation: &Situation, shape: &Shape) -> Vec<Level> {
        let mut fanout = shape.lowest_fanout.max(2.0);
        let mut nodes = (situation.records.count / shape.records_per_leaf.max(1.0)).max(1.0);
        let mut levels = vec![Level::unread(nodes, shape.leaf_bytes, 1.0)];
        while nodes > 1.0 {
            // Up to `fanout` children have one root over them. A tree that just needs one more level is one
            // with few children of the root; the share keeps the height a smooth function of the record
            // count: 1 + log_fanout(leaves).
            let visits = (nodes.ln() / fanout.ln()).min(1.0);
            nodes = (nodes / fanout).max(1.0);
            levels.push(Level::unread(nodes, shape.inner_bytes, visits));
            fanout = shape.fanout.max(2.0);
        }
        levels
    }

    /// The leaves.
    pub fn leaves(&self) -> Level {
        // There is always a leaf: see `of_shape`.
        self.0.first().copied().unwrap_or(Level::unread(1.0, 0.0, 1.0))
    }

    /// The levels above the leaves, from the lowest up.
    pub fn inner(&self) -> impl Iterator<Item = &Level> {
        self.0.iter().skip(1)
    }

    /// All levels, leaves first.
    pub fn iter(&self) -> impl Iterator<Item = &Level> {
        self.0.iter()
    }

    /// Levels, the root counted with its share.
    pub fn height(&self) -> f64 {
        self.0.iter().map(|level| level.visits).sum()
    }

    /// Nodes that a path reads from the drive.
    pub fn misses(&self) -> f64 {
        self.0.iter().map(|level| level.visits * level.miss_share).sum()
    }

    /// Nodes above the leaves that a path reads from the drive.
    pub fn inner_misses(&self) -> f64 {
        self.inner().map(|level| level.visits * level.miss_share).sum()
    }

    /// Bytes of all nodes.
    pub fn total_bytes(&self) -> f64 {
        self.0.iter().map(|level| level.nodes * level.node_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Records;

    const SHAPE: Shape = Shape {
        records_per_leaf: 100.0,
        leaf_bytes: 10_000.0,
        lowest_fanout: 100.0,
        fanout: 100.0,
        inner_bytes: 10_000.0,
        parts: 1.0,
    };

    fn situation(count: f64) -> Situation {
        Situation::new(Records { count, key_bytes: 16.0, value_bytes: 84.0 }, 0.0, 1.0)
    }

    #[test]
    fn the_height_is_a_smooth_logarithm() {
        for (count, height) in [(50.0, 1.0), (1e4, 2.0), (1e5, 2.5), (1e6, 3.0), (1e8, 4.0)] {
            let got = Levels::new(&situation(count), 0.0, &SHAPE).height();
            assert!((got - height).abs() < 1e-9, "{count}: {got}");
        }
    }

    /// Paths to drawn leaves of a root, 100 inner nodes and 10,000 leaves, compared with a memory of the most
    /// recently used nodes.
    #[test]
    fn memory_holds_what_a_simulated_one_does() {
        use std::collections::VecDeque;

        use rand::RngExt;
        const LEAVES: usize = 10_000;
        for nodes in [30usize, 101, 1000, 5000] {
            let mut rng = crate::test_support::generator(3);
            // The times of the last uses, and the queue of all uses.
            let (mut last, mut queue) = (vec![0u64; LEAVES + 101], VecDeque::new());
            let (mut held, mut misses, mut now) = (0, [0u32; 3], 0);
            let operations = 100_000;
            for operation in 0..2 * operations {
                let leaf = rng.random_range(0..LEAVES);
                for (level, place) in [(0, leaf), (1, LEAVES + leaf / 100), (2, LEAVES + 100)] {
                    now += 1;
                    if last[place] == 0 {
                        held += 1;
                        misses[level] += u32::from(operation >= operations);
                    }
                    last[place] = now;
                    queue.push_back((now, place));
                    while held > nodes {
                        let (at, oldest) = queue.pop_front().unwrap();
                        if last[oldest] == at {
                            (last[oldest], held) = (0, held - 1);
                        }
                    }
                }
            }
            let levels = Levels::new(&situation(1e6), nodes as f64 * 10_000.0, &SHAPE);
            for (level, drawn) in levels.iter().zip(misses) {
                let drawn = f64::from(drawn) / operations as f64;
                assert!((level.miss_share - drawn).abs() < 0.02, "{nodes}: {level:?}, drawn {drawn}");
            }
        }
    }

    /// The share of first visits, compared with a drawn run from an empty memory that holds half of the
    /// leaves.
    #[test]
    fn a_run_from_an_empty_memory_is_met() {
        use rand::RngExt;
        const LEAVES: usize = 2000;
        let mut rng = crate::test_support::generator(3);
        for operations in [500usize, 2000, 20_000] {
            let mut in_memory = vec![false; LEAVES];
            let mut order: std::collections::VecDeque<usize> = std::collections::VecDeque::new();
            let mut misses = 0.0;
            for _ in 0..operations {
                let leaf = rng.random_range(0..LEAVES);
                if !in_memory[leaf] {
                    misses += 1.0;
                    in_memory[leaf] = true;
                    order.push_back(leaf);
                    if order.len() > LEAVES / 2 {
                        in_memory[order.pop_front().unwrap()] = false;
                    }
                }
            }
            let situation = Situation { operations_since_empty: Some(operations as f64), ..situation(2e5) };
            // Half of the leaves and all other nodes.
            let cache = 10_000.0 * (1000.0 + 21.0);
            let got = Levels::new(&situation, cache, &SHAPE).leaves().miss_share;
            let drawn = misses / operations as f64;
            assert!((got - drawn).abs() < 0.04, "{operations}: {got}, drawn {drawn}");
        }
    }
}
