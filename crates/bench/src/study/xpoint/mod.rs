//! Throttling, level 0, parallelism and the log on flash and on 3D XPoint: sections IV and V of "From Flash
//! to 3D XPoint: Performance Bottlenecks and Potentials in RocksDB with Storage Evolution".
//!
//! Each [`Question`] is some of the paper's figures. For each of its points a store is filled, clients read
//! and update random records for a while that does not count, and then for one that does, in slices that are
//! looked at one by one. Unless a question varies it, the tree is as RocksDB 5.17 keeps its own.

mod ask;
mod figures;
mod paper;
mod sheet;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::ValueEnum;
use flashgrain::{Durability, LsmCompression, LsmLayout, LsmOptions, LsmThrottling, TreeOptions};
use serde::Serialize;

use super::comparison::Comparison;
use super::subject::Watched;
use super::{LogPlace, Setup, Sheet, lsm_tree};
use crate::listener::Listener;
use crate::processor::ProcessorCosts;
use crate::records::Records;

/// Bytes of a key and of a value: a record of the paper's size is at most a quarter of a block.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 1000;
const BLOCK_BYTES: u32 = 4 << 10;

/// Memtables and tables are 64 MiB in the paper.
const MEMTABLE_BYTES: u64 = 256 << 10;

/// The paper's sizes and times over ours.
const SCALE: u64 = 256;

/// Memory as a share of the records' bytes: 8 of 100 GB in the paper.
const CACHE_FRACTION: f64 = 0.08;

/// RocksDB's defaults.
const FANOUT: u32 = 10;
const LEVEL_ZERO_RUNS: u32 = 4;
const SLOWDOWN_RUNS: u32 = 20;
const STOP_RUNS: u32 = 36;
const JOBS: u32 = 1;

/// Bytes of a simulated drive over those of the records.
const DRIVE_FACTOR: u64 = 3;
const DRIVE_BYTES_MIN: u64 = 256 << 20;

/// Processors of the paper's machine.
const WORKERS: u32 = 16;

/// Clients of most figures.
const CLIENTS: u32 = 4;

/// Most clients of any.
const CLIENTS_MAX: u32 = 32;

/// Some of the paper's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// Throughput and latency over the share of writes, and throughput over time: Figures 3 to 7.
    Writes,
    /// Runs of level 0, and their size: Figures 8 to 10 and 12.
    LevelZero,
    /// Runs of level 0 over their size, merged at the same number: Figure 8.
    FileSize,
    /// Half of writes by eight clients, values of 4 KiB: Figure 1.
    Values,
    /// One client to 32: Figures 13 to 15.
    Parallelism,
    /// Writes of 32 clients that wait for the log: Figure 16.
    Waiting,
    /// The log on the drive, compressed, in memory, not waited for, and none: Figures 17 and 20.
    Log,
    /// Memtables that flushes merge, where keys are written again soon and where not: section VI.
    Memtables,
    /// How writers are slowed down under bursts, and Eq. 2: Figure 18.
    Bursts,
    /// Level 0 by the share of reads: Figure 19.
    Reads,
}

impl Question {
    /// The name of its variable.
    fn varied(self) -> &'static str {
        match self {
            Self::Writes | Self::Waiting | Self::Log => "writes",
            Self::LevelZero => "runs of level 0 meant",
            Self::FileSize => "MiB of a run, the paper's",
            Self::Values => "bytes of a value",
            Self::Parallelism => "clients",
            Self::Memtables => "skew (Zipf's θ)",
            Self::Bursts => "",
            Self::Reads => "reads",
        }
    }

    fn is_share(self) -> bool {
        matches!(self, Self::Writes | Self::Waiting | Self::Log | Self::Memtables | Self::Reads)
    }

    /// Whether writes wait for the log, one for another.
    fn has_queue(self) -> bool {
        matches!(self, Self::Parallelism | Self::Waiting | Self::Log)
    }
}

/// The study's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Simulated drives, or directories.
    pub targets: Vec<PathBuf>,
    /// The questions, or all of them if there are none.
    pub questions: Vec<Question>,
    /// Records in each store.
    pub records: u64,
    /// Time that counts for each point, in the paper's scale.
    pub seconds: f64,
    /// Processor time of simulated workers.
    pub costs: ProcessorCosts,
    /// Seed of everything random.
    pub seed: u64,
}

