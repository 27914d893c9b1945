//! The measurements for each question.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use flashgrain::{Durability, LsmCompression, LsmThrottling};

use super::{
    CLIENTS, CLIENTS_MAX, LEVEL_ZERO_RUNS, MEMTABLE_BYTES, Options, Point, Question, SCALE, SLOWDOWN_RUNS,
    STOP_RUNS, tree_of, usual_tree,
};
use crate::fill::Order;
use crate::keys::Distribution;
use crate::listener::Listener;
use crate::records::Records;
use crate::study::subject::Watch;
use crate::study::{LogPlace, Setup, Subject, lsm_tree};
use crate::workload::Mix;

/// Largest memtable of any question.
pub(super) const MEMTABLE_BYTES_MAX: u64 = 4 * MEMTABLE_BYTES;

/// Sizes of a run in the paper's scale: Figure 8.
const FILE_MIB: [u64; 3] = [64, 128, 256];

/// Clients, values and blocks of Figure 1.
const FIGURE_1_CLIENTS: u32 = 8;
const FIGURE_1_VALUE_BYTES: usize = 4 << 10;
const FIGURE_1_BLOCK_BYTES: u32 = 16 << 10;

/// Slices of a measurement, and a part as many before it.
const SLICES: u32 = 48;
const WARMUP_DIVISOR: u32 = 4;

/// Bursts in slices: of 48, three times 16 for a minute; the paper's bursts last 25 seconds of it.
const PERIOD_SLICES: u32 = 16;
const BURST_SLICES: u32 = 7;

/// Bursts last longer than other points: three minutes where these last 150 s.
const BURSTS_FACTOR: f64 = 1.2;

/// Bytes of commits between two checkpoints of a store without a log: 64 memtables.
const BYTES_PER_CHECKPOINT: u64 = 64 * MEMTABLE_BYTES;

/// YCSB's skew of the records that are chosen, where some are chosen often.
const SKEW: f64 = 0.99;

/// Shares of writes.
const WRITE_SHARES: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 1.0];
const READ_SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.9];
const PARALLELISM: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// A measurement to make.
struct Trial {
    setup: Setup,
    setting: &'static str,
    x: f64,
    clients: u32,
    /// Share of writes in a slice.
    writes: fn(f64, u32) -> f64,
    /// Whether values compress to a half.
    half_zeros: bool,
    distribution: Distribution,
    seconds: f64,
}

