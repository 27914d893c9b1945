//! The costs of B+-trees and Bε-trees over the size of their nodes: section 7 of "External-memory
//! Dictionaries in the Affine and PDAM Models".
//!
//! For each size of nodes a tree is made, and one client works with it. Of each kind of operation some come
//! first that are not counted.
//!
//! 1. A B+-tree is loaded in the order of its keys, and random look-ups are counted: its leaves are full and
//!    lie in the same place whatever their size is, so that nothing but the size differs.
//! 2. A tree is loaded where it has room to grow. Random inserts are counted, with the checkpoint after them,
//!    which writes their changes.
//! 3. Random look-ups are counted in the tree that has grown.
//!
//! The drive's own affine costs are those of the paper's section 4.2: random reads of several sizes, where a
//! loaded tree is. With them the model predicts both trees. The line through the look-ups of the loaded
//! B+-trees has another α, which should be the same.

mod asked;
mod berkeley_db;
mod drive_costs;
mod figures;
mod fitted;
mod numbers;
mod prediction;
mod sheet;
mod state;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use flashgrain::{
    BeTreeOptions, BeTreeStats, Check, Decision, Durability, IndexKind, LsmCompression, TreeOptions,
};
use flashgrain_report::unit;
use serde::Serialize;

use self::drive_costs::DriveCosts;
use self::fitted::{Fitted, LookUp};
use self::prediction::{Predicted, Prediction};
use self::state::State;
use super::comparison::Comparison;
use super::subject::{Measured, Subject, Task};
use super::{LogPlace, Setup, Sheet};
use crate::engine::EngineName;
use crate::fill::Order;
use crate::listener::Listener;
use crate::processor::ProcessorCosts;
use crate::records::Records;
use crate::workload::Mix;

/// Bytes of a key and of a value.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 100;

/// Sizes of nodes that the trees may have.
pub const B_PLUS_NODE_BYTES: (u64, u64) = (4 << 10, 64 << 10);
/// The same.
pub const B_EPSILON_NODE_BYTES: (u64, u64) = (32 << 10, 4 << 20);

/// Sizes of pages that Berkeley DB takes.
const BERKELEY_DB_PAGE_BYTES: (u64, u64) = (512, 64 << 10);

/// Sizes of basement nodes that a store takes.
const BASEMENT_BYTES: (u64, u64) = (4 << 10, 64 << 10);

/// Bytes of a simulated drive over those of the records of a tree that grows.
const DRIVE_FACTOR: f64 = 4.0;
/// The same of a tree that is only loaded: it has most of the drive, so that its seeks are the drive's.
const FULL_DRIVE_FACTOR: f64 = 1.3;
/// Bytes that a store needs free in addition.
const DRIVE_BYTES_MIN: u64 = 32 << 20;

/// The smallest pool that a store takes.
const CACHE_BYTES_MIN: u64 = 1 << 20;

const WORKERS: u32 = 2;

/// Pages are gathered for writes of a quarter of it, which is the largest part that a Bε-tree may have.
const SEGMENT_BYTES: u64 = 1 << 20;

/// Messages that a Bε-tree gathers in memory before they go into its root: the same for all sizes of nodes,
/// and no more than the root of the smallest ones has room for.
const MEMTABLE_BYTES: u64 = 128 << 10;

/// Counted operations over those of the warm-up.
const WARMUP_DIVISOR: u64 = 2;

const INSERT: Mix = Mix { insert: 1.0, ..Mix::NOTHING };
const LOOK_UP: Mix = Mix { read: 1.0, ..Mix::NOTHING };
const SCAN: Mix = Mix { scan: 1.0, scan_records: (SCAN_RECORDS, SCAN_RECORDS), ..Mix::NOTHING };

/// Records of a scan, in leaves of 4 KiB some thirty of them.
const SCAN_RECORDS: u32 = 1000;
/// One scan for this number of look-ups, which each take a read or less.
const SCAN_DIVISOR: u64 = 64;

pub use numbers::ABOUT;

/// The paper's numbers alone.
pub fn published() -> Vec<Comparison> {
    numbers::comparisons(None)
}

