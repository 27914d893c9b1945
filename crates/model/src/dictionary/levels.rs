//! The levels of a search tree, and which of them are in memory.

use super::Situation;

/// One level of a search tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Nodes on the level; a root that is not needed for some record counts counts with the share of those
    /// for which it is.
    pub nodes: f64,
    /// Bytes of a node.
    pub node_bytes: f64,
    /// How much of the level a root-to-leaf path visits: 1, less for a root that only some trees have.
    pub visits: f64,
    /// Share of the visits whose node is not in memory.
    pub miss_share: f64,
}

/// The levels of a search tree, leaves first.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels(Vec<Level>);

impl Levels {
    /// A tree whose leaves have `records_per_leaf` records and whose inner nodes have `fanout` children.
    /// `cache_bytes` hold its levels from the root down, and of the first level that does not fit the most
    /// used nodes (dictionaries paper, Lemma 2: the top log(M/B) levels are cached).
    ///
    /// Summed over the levels and with uniform accesses, the misses are the paper's
    /// log_fanout(N/M) up to the rounding of one level.
    pub fn new(
        situation: &Situation,
        cache_bytes: f64,
        records_per_leaf: f64,
        leaf_bytes: f64,
        fanout: f64,
        inner_bytes: f64,
    ) -> Self {
        let records_per_leaf = records_per_leaf.max(1.0);
        let fanout = fanout.max(2.0);
        let leaves = (situation.records.count / records_per_leaf).max(1.0);
        let mut levels = vec![Level { nodes: leaves, node_bytes: leaf_bytes, visits: 1.0, miss_share: 1.0 }];
        let mut nodes = leaves;
        while nodes > 1.0 {
            // Up to `fanout` children have one root over them. A tree that just needs one more level is one
            // with few children of the root; the share keeps the height a smooth function of the record
            // count: log_fanout(leaves).
            let visits = (nodes.ln() / fanout.ln()).min(1.0);
            nodes = (nodes / fanout).max(1.0);
            levels.push(Level { nodes, node_bytes: inner_bytes, visits, miss_share: 1.0 });
            if visits < 1.0 {
                break;
            }
        }
        let mut left = cache_bytes.max(0.0);
        for level in levels.iter_mut().rev() {
            let bytes = level.nodes * level.node_bytes;
            let cached = (left / bytes).min(1.0);
            let records_per_node = situation.records.count / level.nodes;
            let hits = situation.skew.hit_share(situation.records.count, records_per_node, cached);
            level.miss_share = if cached >= 1.0 { 0.0 } else { 1.0 - hits };
            left = (left - bytes).max(0.0);
        }
        Self(levels)
    }

    /// The leaves.
    pub fn leaves(&self) -> Level {
        self.0.first().copied().unwrap_or(Level { nodes: 1.0, node_bytes: 0.0, visits: 1.0, miss_share: 0.0 })
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

    /// Nodes above the leaves that a path reads from the drive.
    pub fn inner_misses(&self) -> f64 {
        self.inner().map(|level| level.visits * level.miss_share).sum()
    }

    /// Bytes of all nodes.
    pub fn total_bytes(&self) -> f64 {
        self.0.iter().map(|level| level.nodes * level.node_bytes).sum()
    }
}
