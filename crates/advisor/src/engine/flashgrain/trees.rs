//! The trees that a store may have, each with its best parameters, and which of them is advised.

use flashgrain_cost::Interval;
use flashgrain_cost::ranking::Bound;
use flashgrain_settings::{BeTreeDesign, BeTreeSurroundings, drive as decided};
use serde::Serialize;

use super::super::tuned::{Tuned, is_safe_gain};
use super::model::{DEFAULT, KIBI, Store, TreeStructure};
use crate::drive::Drive;
use crate::workload::Workload;

pub(super) type Ours<'a> = Tuned<'a, Store>;

const NODE_BYTES: [f64; 5] = [4.0 * KIBI, 8.0 * KIBI, 16.0 * KIBI, 32.0 * KIBI, 64.0 * KIBI];
/// Numbers of blocks per node that are tried, up to the number that the drive serves in the time of one.
const NODE_BLOCKS: [u32; 4] = [2, 4, 8, 16];
/// Bytes of a node, all its blocks together.
const NODE_BYTES_MAX: f64 = 64.0 * KIBI;
/// Simulated trees count within 15 % of the prices.
const KIND_GAIN_MIN: f64 = 1.15;
/// Bytes of a Bε-tree's pivot without its key.
const PIVOT_BYTES: f64 = 22.0;
/// Size of the requests whose parallelism the profile has.
const STREAM_BYTES: u64 = 64 << 10;

/// A tree of a store with its predictions.
#[derive(Clone, Debug, Serialize)]
pub struct PredictedTree {
    /// Its structure and parameters, in words.
    pub name: String,
    /// Whether it is the one that is advised.
    pub is_advised: bool,
    /// Operations per second.
    pub rate_per_second: Interval,
    /// The bottleneck.
    pub bound: Bound,
    /// Time of an operation.
    pub latency_us: f64,
    /// Requests to read, of the average operation.
    pub reads: f64,
    /// Bytes that these read.
    pub read_bytes: f64,
    /// Bytes that the drive writes for the average operation, the log's included.
    pub written_bytes: f64,
    /// Space over that of the records.
    pub space_amplification: f64,
}

impl PredictedTree {
    /// The cost of the average operation, in words.
    pub(super) fn describe(&self) -> String {
        format!(
            "{}: {:.0} operations/s, {:.0} µs each; {:.3} reads of {:.0} bytes together, {:.0} bytes written; {:.2} times the space of the records",
            self.name,
            self.rate_per_second.value,
            self.latency_us,
            self.reads,
            self.read_bytes,
            self.written_bytes,
            self.space_amplification
        )
    }

    pub(super) fn of(tuned: &Ours<'_>, store: &Store) -> Self {
        let priced = tuned.priced(store);
        Self {
            name: store.describe(),
            is_advised: false,
            rate_per_second: tuned.rate(store),
            bound: priced.bound,
            latency_us: priced.latency_s * 1e6,
            reads: priced.reads,
            read_bytes: priced.read_bytes,
            written_bytes: priced.written_bytes,
            space_amplification: store.space_amplification(tuned.workload),
        }
    }
}

/// The trees.
pub(super) struct Trees<'a> {
    pub b_tree: Ours<'a>,
    pub lsm_tree: Ours<'a>,
    pub be_tree: Ours<'a>,
    /// `None` on a drive that serves one block at a time.
    pub of_blocks: Option<Ours<'a>>,
}

impl<'a> Trees<'a> {
    pub fn new(workload: &'a Workload, drive: &'a Drive) -> Self {
        let of = |structure| {
            let advised = Store { structure, ..Store::advised(workload, drive) };
            let default = Store { cache_bytes: advised.cache_bytes, ..DEFAULT };
            Tuned { default, advised, workload, drive }
        };
        let mut b_tree = of(TreeStructure::BTree);
        b_tree.advised.node_bytes =
            b_tree.best(&NODE_BYTES, DEFAULT.node_bytes, |store, bytes| store.node_bytes = bytes);
        // Structure and node size are chosen together.
        let fastest = |structures: Vec<TreeStructure>| {
            let mut tuned = of(*structures.first()?);
            let stores = structures.iter().flat_map(|structure| {
                let store = Store { structure: *structure, ..tuned.advised.clone() };
                NODE_BYTES.into_iter().map(move |node_bytes| Store { node_bytes, ..store.clone() })
            });
            let possible: Vec<Store> = stores.filter(|store| store.is_possible(workload)).collect();
            tuned.advised = tuned.fastest(possible)?;
            Some(tuned)
        };
        let be_tree = |BeTreeDesign { node_bytes, fanout }| TreeStructure::BeTree { node_bytes, fanout };
        let be_trees = BeTreeDesign::candidates().map(be_tree);
        let served = parallelism(drive);
        let of_blocks = NODE_BLOCKS.into_iter().filter(|blocks| *blocks <= served);
        Self {
            lsm_tree: fastest(b_tree.advised.lsm_trees_for(workload))
                .unwrap_or_else(|| of(TreeStructure::BTree)),
            b_tree,
            be_tree: fastest(be_trees.collect()).unwrap_or_else(|| of(be_tree(BeTreeDesign::USUAL))),
            of_blocks: fastest(of_blocks.map(|blocks| TreeStructure::BTreeOfBlocks { blocks }).collect()),
        }
    }

