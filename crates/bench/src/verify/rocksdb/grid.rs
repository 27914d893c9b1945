//! Point queries and scans of RocksDB over fanouts, block sizes and threads, compared with the predictions of
//! the drive's profile: the question of the MQSSD paper's §5.2 and §6, about this drive.
//!
//! 1. Each tree (a fanout and a block size) is filled in random order and comes to rest.
//! 2. In each round, all trees are read in turn, so that a drive that becomes slower or faster does so for
//!    all. For each number of threads, `db_bench` opens the tree, with direct reads, so that the block cache
//!    is the only one, and runs point queries and scans, each twice. The first runs fill the cache.
//! 3. Of each cell the median over the rounds counts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, ensure};
use flashgrain_advisor::engine::{RestingTree, predicted_rocksdb_rate};
use flashgrain_advisor::workload::{Durability, Operations, Records};
use flashgrain_advisor::{Drive, Interval, Workload};
use flashgrain_profile::{DeviceProfile, Error};
use flashgrain_report::unit;
use serde::Serialize;

use super::{PROGRAM, is_installed, output};
use crate::listener::Listener;
use crate::verify::program;
use crate::verify::scatter::Scatter;
use crate::verify::scratch::{Scratch, room, rounded_down};

/// Copies of the records that a tree may take, and one more of the tree whose compactions are under way.
const COPIES_PER_TREE: f64 = 1.3;

/// The options of a grid.
#[derive(Clone, Debug)]
pub struct GridOptions {
    /// The scratch directory is made below this one.
    pub directory: PathBuf,
    /// Fanouts, `max_bytes_for_level_multiplier`.
    pub fanouts: Vec<u32>,
    /// Sizes of blocks.
    pub block_bytes: Vec<u64>,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// Records in the tree.
    pub records: u64,
    /// Bytes of a key; at least 8.
    pub key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Of the block cache.
    pub cache_bytes: u64,
    /// Size of files and memtables.
    pub file_bytes: u64,
    /// Bytes of records that a scan yields.
    pub scan_bytes: u64,
    /// Rounds over all trees.
    pub rounds: u32,
    /// Measured time of each run.
    pub seconds: u32,
    /// Seed of the keys.
    pub seed: u64,
}

/// All cells, and how well the predictions did.
#[derive(Debug, Serialize)]
pub struct Grid {
    records: u64,
    record_bytes: u64,
    cache_bytes: u64,
    file_bytes: u64,
    scan_bytes: u64,
    rounds: u32,
    seed: u64,
    point_queries: Table,
    scans: Table,
    /// It was ended early: rounds are missing, and perhaps trees.
    pub interrupted: bool,
}

/// Operations of one kind.
#[derive(Debug, Serialize)]
struct Table {
    cells: Vec<Cell>,
    /// Median of the predictions' errors, as a share of the measured values.
    median_error: f64,
    /// By number of threads: Spearman's correlation of predicted and measured rates over the trees; none of
    /// fewer than three trees.
    rank_correlations: Vec<(u32, Option<f64>)>,
}

/// A tree under a number of threads.
#[derive(Clone, Copy, Debug, Serialize)]
struct Cell {
    fanout: u32,
    block_bytes: u64,
    threads: u32,
    operations_per_s: f64,
    predicted: Interval,
}

/// Operations that are measured, by the name of their benchmark.
const KINDS: [&str; 2] = ["readrandom", "seekrandom"];

