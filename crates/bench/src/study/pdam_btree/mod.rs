//! One B+-tree that is as fast for one client as for many: section 8 of "Small Refinements to the DAM Can
//! Have Big Consequences for Data-Structure Design".
//!
//! Three trees of the same records: with nodes of B bytes, with nodes of P·B bytes that are read whole, and
//! with nodes of P·B bytes in van Emde Boas order of blocks of B. Clients look random records up, from one at
//! a time to twice P. The pool has so little memory that inner levels of the first tree are not in it, which
//! is the paper's setting: with all of them in memory every look-up reads one block, whatever the nodes are.

mod figures;
mod lemma;
mod numbers;
mod sheet;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use flashgrain::{Check, Decision, Durability, LsmCompression, NodeBlocks, TreeOptions};
use serde::Serialize;

use super::comparison::Comparison;
use super::subject::{Measured, Subject, Task};
use super::{LogPlace, Setup, Sheet};
use crate::fill::Order;
use crate::listener::Listener;
use crate::processor::ProcessorCosts;
use crate::records::Records;
use crate::workload::Mix;

/// Bytes of a key and of a value: five records to a block of 4 KiB, so that few records make many leaves.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 760;

/// Bytes of a simulated drive over those of the records.
const DRIVE_FACTOR: u64 = 3;
const DRIVE_BYTES_MIN: u64 = 256 << 20;

/// The smallest pool that a store takes.
const CACHE_BYTES_MIN: u64 = 1 << 20;

/// Processors of a simulated machine: enough for all clients.
const WORKERS: u32 = 16;

const SEGMENT_BYTES: u64 = 4 << 20;

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
    /// P: blocks of a node.
    pub blocks: u32,
    /// B: bytes of a block.
    pub block_bytes: u32,
    /// Records in each tree.
    pub records: u64,
    /// Memory as a share of the records' bytes.
    pub cache_share: f64,
    /// Numbers of clients at a time; all from one to twice P by default.
    pub clients: Vec<u32>,
    /// Look-ups of each measurement.
    pub look_ups: u64,
    /// Processor time of simulated workers.
    pub costs: ProcessorCosts,
    /// Seed of everything random.
    pub seed: u64,
}

/// The nodes of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Nodes {
    /// Of B bytes.
    Small,
    /// Of P·B bytes, read whole.
    Large,
    /// Of P·B bytes in van Emde Boas order of blocks of B.
    InBlocks,
}

impl Nodes {
    const ALL: [Self; 3] = [Self::Small, Self::Large, Self::InBlocks];

    fn name(self) -> &'static str {
        match self {
            Self::Small => "nodes of B",
            Self::Large => "nodes of P·B, whole",
            Self::InBlocks => "nodes of P·B, van Emde Boas",
        }
    }

    fn tree(self, options: &Options) -> TreeOptions {
        let tree = TreeOptions::new();
        match self {
            Self::Small => tree.node_bytes(options.block_bytes),
            Self::Large => tree.node_bytes(options.block_bytes * options.blocks),
            Self::InBlocks => {
                tree.node_bytes(options.block_bytes).node_blocks(NodeBlocks::Of(options.blocks))
            }
        }
    }
}

/// A tree that was measured.
#[derive(Debug, Serialize)]
struct Found {
    nodes: Nodes,
    layout: Vec<Decision>,
    /// Its nodes, and how full they are.
    check: Check,
    look_ups: Vec<Measured>,
}

impl Found {
    /// Its look-ups by `clients` clients.
    fn by(&self, clients: u32) -> Option<&Measured> {
        self.look_ups.iter().find(|measured| measured.clients == clients)
    }
}

/// The trees on one drive.
#[derive(Debug, Serialize)]
struct OnDrive {
    target: String,
    trees: Vec<Found>,
}

/// All trees.
#[derive(Debug, Serialize)]
pub struct PdamResult {
    flashgrain_version: &'static str,
    blocks: u32,
    block_bytes: u32,
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

    fn clients(&self) -> Vec<u32> {
        match self.clients.is_empty() {
            true => (1..=2 * self.blocks).collect(),
            false => self.clients.clone(),
        }
    }

    fn clients_max(&self) -> u32 {
        self.clients().into_iter().max().unwrap_or(1)
    }

    fn setup(&self, target: &std::path::Path, nodes: Nodes) -> Setup {
        let records = self.records();
        Setup {
            target: target.to_owned(),
            drive_bytes: (DRIVE_FACTOR * records.bytes()).max(DRIVE_BYTES_MIN),
            drives: None,
            backend: None,
            polled: false,
            records,
            tree: nodes.tree(self),
            segment_bytes: SEGMENT_BYTES,
            cache_bytes: self.cache_bytes(),
            workers: WORKERS,
            clients_max: self.clients_max().max(WORKERS),
            durability: Durability::None,
            log: LogPlace::WithTree,
            log_compression: LsmCompression::None,
            costs: self.costs,
            seed: self.seed,
        }
    }
}

/// Measures all trees on all targets.
///
/// # Errors
/// Those of the targets and the stores; [`flashgrain_profile::Error::Interrupted`].
pub fn pdam_btree(
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<PdamResult> {
    let mut drives = Vec::new();
    for target in &options.targets {
        let target_name = target.display().to_string();
        let measure = |nodes: Nodes| {
            Subject::with(&options.setup(target, nodes), |subject| {
                listener.note(&format!("{target_name}, {}: filling", nodes.name()));
                subject.fill(Order::Sequential, interrupt)?;
                subject.checkpoint()?;
                listener.note(&format!("{target_name}, {}: look-ups", nodes.name()));
                let look_ups = look_up(options, subject, interrupt)?;
                let (layout, check) = (subject.layout()?, subject.check()?);
                Ok(Found { nodes, layout, check, look_ups })
            })
        };
        let trees = Nodes::ALL.into_iter().map(measure).collect::<anyhow::Result<_>>()?;
        drives.push(OnDrive { target: target_name.clone(), trees });
    }
    Ok(PdamResult {
        flashgrain_version: env!("CARGO_PKG_VERSION"),
        blocks: options.blocks,
        block_bytes: options.block_bytes,
        records: options.records(),
        cache_bytes: options.cache_bytes(),
        costs: options.costs,
        seed: options.seed,
        drives,
    })
}

/// Look-ups by each number of clients.
fn look_up(
    options: &Options,
    subject: &mut Subject,
    interrupt: &AtomicBool,
) -> anyhow::Result<Vec<Measured>> {
    let mix = Mix { read: 1.0, in_order: true, ..Mix::default() };
    let mut run = |clients: u32, stream: u64| {
        subject.run(Task { mix, clients, operations: options.look_ups, stream }, interrupt)
    };
    // Warm-up: these load the pages that stay in memory.
    run(options.clients_max(), 0)?;
    options.clients().into_iter().map(|clients| run(clients, clients.into())).collect()
}

impl PdamResult {
    /// The result for people.
    pub fn sheet(&self) -> Sheet {
        sheet::of(self)
    }
}