    /// All, B+-trees first.
    pub fn all(&self) -> impl Iterator<Item = &Ours<'a>> {
        std::iter::once(&self.b_tree).chain(&self.of_blocks).chain([&self.be_tree, &self.lsm_tree])
    }

    /// Rate of a tree over that of the B+-tree.
    pub fn gain(&self, tree: &Ours<'_>) -> Interval {
        tree.ratio(&tree.advised, &self.b_tree.advised)
    }

    /// The fastest of those that gain at the values and lose at no end of the drive's intervals; the B+-tree
    /// if there is none. Another kind has to gain more than prices are wrong by.
    pub fn advised(&self) -> &Ours<'a> {
        let rate = |tree: &&Ours<'a>| tree.priced(&tree.advised).rate;
        let gains = |tree: &&Ours<'a>| {
            let (gain, structure) = (self.gain(tree), tree.advised.structure);
            let is_kin = matches!(structure, TreeStructure::BTree | TreeStructure::BTreeOfBlocks { .. });
            is_safe_gain(gain) && (is_kin || gain.value >= KIND_GAIN_MIN)
        };
        let gaining = self.all().skip(1).filter(gains);
        gaining.max_by(|a, b| rate(a).total_cmp(&rate(b))).unwrap_or(&self.b_tree)
    }

    /// All trees with their predictions.
    pub fn predicted(&self) -> Vec<PredictedTree> {
        let advised = self.advised().advised.structure;
        self.all()
            .map(|tree| PredictedTree {
                is_advised: tree.advised.structure == advised,
                ..PredictedTree::of(tree, &tree.advised)
            })
            .collect()
    }
}

/// Blocks that the drive serves in the time of one, as a store has it of its profile.
fn parallelism(drive: &Drive) -> u32 {
    let decided = drive.decided(decided::Setting::read_ahead).filter(|(_, decision)| !decision.from_default);
    decided.map_or(1, |(bytes, _)| (bytes.0 / STREAM_BYTES) as u32)
}

impl Store {
    /// Whether a store keeps such trees.
    fn is_possible(&self, workload: &Workload) -> bool {
        match self.structure {
            TreeStructure::BTreeOfBlocks { blocks } => self.node_bytes * f64::from(blocks) <= NODE_BYTES_MAX,
            TreeStructure::BeTree { node_bytes, fanout } => {
                let room = BeTreeSurroundings {
                    half_bandwidth_bytes: f64::MAX,
                    cache_bytes: self.cache_bytes as u64,
                    unit_bytes: self.write_unit_bytes as u64,
                    basement_bytes: self.node_bytes as u64,
                };
                let pivot_bytes = workload.records.key_bytes as f64 + PIVOT_BYTES;
                BeTreeDesign { node_bytes, fanout }.is_sound(
                    pivot_bytes,
                    workload.records.record_bytes() as f64,
                    &room,
                )
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use flashgrain_model::Access;
    use flashgrain_profile::file;

    use super::super::{StoreFacts, predicted_tree};
    use super::*;
    use crate::workload::{self, Durability};

    /// A store's choice without this crate, for as many writes as look-ups, compared with the best of all
    /// possible choices.
    #[test]
    fn what_stores_choose_for_b_epsilon_trees_is_near_the_best() {
        let profile = include_str!("../../../tests/fixtures/960evo.json");
        let drive = Drive::of(&file::parse("profile.json".as_ref(), profile.as_bytes()).unwrap());
        let mut workload = Workload {
            durability: Durability::None,
            skew: 0.0,
            clients: 64,
            memory_bytes: 256 << 20,
            ..workload::preset("ycsb-a").unwrap()
        };
        let prediction = BeTreeDesign::usual_workload();
        let records = &mut workload.records;
        (records.key_bytes, records.value_bytes) = (16, u64::from(prediction.record_size()) - 16);
        records.count = prediction.data_size() / u64::from(prediction.record_size());
        let rate = |BeTreeDesign { node_bytes, fanout }| {
            let structure = TreeStructure::BeTree { node_bytes, fanout };
            let predicted = predicted_tree(&workload, &drive, structure, 4096.0, &StoreFacts::USUAL);
            predicted.rate_per_second.value
        };
        let room = BeTreeSurroundings {
            half_bandwidth_bytes: drive.costs().half_bandwidth_bytes(Access::Read, 64.0),
            cache_bytes: workload.memory_bytes,
            unit_bytes: Store::advised(&workload, &drive).write_unit_bytes as u64,
            basement_bytes: 4096,
        };
        let chosen = BeTreeDesign::best(&prediction, &room);
        let possible = BeTreeDesign::candidates()
            .filter(|one| one.is_sound(38.0, f64::from(prediction.record_size()), &room));
        let best = possible.map(rate).fold(0.0, f64::max);
        println!("{chosen:?} {room:?}: {} of {best}, usual {}", rate(chosen), rate(BeTreeDesign::USUAL));
        assert!(rate(chosen) > 0.75 * best && rate(chosen) >= rate(BeTreeDesign::USUAL));
    }
}