/// The study's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Simulated drives, or directories.
    pub targets: Vec<PathBuf>,
    /// Sizes of nodes; each tree has those of them that it can have.
    pub node_bytes: Vec<u64>,
    /// F of the Bε-trees.
    pub fanout: u32,
    /// Basement nodes of the Bε-trees have B/F divided by this.
    pub basement_divisor: u32,
    /// Records in each tree when its inserts begin.
    pub records: u64,
    /// Memory as a share of the records' bytes.
    pub cache_share: f64,
    /// Look-ups of each measurement.
    pub look_ups: u64,
    /// Inserts of each measurement.
    pub inserts: u64,
    /// Processor time of simulated workers.
    pub costs: ProcessorCosts,
    /// Seed of everything random.
    pub seed: u64,
}

/// The trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Tree {
    BPlus,
    BEpsilon,
    /// On directories, where it was built in.
    BerkeleyDb,
}

impl Tree {
    const ALL: [Self; 3] = [Self::BPlus, Self::BerkeleyDb, Self::BEpsilon];

    fn name(self) -> &'static str {
        match self {
            Self::BPlus => "B+-tree",
            Self::BEpsilon => "Bε-tree",
            Self::BerkeleyDb => "Berkeley DB",
        }
    }

    fn can_have(self, node_bytes: u64) -> bool {
        let (least, most) = match self {
            Self::BPlus => B_PLUS_NODE_BYTES,
            Self::BEpsilon => B_EPSILON_NODE_BYTES,
            Self::BerkeleyDb => BERKELEY_DB_PAGE_BYTES,
        };
        (least..=most).contains(&node_bytes)
    }

    fn options(self, node_bytes: u64, options: &Options) -> TreeOptions {
        match self {
            Self::BPlus | Self::BerkeleyDb => TreeOptions::new().node_bytes(node_bytes as u32),
            Self::BEpsilon => {
                let (least, most) = BASEMENT_BYTES;
                let share = node_bytes / u64::from(options.fanout * options.basement_divisor);
                let basement_bytes = share.next_power_of_two().clamp(least, most);
                let numbers = BeTreeOptions::new()
                    .node_bytes(node_bytes)
                    .fanout(options.fanout)
                    .memtable_bytes(MEMTABLE_BYTES);
                TreeOptions::new().kind(IndexKind::BeTree).be_tree(numbers).node_bytes(basement_bytes as u32)
            }
        }
    }
}

/// Measured operations, with the model's prediction.
#[derive(Debug, Serialize)]
struct Operations {
    measured: Measured,
    predicted: Predicted,
}

/// A tree that was measured.
#[derive(Debug, Serialize)]
struct Point {
    tree: Tree,
    node_bytes: u64,
    layout: Vec<Decision>,
    /// Its pages at the end, and how full they are; of this store's trees.
    check: Option<Check>,
    be_tree: Option<BeTreeStats>,
    /// Look-ups before the first insert, of B+-trees only: the buffers of a Bε-tree have no messages then.
    loaded: Option<Operations>,
    /// Scans of B+-trees, before the first insert and after all of them.
    loaded_scans: Option<Operations>,
    grown_scans: Option<Operations>,
    inserts: Operations,
    /// Look-ups after all inserts.
    grown: Operations,
}

/// The trees on one drive.
#[derive(Debug, Serialize)]
struct OnDrive {
    target: String,
    is_directory: bool,
    costs: DriveCosts,
    points: Vec<Point>,
    /// The line through the look-ups of the loaded B+-trees.
    fitted: Option<Fitted>,
    /// Its look-ups by the size of nodes, in microseconds: with the accesses that were counted, and for sizes
    /// that B+-trees cannot have with those that the model says.
    line: Vec<(u64, f64)>,
    /// The line through the look-ups of the grown ones.
    fitted_grown: Option<Fitted>,
    /// The line through the look-ups of loaded ones of Berkeley DB.
    fitted_berkeley_db: Option<Fitted>,
}

/// All trees.
#[derive(Debug, Serialize)]
pub struct NodeSizeResult {
    flashgrain_version: &'static str,
    fanout: u32,
    basement_divisor: u32,
    /// When the first inserts begin.
    records: Records,
    cache_bytes: u64,
    costs: ProcessorCosts,
    seed: u64,
    drives: Vec<OnDrive>,
}