/// Measures the whole grid.
///
/// # Errors
/// If `db_bench` is missing or fails, or the directory has not enough room.
pub fn grid(
    options: &GridOptions,
    profile: &DeviceProfile,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<Grid> {
    is_installed()?;
    let drive = Drive::of(profile);
    let mut workload = options.workload();
    let (free, needed) = (room(&options.directory)? as f64, workload.records.data_bytes() * options.copies());
    ensure!(
        free >= needed,
        "{}: the trees may take {}, and {} are free; there is room for --records {}",
        options.directory.display(),
        unit::bytes(needed),
        unit::bytes(free),
        rounded_down(options.records as f64 * free / needed)
    );
    let scratch = Scratch::below(&options.directory)?;
    let measured = options.measure(&scratch, listener, interrupt)?;
    let mut cells = [Vec::new(), Vec::new()];
    for (tree, rates) in &measured.rates {
        for (&threads, rates) in options.threads.iter().zip(rates) {
            workload.clients = threads;
            for ((operations, rates), cells) in options.operations().into_iter().zip(rates).zip(&mut cells) {
                // Of a tree that was not read before an interrupt.
                if rates.is_empty() {
                    continue;
                }
                let operations_per_s = Scatter::of(rates.clone()).median;
                workload.operations = operations;
                let predicted = predicted_rocksdb_rate(&workload, &drive, &options.resting(*tree));
                let Tree { fanout, block_bytes } = *tree;
                cells.push(Cell { fanout, block_bytes, threads, operations_per_s, predicted });
            }
        }
    }
    scratch.remove()?;
    let [point_queries, scans] = cells.map(|cells| Table::of(cells, &options.threads));
    Ok(Grid {
        records: options.records,
        record_bytes: workload.records.record_bytes(),
        cache_bytes: options.cache_bytes,
        file_bytes: options.file_bytes,
        scan_bytes: options.scan_bytes,
        rounds: options.rounds,
        seed: options.seed,
        point_queries,
        scans,
        interrupted: measured.interrupted,
    })
}

/// A tree of the grid.
#[derive(Clone, Copy, Debug)]
struct Tree {
    fanout: u32,
    block_bytes: u64,
}

/// Rates of a tree by number of threads, kind of operation, and round.
type Rates = Vec<[Vec<f64>; 2]>;

/// All rates that were measured.
struct Measured {
    rates: Vec<(Tree, Rates)>,
    interrupted: bool,
}

/// Whether something failed because the user ended it.
fn was_interrupted(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Interrupted))
}

impl GridOptions {
    /// Records that a scan yields.
    fn scan_records(&self) -> u64 {
        (self.scan_bytes / (self.key_bytes + self.value_bytes)).max(1)
    }

    /// The measured operations, in the order of [`KINDS`], as the advisor knows them.
    fn operations(&self) -> [Operations; 2] {
        let range_bytes = self.scan_records() * (self.key_bytes + self.value_bytes);
        [
            Operations { point_hits: 1.0, ..Operations::default() },
            Operations { ranges: 1.0, range_bytes, ..Operations::default() },
        ]
    }

    /// Copies of the records that all trees may take.
    fn copies(&self) -> f64 {
        (self.fanouts.len() * self.block_bytes.len()) as f64 * COPIES_PER_TREE + 1.0
    }

    fn workload(&self) -> Workload {
        Workload {
            name: "a grid of trees".into(),
            operations: Operations::default(),
            records: Records {
                count: self.records,
                key_bytes: self.key_bytes,
                value_bytes: self.value_bytes,
            },
            memory_bytes: self.cache_bytes,
            skew: 0.0,
            clients: 1,
            rate_per_second: None,
            cores: std::thread::available_parallelism().ok().map(|cores| cores.get() as u32),
            durability: Durability::None,
            lifetime: None,
            assumptions: Vec::new(),
        }
    }

    fn resting(&self, tree: Tree) -> RestingTree {
        RestingTree {
            fanout: f64::from(tree.fanout),
            block_bytes: tree.block_bytes as f64,
            file_bytes: self.file_bytes as f64,
        }
    }

    fn trees(&self) -> Vec<Tree> {
        let of_fanout = |fanout: &u32| {
            let fanout = *fanout;
            self.block_bytes.iter().map(move |block_bytes| Tree { fanout, block_bytes: *block_bytes })
        };
        self.fanouts.iter().flat_map(of_fanout).collect()
    }