/// One measured setting.
#[derive(Clone, Debug, Serialize)]
struct Point {
    /// The drive.
    target: String,
    /// The second variable of the question: the throttling, the log's place.
    setting: &'static str,
    /// The value of the question's variable.
    x: f64,
    #[serde(flatten)]
    watched: Watched,
}

impl Point {
    /// The drive, with the setting if there is one.
    fn name(&self) -> String {
        match self.setting {
            "" => self.target.clone(),
            setting => format!("{}, {setting}", self.target),
        }
    }
}

/// The answer to a question.
#[derive(Debug, Serialize)]
struct Answer {
    question: Question,
    points: Vec<Point>,
}

/// All answers.
#[derive(Debug, Serialize)]
pub struct XpointResult {
    flashgrain_version: &'static str,
    records: Records,
    memtable_bytes: u64,
    cache_bytes: u64,
    costs: ProcessorCosts,
    seed: u64,
    answers: Vec<Answer>,
}

impl Options {
    fn records(&self) -> Records {
        Records { count: self.records, key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES }
    }

    fn cache_bytes(&self) -> u64 {
        // The largest memtable of any question is at most a quarter of it.
        let wanted = (self.records().bytes() as f64 * CACHE_FRACTION) as u64;
        wanted.max(4 * ask::MEMTABLE_BYTES_MAX)
    }

    /// A store of the usual kind.
    fn setup(&self, target: &Path) -> Setup {
        let records = self.records();
        Setup {
            target: target.to_owned(),
            drive_bytes: (DRIVE_FACTOR * records.bytes()).max(DRIVE_BYTES_MIN),
            drives: None,
            backend: None,
            polled: false,
            records,
            tree: tree_of(usual_tree()),
            segment_bytes: MEMTABLE_BYTES,
            cache_bytes: self.cache_bytes(),
            workers: WORKERS,
            clients_max: CLIENTS_MAX,
            durability: Durability::None,
            log: LogPlace::WithTree,
            log_compression: LsmCompression::None,
            costs: self.costs,
            seed: self.seed,
        }
    }
}

/// A tree with the study's blocks.
fn tree_of(options: LsmOptions) -> TreeOptions {
    lsm_tree(options, BLOCK_BYTES)
}

/// As RocksDB 5.17 does by default, in tables of the study's size.
fn usual_tree() -> LsmOptions {
    LsmOptions::new()
        .layout(LsmLayout::Leveled)
        .fanout(FANOUT)
        .level_zero_runs(LEVEL_ZERO_RUNS)
        .slowdown_runs(SLOWDOWN_RUNS)
        .stop_runs(STOP_RUNS)
        .throttling(LsmThrottling::RocksDb)
        .table_bytes(MEMTABLE_BYTES)
        .memtable_bytes(MEMTABLE_BYTES)
        .filter_bits_per_key(0.0)
        .jobs(JOBS)
        .parts(1)
}

pub use paper::ABOUT;

/// The paper's numbers alone.
pub fn published() -> Vec<Comparison> {
    paper::comparisons(None)
}

/// Asks all questions.
///
/// # Errors
/// Those of the targets and the stores; [`flashgrain_profile::Error::Interrupted`].
pub fn xpoint(
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<XpointResult> {
    let all = Question::value_variants();
    let questions = if options.questions.is_empty() { all } else { &options.questions };
    let mut answers = Vec::new();
    for question in questions {
        let points = ask::all(*question, options, listener, interrupt)?;
        answers.push(Answer { question: *question, points });
    }
    Ok(XpointResult {
        flashgrain_version: env!("CARGO_PKG_VERSION"),
        records: options.records(),
        memtable_bytes: MEMTABLE_BYTES,
        cache_bytes: options.cache_bytes(),
        costs: options.costs,
        seed: options.seed,
        answers,
    })
}

impl XpointResult {
    /// The result for people.
    pub fn sheet(&self) -> Sheet {
        sheet::of(self)
    }
}
