//! Look-ups, range queries and updates on each structure that a tree of the store may have, compared with the
//! predictions of the drive's profile: requests and bytes of the average operation, and its rate.

use std::sync::atomic::Ordering;

use clap::ValueEnum;
use flashgrain::{
    BeTreeOptions, Decision, IndexKind, LsmLayout, LsmOptions, LsmWorkload, NodeBlocks, Setting, TreeOptions,
};
use flashgrain_advisor::Interval;
use flashgrain_advisor::engine::{LsmDesign, PredictedTree, TreeStructure};
use flashgrain_profile::Error;
use flashgrain_report::unit;
use serde::Serialize;

use super::prediction::{Prediction, utilisation};
use super::{Experiment, Operation, operate};
use crate::store::{Store, StoreLocation, TREE};

/// A structure of trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Structure {
    /// A B+-tree with nodes that are read whole.
    Btree,
    /// A B+-tree with nodes of as many blocks as the drive serves at a time.
    Blocks,
    /// A Bε-tree.
    BeTree,
    /// An LSM-tree for as many writes as look-ups.
    Lsm,
}

/// Trees and operations that are measured.
#[derive(Clone, Debug)]
pub struct TreesOptions {
    /// The structures.
    pub structures: Vec<Structure>,
    /// Bytes that a range query yields; `None`: there are none.
    pub range_bytes: Option<u64>,
    /// Updates before those that are measured, which fill buffers and levels.
    pub settling: u64,
    /// B and F of Bε-trees, unless the store decides.
    pub be_tree: BeTreeOptions,
    /// Blocks of a node, unless the profile says.
    pub blocks: NodeBlocks,
}

/// All trees, and how well the predictions did.
#[derive(Debug, Serialize)]
pub struct TreesResult {
    target: String,
    records: u64,
    record_bytes: u64,
    cache_bytes: u64,
    clients: u32,
    seed: u64,
    trees: Vec<MeasuredTree>,
    /// It was ended early: trees are missing.
    pub interrupted: bool,
}

/// A tree.
#[derive(Debug, Serialize)]
struct MeasuredTree {
    structure: Structure,
    layout: Vec<Decision>,
    operations: Vec<Row>,
    /// Median of the predictions' errors over all numbers of all operations, as shares of the measured
    /// values: of requests and bytes, and of rates.
    median_error_of_counts: f64,
    median_error_of_rates: f64,
    /// Bytes of the store's images and tables for each byte of the records, and the prediction. Free space of
    /// segments is not in them.
    space: Pair,
}

/// One operation on a tree.
#[derive(Debug, Serialize)]
struct Row {
    operation: String,
    per_second: Pair,
    interval: Interval,
    reads: Pair,
    read_bytes: Pair,
    written_bytes: Pair,
}

/// A number that was measured, and its prediction.
#[derive(Clone, Copy, Debug, Serialize)]
struct Pair {
    measured: f64,
    predicted: f64,
}

/// Fewer requests, or bytes, than these of an operation are nothing that is compared.
const READS_MIN: f64 = 0.01;
const BYTES_MIN: f64 = 16.0;
/// Fills a store with a tree of each structure, and measures look-ups, range queries and updates.
///
/// # Errors
/// [`Error::Argument`] without a profile, otherwise errors of the target and the stores.
pub fn trees(mut experiment: Experiment<'_>, asked: &TreesOptions) -> anyhow::Result<TreesResult> {
    let prediction = experiment.prepare_predictions()?;
    let mut measured = Vec::new();
    for structure in &asked.structures {
        experiment.listener.note(&format!("{structure:?}"));
        let place = experiment.place()?;
        let tree = experiment.measure_tree(*structure, asked, &place, &prediction);
        place.remove()?;
        let Some(tree) = tree? else { break };
        measured.push(tree);
    }
    let options = &experiment.options;
    Ok(TreesResult {
        target: options.target.display().to_string(),
        records: options.records.count,
        record_bytes: options.records.record_bytes(),
        cache_bytes: options.store.cache_bytes,
        clients: options.store.tasks,
        seed: options.seed,
        interrupted: measured.len() < asked.structures.len(),
        trees: measured,
    })
}