impl Options {
    fn records(&self) -> Records {
        Records { count: self.records, key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES }
    }

    fn cache_bytes(&self) -> u64 {
        ((self.records().bytes() as f64 * self.cache_share) as u64).max(CACHE_BYTES_MIN)
    }

    /// Records at the end.
    fn grown(&self) -> Records {
        let grown = self.inserts + self.inserts / WARMUP_DIVISOR;
        Records { count: self.records + grown, ..self.records() }
    }

    /// Bytes of a simulated drive for a tree in this state.
    fn drive_bytes(&self, state: State) -> u64 {
        let bytes = match state {
            State::Loaded => FULL_DRIVE_FACTOR * self.records().bytes() as f64,
            State::Grown => DRIVE_FACTOR * self.grown().bytes() as f64,
        };
        bytes as u64 + DRIVE_BYTES_MIN
    }

    fn setup(&self, target: &Path, tree: TreeOptions, state: State) -> Setup {
        Setup {
            target: target.to_owned(),
            drive_bytes: self.drive_bytes(state),
            drives: None,
            backend: None,
            polled: false,
            records: self.records(),
            tree,
            segment_bytes: SEGMENT_BYTES,
            cache_bytes: self.cache_bytes(),
            workers: WORKERS,
            clients_max: WORKERS,
            durability: Durability::None,
            log: LogPlace::Memory,
            log_compression: LsmCompression::None,
            costs: self.costs,
            seed: self.seed,
        }
    }