/// Measures all points of a question.
pub(super) fn all(
    question: Question,
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<Vec<Point>> {
    let mut points = Vec::new();
    for target in targets(question, options) {
        for trial in trials(question, options, target) {
            let name = target.display();
            listener.note(&format!("{question:?}, {name}: {} {}", trial.setting, trial.x));
            points.push(measure(trial, interrupt)?);
        }
    }
    Ok(points)
}

/// The paper has measured the changes on its fastest drive only.
fn targets(question: Question, options: &Options) -> &[PathBuf] {
    match question {
        Question::Memtables | Question::Bursts | Question::Reads => {
            options.targets.rchunks(1).next().unwrap_or_default()
        }
        _ => &options.targets,
    }
}

fn trials(question: Question, options: &Options, target: &Path) -> Vec<Trial> {
    let usual = || Trial {
        setup: options.setup(target),
        setting: "",
        x: 0.0,
        clients: CLIENTS,
        writes: |_, _| 0.5,
        half_zeros: false,
        distribution: Distribution::Uniform,
        seconds: options.seconds,
    };
    match question {
        Question::Writes => {
            let trial = |share: &f64| Trial { x: *share, writes: |share, _| share, ..usual() };
            WRITE_SHARES.iter().map(trial).collect()
        }
        Question::LevelZero => level_zero(&usual),
        Question::FileSize => file_size(&usual),
        Question::Values => vec![values(usual())],
        Question::Parallelism => {
            let trial = |clients: &u32| {
                let mut trial = Trial { x: f64::from(*clients), clients: *clients, ..usual() };
                trial.setup.durability = Durability::Buffered;
                trial
            };
            PARALLELISM.iter().map(trial).collect()
        }
        Question::Waiting => {
            let trial = |share: &f64| {
                let mut trial = Trial { x: *share, writes: |share, _| share, ..usual() };
                (trial.clients, trial.setup.durability) = (CLIENTS_MAX, Durability::Buffered);
                trial
            };
            WRITE_SHARES.iter().filter(|share| **share > 0.0).map(trial).collect()
        }
        Question::Log => log(&usual),
        Question::Memtables => memtables(&usual),
        Question::Bursts => bursts(&usual),
        Question::Reads => reads(&usual),
    }
}

/// As many bytes of level 0 in eight runs, four and two on average: it is merged at twice as many.
fn level_zero(usual: &dyn Fn() -> Trial) -> Vec<Trial> {
    let trial = |(runs, bytes): (u32, u64)| {
        let mut trial = Trial { x: f64::from(runs), ..usual() };
        trial.setup.tree = tree_of(usual_tree().level_zero_runs(2 * runs).memtable_bytes(bytes));
        trial
    };
    [(8, MEMTABLE_BYTES), (4, 2 * MEMTABLE_BYTES), (2, MEMTABLE_BYTES_MAX)].into_iter().map(trial).collect()
}

/// The same trigger for runs of every size.
fn file_size(usual: &dyn Fn() -> Trial) -> Vec<Trial> {
    let trial = |mib: u64| {
        let mut trial = Trial { x: mib as f64, ..usual() };
        trial.setup.tree = tree_of(usual_tree().memtable_bytes((mib << 20) / SCALE));
        trial
    };
    FILE_MIB.into_iter().map(trial).collect()
}

/// As many bytes of records with longer values.
fn values(mut trial: Trial) -> Trial {
    let records = trial.setup.records;
    let longer = Records { value_bytes: FIGURE_1_VALUE_BYTES, ..records };
    let count = records.bytes() / (longer.bytes() / longer.count);
    trial.setup.records = Records { count, ..longer };
    trial.setup.tree = lsm_tree(usual_tree(), FIGURE_1_BLOCK_BYTES);
    (trial.x, trial.clients) = (FIGURE_1_VALUE_BYTES as f64, FIGURE_1_CLIENTS);
    trial
}

/// A way to keep the log: its name, how durable writes are, its place and its compression.
type LogKept = (&'static str, Durability, LogPlace, LsmCompression);

/// 90 % and half of writes with each way to keep the log, or without one.
fn log(usual: &dyn Fn() -> Trial) -> Vec<Trial> {
    const PLAIN: LsmCompression = LsmCompression::None;
    const NOWHERE: LogPlace = LogPlace::Nowhere { per_checkpoint_bytes: BYTES_PER_CHECKPOINT };
    const OFTEN: LogPlace = LogPlace::Nowhere { per_checkpoint_bytes: BYTES_PER_CHECKPOINT / 8 };
    const WAYS: [LogKept; 6] = [
        ("on the drive", Durability::Buffered, LogPlace::WithTree, PLAIN),
        ("compressed", Durability::Buffered, LogPlace::WithTree, LsmCompression::Lz4),
        ("in memory", Durability::Buffered, LogPlace::Memory, PLAIN),
        ("not waited for", Durability::None, LogPlace::WithTree, PLAIN),
        ("none", Durability::None, NOWHERE, PLAIN),
        ("none, more checkpoints", Durability::None, OFTEN, PLAIN),
    ];
    let of_share = |share: f64| {
        WAYS.map(|(setting, durability, place, compression)| {
            let mut trial = Trial { setting, x: share, writes: |share, _| share, ..usual() };
            trial.half_zeros = compression != PLAIN;
            (trial.setup.durability, trial.setup.log) = (durability, place);
            trial.setup.log_compression = compression;
            trial
        })
    };
    [0.9, 0.5].into_iter().flat_map(of_share).collect()
}

/// Half of writes over a large memtable, and over small ones that flushes write one by one or merge.
fn memtables(usual: &dyn Fn() -> Trial) -> Vec<Trial> {
    let merged = (MEMTABLE_BYTES_MAX / MEMTABLE_BYTES) as u32;
    let ways = [
        ("one large", usual_tree().memtable_bytes(MEMTABLE_BYTES_MAX)),
        ("small", usual_tree()),
        ("small, merged", usual_tree().merged_memtables(merged)),
    ];
    let of_skew = |theta: f64| {
        ways.map(|(setting, tree)| {
            let mut trial = Trial { setting, x: theta, ..usual() };
            trial.writes = |_, _| 0.5;
            trial.setup.tree = tree_of(tree);
            if theta > 0.0 {
                trial.distribution = Distribution::Zipf { theta };
            }
            trial
        })
    };
    [0.0, SKEW].into_iter().flat_map(of_skew).collect()
}

/// Half of writes, and 90 % for 25 seconds of each minute.
fn bursts(usual: &dyn Fn() -> Trial) -> Vec<Trial> {
    let ways = [
        ("RocksDB's", LsmThrottling::RocksDb),
        ("two stages", LsmThrottling::TwoStage),
        ("graded", LsmThrottling::Graded),
    ];
    let trial = |(setting, throttling)| {
        let writes = |_, slice| if slice % PERIOD_SLICES < BURST_SLICES { 0.9 } else { 0.5 };
        let mut trial = Trial { setting, writes, ..usual() };
        trial.seconds *= BURSTS_FACTOR;
        trial.setup.tree = tree_of(usual_tree().throttling(throttling));
        trial
    };
    ways.into_iter().map(trial).collect()
}

/// Level 0 as it is by default, and with large runs where reads prevail.
fn reads(usual: &dyn Fn() -> Trial) -> Vec<Trial> {
    let of_share = |share: &f64| {
        let trial = |setting| Trial { setting, x: *share, writes: |reads, _| 1.0 - reads, ..usual() };
        let runs = 2 * LEVEL_ZERO_RUNS;
        let mut fixed = trial("small runs");
        fixed.setup.tree = tree_of(usual_tree().level_zero_runs(runs));
        let mut by_reads = trial("by reads");
        let tree = usual_tree()
            .memtable_bytes(MEMTABLE_BYTES_MAX)
            .level_zero_runs(runs / 4)
            .slowdown_runs(SLOWDOWN_RUNS / 4)
            .stop_runs(STOP_RUNS / 4)
            .level_zero_by_reads(true);
        by_reads.setup.tree = tree_of(tree);
        [fixed, by_reads]
    };
    READ_SHARES.iter().flat_map(of_share).collect()
}

fn measure(trial: Trial, interrupt: &AtomicBool) -> anyhow::Result<Point> {
    let Trial { setup, setting, x, clients, writes, half_zeros, distribution, seconds } = trial;
    let target = setup.target.display().to_string();
    let watched = Subject::with(&setup, |subject| {
        subject.fill(Order::Stretches, interrupt)?;
        subject.settle(interrupt)?;
        let mix = |slice| {
            let update = writes(x, slice);
            Mix { read: 1.0 - update, update, in_order: true, half_zeros, ..Mix::default() }
        };
        let slice = std::time::Duration::from_secs_f64(seconds / SCALE as f64 / f64::from(SLICES));
        let warmup = SLICES / WARMUP_DIVISOR;
        let watch = Watch { clients, mix: &mix, distribution, slices: SLICES, slice, warmup };
        subject.watch(&watch, interrupt)
    })?;
    Ok(Point { target, setting, x, watched })
}