impl Experiment<'_> {
    /// `None` if the user ended it.
    fn measure_tree(
        &self,
        structure: Structure,
        asked: &TreesOptions,
        place: &StoreLocation,
        prediction: &Prediction,
    ) -> anyhow::Result<Option<MeasuredTree>> {
        let (mut store, layout) = self.filled_tree(structure, asked, place)?;
        let record_bytes = self.options.records.record_bytes();
        let mut operations = vec![Operation::Lookup];
        operations.extend(asked.range_bytes.map(|bytes| {
            Operation::Range(u32::try_from(bytes / record_bytes.max(1)).unwrap_or(u32::MAX).max(1))
        }));
        operations.push(Operation::Update);
        let tree = (structure.predicted(&layout), node_bytes(structure, &layout));
        let mut rows = Vec::new();
        let mut space = Pair { measured: 0.0, predicted: 0.0 };
        for operation in operations {
            if operation == Operation::Update {
                self.settle(&mut store, operation, asked.settling)?;
            }
            let driven = operate(&mut store, operation, &self.options, self.interrupt)?;
            if driven.is_interrupted || self.interrupt.load(Ordering::Relaxed) {
                store.close()?;
                return Ok(None);
            }
            let done = driven.tally.operations().max(1) as f64;
            let device =
                |of: fn(&flashgrain::Stats) -> u64| (of(&driven.after) - of(&driven.before)) as f64 / done;
            let predicted = prediction.of(&self.options, operation, tree, &driven.after);
            let taken = &driven.after.space;
            space = Pair {
                measured: (taken.live_bytes + taken.owned_bytes) as f64 / self.options.records.bytes() as f64,
                predicted: predicted.space_amplification * utilisation(&driven.after).unwrap_or(1.0),
            };
            rows.push(Row::of(
                operation,
                &predicted,
                [
                    done / driven.elapsed.as_secs_f64(),
                    device(|stats| stats.device.reads),
                    device(|stats| stats.device.read_bytes),
                    device(|stats| stats.device.written_bytes),
                ],
            ));
        }
        store.close()?;
        Ok(Some(MeasuredTree::of(structure, layout, rows, space)))
    }

    /// A new store with a tree of this structure, and all records.
    fn filled_tree(
        &self,
        structure: Structure,
        asked: &TreesOptions,
        place: &StoreLocation,
    ) -> anyhow::Result<(Store, Vec<Decision>)> {
        place.remove()?;
        let mut store = place.create(&self.options.store)?;
        let options = structure.options(asked, self.declared());
        let layout = store.run(move |db| db.tree_with(TREE, &options).map(|tree| tree.layout()))?;
        for decision in &layout {
            let (name, value) = (decision.setting.name(), decision.setting.value());
            self.listener.detail(&format!("{name:<24} {value:<12} {}", decision.because));
        }
        store.set_durability(flashgrain::Durability::None);
        let filled = self.fill(&mut store, self.options.fill_order)?;
        store.reset_durability();
        if filled.is_interrupted {
            drop(store);
            place.remove()?;
            return Err(Error::Interrupted.into());
        }
        store.run(|db| db.checkpoint())?;
        Ok((store, layout))
    }

    /// The declaration of the operations for an LSM-tree.
    fn declared(&self) -> LsmWorkload {
        let records = self.options.records;
        LsmWorkload::new(1.0, 1.0, 0.0)
            .data_bytes(records.bytes())
            .record_bytes(u32::try_from(records.record_bytes()).unwrap_or(u32::MAX))
    }
}

impl Structure {
    fn options(self, asked: &TreesOptions, declared: LsmWorkload) -> TreeOptions {
        let tree = TreeOptions::new();
        match self {
            Self::Btree => tree,
            Self::Blocks => tree.node_blocks(asked.blocks),
            Self::BeTree => tree.kind(IndexKind::BeTree).be_tree(asked.be_tree),
            Self::Lsm => tree.kind(IndexKind::Lsm).lsm(LsmOptions::new().workload(declared)),
        }
    }

    /// The tree with this layout, as the advisor knows it.
    fn predicted(self, layout: &[Decision]) -> TreeStructure {
        let count = |of: fn(&Setting) -> Option<flashgrain::Count>| {
            let found = layout.iter().find_map(|decision| of(&decision.setting));
            found.map_or(0, |count| count.0 as u32)
        };
        match self {
            Self::Btree => TreeStructure::BTree,
            Self::Blocks => TreeStructure::BTreeOfBlocks { blocks: count(Setting::node_blocks) },
            Self::BeTree => TreeStructure::BeTree {
                node_bytes: bytes(layout, Setting::node),
                fanout: count(Setting::fanout),
            },
            Self::Lsm => TreeStructure::LsmTree {
                design: LsmDesign {
                    layout: runs(layout).unwrap_or(LsmDesign::USUAL.layout),
                    fanout: count(Setting::fanout),
                    level_zero_runs: count(Setting::level_zero_runs),
                },
                // The sizes of levels follow from memtables, not from tables.
                table_bytes: bytes(layout, Setting::memtable),
            },
        }
    }
}

fn runs(layout: &[Decision]) -> Option<LsmLayout> {
    layout.iter().find_map(|decision| decision.setting.lsm_layout())
}

fn bytes(layout: &[Decision], of: fn(&Setting) -> Option<flashgrain::Bytes>) -> u64 {
    layout.iter().find_map(|decision| of(&decision.setting)).map_or(0, |bytes| bytes.0)
}

/// Bytes of a node or block, or of a basement node.
fn node_bytes(structure: Structure, layout: &[Decision]) -> u64 {
    match structure {
        Structure::Btree | Structure::Blocks => bytes(layout, Setting::node),
        Structure::BeTree => bytes(layout, Setting::basement),
        Structure::Lsm => bytes(layout, Setting::block),
    }
}