    /// Sizes of nodes, each once, the smallest first.
    fn sizes(&self) -> Vec<u64> {
        let mut sizes = self.node_bytes.clone();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The trees on a target with their sizes, in the order of their creation.
    fn trees(&self, target: &Path) -> Vec<(Tree, u64)> {
        let of = |tree: Tree| {
            let sizes = self.sizes().into_iter().filter(move |bytes| tree.can_have(*bytes));
            sizes.map(move |bytes| (tree, bytes))
        };
        let is_there = |tree: &Tree| {
            *tree != Tree::BerkeleyDb || (target.is_dir() && EngineName::BerkeleyDb.is_compiled_in())
        };
        Tree::ALL.into_iter().filter(is_there).flat_map(of).collect()
    }
}

/// Measures all trees on all targets.
///
/// # Errors
/// Those of the targets and the stores; [`flashgrain_profile::Error::Interrupted`].
pub fn node_size(
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<NodeSizeResult> {
    let drives = options.targets.iter().map(|target| on_drive(options, target, listener, interrupt));
    let drives = drives.collect::<anyhow::Result<_>>()?;
    Ok(NodeSizeResult {
        flashgrain_version: env!("CARGO_PKG_VERSION"),
        fanout: options.fanout,
        basement_divisor: options.basement_divisor,
        records: options.records(),
        cache_bytes: options.cache_bytes(),
        costs: options.costs,
        seed: options.seed,
        drives,
    })
}

fn on_drive(
    options: &Options,
    target: &Path,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<OnDrive> {
    let costs = drive_costs::measure(options, target, listener, interrupt)?;
    let prediction = Prediction { options, costs };
    let trees = options.trees(target);
    let mut points = Vec::new();
    for (number, (tree, node_bytes)) in trees.iter().enumerate() {
        let place = format!("{}, tree {} of {}", target.display(), number + 1, trees.len());
        let note = |phase: &str| {
            let node = unit::bytes(*node_bytes as f64);
            listener.note(&format!("{place}, {} with nodes of {node}: {phase}", tree.name()));
        };
        points.push(match tree {
            Tree::BerkeleyDb => berkeley_db::measure(&prediction, target, *node_bytes, &note, interrupt)?,
            tree => measure(&prediction, target, (*tree, *node_bytes), &note, interrupt)?,
        });
    }
    let through = |tree: Tree, operations: fn(&Point) -> Option<&Operations>| {
        let of_tree = points.iter().filter(|point| point.tree == tree).filter_map(operations);
        let look_ups: Vec<LookUp> = of_tree.map(|one| LookUp::of(&one.measured)).collect();
        Fitted::through(&look_ups, costs)
    };
    let fitted = through(Tree::BPlus, |point| point.loaded.as_ref());
    let fitted_grown = through(Tree::BPlus, |point| Some(&point.grown));
    let fitted_berkeley_db = through(Tree::BerkeleyDb, |point| point.loaded.as_ref());
    let counted = |bytes: u64| {
        let is_it = |point: &&Point| point.tree == Tree::BPlus && point.node_bytes == bytes;
        points.iter().find(is_it)?.loaded.as_ref()
    };
    let at = |bytes: u64| {
        let look_up = match counted(bytes) {
            Some(loaded) => LookUp::of(&loaded.measured),
            None => LookUp::predicted(&prediction.b_plus_look_up(bytes, State::Loaded)),
        };
        Some((bytes, fitted?.us(&look_up)))
    };
    let line = options.sizes().into_iter().filter_map(at).collect();
    Ok(OnDrive {
        target: target.display().to_string(),
        is_directory: target.is_dir(),
        costs,
        points,
        fitted,
        line,
        fitted_grown,
        fitted_berkeley_db,
    })
}

/// Runs operations of a kind, with some before them that are not counted.
type Run<'a> = dyn FnMut(&mut Subject, &str, Mix, u64) -> anyhow::Result<Measured> + 'a;

fn load(subject: &mut Subject, note: &dyn Fn(&str), interrupt: &AtomicBool) -> anyhow::Result<()> {
    note("loading");
    subject.fill(Order::Scattered, interrupt)?;
    subject.checkpoint()
}

/// One tree, from empty to removed.
fn measure(
    prediction: &Prediction<'_>,
    target: &Path,
    (tree, node_bytes): (Tree, u64),
    note: &dyn Fn(&str),
    interrupt: &AtomicBool,
) -> anyhow::Result<Point> {
    let options = prediction.options;
    let make = tree.options(node_bytes, options);
    let mut stream = 0;
    let mut run = |subject: &mut Subject, phase: &str, mix: Mix, operations: u64| {
        note(phase);
        let mut part = |operations: u64| {
            stream += 1;
            subject.run_and_write(Task { mix, clients: 1, operations, stream }, interrupt)
        };
        part(operations / WARMUP_DIVISOR)?;
        part(operations)
    };
    let scan = |subject: &mut Subject, run: &mut Run<'_>, state: State| {
        anyhow::Ok(Operations {
            measured: run(subject, "scans", SCAN, options.look_ups.div_ceil(SCAN_DIVISOR))?,
            predicted: prediction.b_plus_scan(node_bytes, state, SCAN_RECORDS),
        })
    };
    let loaded = match tree {
        Tree::BPlus => Some(Subject::with(&options.setup(target, make.clone(), State::Loaded), |subject| {
            load(subject, note, interrupt)?;
            let look_ups = Operations {
                measured: run(subject, "look-ups", LOOK_UP, options.look_ups)?,
                predicted: prediction.b_plus_look_up(node_bytes, State::Loaded),
            };
            Ok((look_ups, scan(subject, &mut run, State::Loaded)?))
        })?),
        Tree::BEpsilon | Tree::BerkeleyDb => None,
    };
    let (loaded, loaded_scans) = loaded.unzip();
    Subject::with(&options.setup(target, make, State::Grown), |subject| {
        load(subject, note, interrupt)?;
        let inserts = run(subject, "inserts", INSERT, options.inserts)?;
        let look_ups = run(subject, "look-ups after inserts", LOOK_UP, options.look_ups)?;
        let grown_scans = match tree {
            Tree::BPlus => Some(scan(subject, &mut run, State::Grown)?),
            Tree::BEpsilon | Tree::BerkeleyDb => None,
        };
        let layout = subject.layout()?;
        Ok(Point {
            tree,
            node_bytes,
            check: Some(subject.check()?),
            be_tree: subject.be_tree_stats()?,
            loaded,
            loaded_scans,
            grown_scans,
            inserts: Operations {
                measured: inserts,
                predicted: prediction.of_insert(tree, node_bytes, &layout),
            },
            grown: Operations {
                measured: look_ups,
                predicted: prediction.of_look_up(tree, node_bytes, &layout),
            },
            layout,
        })
    })
}

impl NodeSizeResult {
    /// The result for people.
    pub fn sheet(&self) -> Sheet {
        sheet::of(self)
    }
}