    /// Fills all trees and reads them in rounds. Measurements before an interrupt count.
    fn measure(
        &self,
        scratch: &Scratch,
        listener: &dyn Listener,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<Measured> {
        let trees = self.trees();
        let none = || self.threads.iter().map(|_| [Vec::new(), Vec::new()]).collect();
        let rates = trees.iter().map(|tree| (*tree, none())).collect();
        let mut measured = Measured { rates, interrupted: false };
        let go = || -> anyhow::Result<()> {
            for tree in trees {
                listener.note(&format!("filling: {}", tree.describe()));
                let arguments = ["--benchmarks=filluniquerandom,waitforcompaction", "--threads=1"];
                self.db_bench(tree, &arguments.map(str::to_owned), scratch, interrupt)?;
            }
            for round in 1..=self.rounds {
                for (tree, rates) in &mut measured.rates {
                    listener.note(&format!("round {round} of {}: {}", self.rounds, tree.describe()));
                    for (threads, rates) in self.threads.iter().zip(rates) {
                        let read = self.read(*tree, *threads, scratch, interrupt)?;
                        rates.iter_mut().zip(read).for_each(|(rates, rate)| rates.push(rate));
                    }
                }
            }
            Ok(())
        };
        match go() {
            Err(error) if was_interrupted(&error) => measured.interrupted = true,
            done => done?,
        }
        Ok(measured)
    }

    /// The rates of a tree, in the order of [`KINDS`].
    fn read(
        &self,
        tree: Tree,
        threads: u32,
        scratch: &Scratch,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<[f64; 2]> {
        let arguments = [
            // The first of each warms up.
            format!("--benchmarks={}", KINDS.map(|kind| format!("{kind},{kind}")).join(",")),
            "--use_existing_db=true".into(),
            format!("--threads={threads}"),
            format!("--duration={}", self.seconds),
            format!("--seek_nexts={}", self.scan_records()),
        ];
        let said = self.db_bench(tree, &arguments, scratch, interrupt)?;
        let [point_queries, scans] = KINDS.map(|kind| output::rates(&said, kind));
        ensure!(point_queries.len() == 2 && scans.len() == 2, "db_bench told too few rates:\n{said}");
        Ok([point_queries[1], scans[1]])
    }

    fn db_bench(
        &self,
        tree: Tree,
        arguments: &[String],
        scratch: &Scratch,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<String> {
        let database = scratch.join(&format!("{}-{}.db", tree.fanout, tree.block_bytes));
        let mut command = Command::new(PROGRAM);
        command.args(self.tree_arguments(tree, &database)).args(arguments);
        let said = program::output(&mut command, &scratch.join("log"), interrupt);
        match said {
            Err(error) if was_interrupted(&error) => Err(error),
            said => said.with_context(|| format!("db_bench with {}", tree.describe())),
        }
    }

    fn tree_arguments(&self, tree: Tree, database: &Path) -> Vec<String> {
        let arguments = [
            ("db", database.display().to_string()),
            ("num", self.records.to_string()),
            ("key_size", self.key_bytes.to_string()),
            ("value_size", self.value_bytes.to_string()),
            ("cache_size", self.cache_bytes.to_string()),
            // 0 would be the time.
            ("seed", (self.seed % super::SEEDS + 1).to_string()),
            ("compression_type", "none".into()),
            ("use_direct_reads", "true".into()),
            ("block_size", tree.block_bytes.to_string()),
            ("max_bytes_for_level_multiplier", tree.fanout.to_string()),
            ("write_buffer_size", self.file_bytes.to_string()),
            ("target_file_size_base", self.file_bytes.to_string()),
            ("max_bytes_for_level_base", (self.file_bytes * LEVEL_ONE_FILES).to_string()),
            ("open_files", "-1".into()),
            ("disable_wal", "true".into()),
        ];
        arguments.map(|(name, value)| format!("--{name}={value}")).into()
    }
}

impl Tree {
    fn describe(self) -> String {
        format!("fanout {}, blocks of {}", self.fanout, unit::bytes(self.block_bytes as f64))
    }
}

/// As [`RestingTree`] has them.
const LEVEL_ONE_FILES: u64 = 4;

impl Table {
    fn of(cells: Vec<Cell>, threads: &[u32]) -> Self {
        let mut errors: Vec<f64> =
            cells.iter().map(|cell| (cell.predicted.value / cell.operations_per_s - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        let of_threads = |threads: u32| {
            let (predicted, measured): (Vec<f64>, Vec<f64>) = cells
                .iter()
                .filter(|cell| cell.threads == threads)
                .map(|cell| (cell.predicted.value, cell.operations_per_s))
                .unzip();
            (threads, rank_correlation(&predicted, &measured))
        };
        Self {
            median_error: errors.get(errors.len() / 2).copied().unwrap_or(0.0),
            rank_correlations: threads.iter().map(|threads| of_threads(*threads)).collect(),
            cells,
        }
    }
}

/// Spearman's rank correlation: that of the ranks; equal values share their mean rank. `None` for fewer than
/// three values, or if all are equal.
fn rank_correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.len() < 3 {
        return None;
    }
    let centred = |values: &[f64]| -> Vec<f64> {
        let rank = |value: &f64| {
            let below = values.iter().filter(|other| *other < value).count() as f64;
            let equal = values.iter().filter(|other| *other == value).count() as f64;
            below + (equal - values.len() as f64) / 2.0
        };
        values.iter().map(rank).collect()
    };
    let product = |one: &[f64], other: &[f64]| -> f64 { one.iter().zip(other).map(|(a, b)| a * b).sum() };
    let (one, other) = (centred(one), centred(other));
    let correlation = product(&one, &other) / (product(&one, &one) * product(&other, &other)).sqrt();
    correlation.is_finite().then_some(correlation)
}

impl Grid {
    /// The result as tables for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "RocksDB: {} records of {} bytes, {} of block cache, files of {}, medians of {} rounds, seed {}\n",
            unit::count(self.records as f64),
            self.record_bytes,
            unit::bytes(self.cache_bytes as f64),
            unit::bytes(self.file_bytes as f64),
            self.rounds,
            self.seed
        );
        let scans = format!("scans of {}", unit::bytes(self.scan_bytes as f64));
        for (name, table) in [("point queries", &self.point_queries), (scans.as_str(), &self.scans)] {
            text += &format!(
                "\n{name}\n{:>8} {:>7} {:>10} {:>12} {:>12} {:>26} {:>8}\n",
                "threads", "fanout", "block", "measured/s", "predicted/s", "interval", "ratio"
            );
            for cell in table.cells_by_threads() {
                let Interval { low, value, high } = cell.predicted;
                text += &format!(
                    "{:>8} {:>7} {:>10} {:>12} {:>12} {:>26} {:>8.2}\n",
                    cell.threads,
                    cell.fanout,
                    unit::bytes(cell.block_bytes as f64),
                    unit::count(cell.operations_per_s),
                    unit::count(value),
                    format!("{} to {}", unit::count(low), unit::count(high)),
                    value / cell.operations_per_s,
                );
            }
            text += &format!("median error {}; rank correlation", unit::share(table.median_error));
            for (threads, correlation) in &table.rank_correlations {
                let correlation = correlation.map_or("unknown".into(), |value| format!("{value:.2}"));
                text += &format!(", {correlation} with {threads} threads");
            }
            text.push('\n');
        }
        text
    }
}

impl Table {
    fn cells_by_threads(&self) -> Vec<Cell> {
        let mut cells = self.cells.clone();
        cells.sort_by_key(|cell| cell.threads);
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_agree_disagree_and_are_shared_by_equals() {
        let close = |one: &[f64], other: &[f64], expected: f64| {
            let got = rank_correlation(one, other).unwrap();
            assert!((got - expected).abs() < 1e-9, "{got}, not {expected}");
        };
        close(&[1.0, 2.0, 30.0], &[0.1, 0.2, 0.3], 1.0);
        close(&[1.0, 2.0, 30.0], &[0.3, 0.2, 0.1], -1.0);
        close(&[1.0, 3.0, 2.0, 4.0], &[1.0, 2.0, 3.0, 4.0], 0.8);
        // Ranks 1.5, 1.5, 3 and 1, 2, 3.
        close(&[1.0, 1.0, 2.0], &[1.0, 2.0, 3.0], 1.5 / 3.0_f64.sqrt());
        assert_eq!(rank_correlation(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(rank_correlation(&[1.0, 2.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn a_table_knows_its_error_and_the_ranks_of_each_number_of_threads() {
        let cell = |threads, operations_per_s, predicted| Cell {
            fanout: 10,
            block_bytes: 4096,
            threads,
            operations_per_s,
            predicted: Interval::exact(predicted),
        };
        let cells =
            [(1, 100.0, 110.0), (4, 400.0, 300.0), (1, 90.0, 95.0), (4, 500.0, 200.0), (1, 50.0, 50.0)];
        let table =
            Table::of(cells.map(|(threads, got, predicted)| cell(threads, got, predicted)).into(), &[1, 4]);
        assert_eq!(table.rank_correlations, [(1, Some(1.0)), (4, None)]);
        assert!((table.median_error - 0.1).abs() < 1e-9, "{table:?}");
        let order: Vec<u32> = table.cells_by_threads().iter().map(|cell| cell.threads).collect();
        assert_eq!(order, [1, 1, 1, 4, 4]);
    }
}