impl Row {
    fn of(operation: Operation, predicted: &PredictedTree, measured: [f64; 4]) -> Self {
        let [per_second, reads, read_bytes, written_bytes] = measured;
        let pair = |measured, predicted| Pair { measured, predicted };
        Self {
            operation: match operation {
                Operation::Range(records) => format!("ranges of {records}"),
                Operation::Update => "updates".into(),
                _ => "look-ups".into(),
            },
            per_second: pair(per_second, predicted.rate_per_second.value),
            interval: predicted.rate_per_second,
            reads: pair(reads, predicted.reads),
            read_bytes: pair(read_bytes, predicted.read_bytes),
            written_bytes: pair(written_bytes, predicted.written_bytes),
        }
    }

    /// Errors of its requests and bytes.
    fn errors_of_counts(&self) -> impl Iterator<Item = f64> {
        let all = [(self.reads, READS_MIN), (self.read_bytes, BYTES_MIN), (self.written_bytes, BYTES_MIN)];
        let compared = |(pair, least): &(Pair, f64)| pair.measured >= *least || pair.predicted >= *least;
        all.into_iter().filter(compared).map(|(pair, _)| pair.error())
    }
}

impl Pair {
    /// The prediction's error, as a share of the measured value.
    fn error(self) -> f64 {
        (self.predicted / self.measured.max(f64::MIN_POSITIVE) - 1.0).abs()
    }

    fn text(self, show: impl Fn(f64) -> String) -> String {
        format!("{} / {}", show(self.measured), show(self.predicted))
    }
}

fn median(mut errors: Vec<f64>) -> f64 {
    errors.sort_by(f64::total_cmp);
    let middle = errors.len() / 2;
    match (errors.get(middle), middle.checked_sub(1).and_then(|before| errors.get(before))) {
        (Some(upper), Some(lower)) if errors.len().is_multiple_of(2) => (upper + lower) / 2.0,
        (Some(upper), _) => *upper,
        (None, _) => 0.0,
    }
}

impl MeasuredTree {
    fn of(structure: Structure, layout: Vec<Decision>, operations: Vec<Row>, space: Pair) -> Self {
        let counts = operations.iter().flat_map(Row::errors_of_counts).chain([space.error()]).collect();
        let rates = operations.iter().map(|row| row.per_second.error()).collect();
        Self {
            structure,
            layout,
            median_error_of_counts: median(counts),
            median_error_of_rates: median(rates),
            operations,
            space,
        }
    }

    fn name(&self) -> String {
        let words: Vec<String> = self
            .layout
            .iter()
            .map(|decision| format!("{} {}", decision.setting.name(), decision.setting.value()))
            .collect();
        format!("{:?}: {}", self.structure, words.join(", "))
    }
}

impl TreesResult {
    /// The result as tables for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{}: {} of {} bytes, {} of cache, {}, seed {}; measured / predicted, of an operation\n",
            self.target,
            unit::things(self.records, "record"),
            self.record_bytes,
            unit::bytes(self.cache_bytes as f64),
            unit::things(self.clients.into(), "client"),
            self.seed
        );
        for tree in &self.trees {
            text += &format!(
                "\n{}\n{:>16} {:>20} {:>22} {:>16} {:>22} {:>22}\n",
                tree.name(),
                "",
                "operations/s",
                "interval",
                "reads",
                "bytes read",
                "bytes written"
            );
            for row in &tree.operations {
                let Interval { low, high, .. } = row.interval;
                text += &format!(
                    "{:>16} {:>20} {:>22} {:>16} {:>22} {:>22}\n",
                    row.operation,
                    row.per_second.text(unit::count),
                    format!("{} to {}", unit::count(low), unit::count(high)),
                    row.reads.text(|reads| format!("{reads:.3}")),
                    row.read_bytes.text(unit::bytes),
                    row.written_bytes.text(unit::bytes)
                );
            }
            text += &format!(
                "bytes of images for each of records {}; median error of counts {}, of rates {}\n",
                tree.space.text(|space| format!("{space:.2}")),
                unit::share(tree.median_error_of_counts),
                unit::share(tree.median_error_of_rates)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shares_of_what_was_measured_and_leave_out_what_is_next_to_nothing() {
        let pair = |measured, predicted| Pair { measured, predicted };
        let row = Row {
            operation: "updates".into(),
            per_second: pair(100.0, 150.0),
            interval: Interval::exact(150.0),
            reads: pair(0.0, 0.001),
            read_bytes: pair(1.0, 5.0),
            written_bytes: pair(1000.0, 800.0),
        };
        let errors: Vec<f64> = row.errors_of_counts().collect();
        assert!(errors.len() == 1 && (errors[0] - 0.2).abs() < 1e-9, "{errors:?}");
        let tree = MeasuredTree::of(Structure::BeTree, Vec::new(), vec![row], pair(1.0, 1.1));
        assert!((tree.median_error_of_counts - 0.15).abs() < 1e-9);
        assert!((tree.median_error_of_rates - 0.5).abs() < 1e-9);
        assert!(median(Vec::new()).abs() < 1e-9 && (median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    }
}
