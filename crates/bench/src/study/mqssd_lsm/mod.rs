//! Queries, scans and compactions over fanout and concurrency, and a single level compared with the
//! configuration for flash: section 5.3 of "Multi-Queue SSD I/O Modeling & Its Implications for Data
//! Structure Design".
//!
//! For each [`Layout`] a store is filled by one client in random order, as by db_bench's `filluniquerandom`,
//! until no merge is due; then k clients look up random keys and scan 128 records. As in the paper's RocksDB
//! there are no filters, unless they are asked for, so that a query reads a block of each run above the one
//! with its key. Beside each time is the one that the model predicts, with costs that reads and writes of the
//! drive itself had.

mod drive_costs;
mod figures;
mod layout;
mod numbers;
mod paper;
mod prediction;
mod question;
mod sheet;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use flashgrain::{Durability, LsmCompression, LsmLevelStats, LsmMetadata};
use flashgrain_model::Mqssd;
use serde::Serialize;

pub use layout::Layout;
pub use numbers::ABOUT;

use prediction::{Predicted, Prediction};

use super::comparison::Comparison;
use super::subject::{Measured, Subject, Task};
use super::{LogPlace, Setup, Sheet, lsm_tree};
use crate::fill::Order;
use crate::listener::Listener;
use crate::processor::ProcessorCosts;
use crate::records::Records;
use crate::workload::Mix;

/// Bytes of a key and of a value, as in the paper.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 2048;

/// A record takes at most a quarter of a block, so that blocks have three of these, where RocksDB's of 4 KiB
/// have two, which reach into two pages of the drive, too.
const BLOCK_BYTES: u32 = 8 << 10;

/// Records of a scan, as in the paper.
const SCAN_RECORDS: u32 = 128;

/// Bytes of a simulated drive over those of the records.
const DRIVE_FACTOR: u64 = 4;
const DRIVE_BYTES_MIN: u64 = 256 << 20;

/// Memtables that memory has room for, at least; each may take a quarter.
const MEMTABLES_MIN: u64 = 4;
const CACHE_BYTES_MIN: u64 = 1 << 20;

/// Stores that are only filled have this part of the records: there are many of them.
const FILL_DIVISOR: u64 = 4;

/// Processors that the store uses.
const WORKERS: u32 = 16;

/// The study's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// A directory, or a simulated drive.
    pub target: PathBuf,
    /// Records; the paper has 64 million.
    pub records: u64,
    /// T: bytes of a table and of a memtable, 64 MiB in the paper.
    pub table_bytes: u64,
    /// Memory as a share of the records' bytes.
    pub cache_share: f64,
    /// Fanouts of the leveled layouts.
    pub fanouts: Vec<u32>,
    /// k: clients at a time.
    pub concurrency: Vec<u32>,
    /// Bits of filters for each key.
    pub filter_bits: f64,
    /// Whether fence pointers and filters stay in memory, as the paper's do.
    pub metadata: LsmMetadata,
    /// Queries of each measurement, and four times as many as scans.
    pub queries: u64,
    /// Processor time of simulated workers.
    pub costs: ProcessorCosts,
    /// Seed of everything random.
    pub seed: u64,
}

/// The findings of a layout.
#[derive(Clone, Debug, Serialize)]
struct Found {
    layout: Layout,
    /// By the number of jobs.
    compactions: Vec<Compaction>,
    /// Levels of the store that queries and scans read.
    levels: Vec<LsmLevelStats>,
    queries: Vec<Measured>,
    scans: Vec<Measured>,
    predicted: Predicted,
}

/// How a store was filled.
#[derive(Clone, Copy, Debug, Serialize)]
struct Compaction {
    /// k: jobs that merge at a time at most.
    jobs: u32,
    /// Seconds from the first insert until no merge is due.
    seconds: f64,
    /// Bytes that were written for each byte that was flushed.
    write_amplification: f64,
}

/// All layouts.
#[derive(Debug, Serialize)]
pub struct MqssdResult {
    flashgrain_version: &'static str,
    target: String,
    /// Of the stores for queries and scans.
    records: Records,
    /// Of those that are only filled.
    fill_records: Records,
    table_bytes: u64,
    block_bytes: u32,
    cache_bytes: u64,
    filter_bits: f64,
    metadata: LsmMetadata,
    costs: ProcessorCosts,
    seed: u64,
    /// The drive's own costs, for predicted times.
    drive: Mqssd,
    layouts: Vec<Found>,
}

impl Options {
    fn records(&self) -> Records {
        Records { count: self.records, key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES }
    }

    fn fill_records(&self) -> Records {
        let records = self.records();
        Records { count: records.count.div_ceil(FILL_DIVISOR), ..records }
    }

    fn concurrency_max(&self) -> u32 {
        self.concurrency.iter().copied().max().unwrap_or(1)
    }

    fn cache_bytes(&self, records: Records) -> u64 {
        let wanted = (records.bytes() as f64 * self.cache_share) as u64;
        wanted.max(MEMTABLES_MIN * self.table_bytes).max(CACHE_BYTES_MIN)
    }

    /// Bytes of a simulated drive for such records.
    fn drive_bytes(&self, records: Records) -> u64 {
        (DRIVE_FACTOR * records.bytes()).max(DRIVE_BYTES_MIN)
    }

    fn setup(&self, records: Records, layout: Layout, jobs: u32) -> Setup {
        Setup {
            target: self.target.clone(),
            drive_bytes: self.drive_bytes(records),
            drives: None,
            backend: None,
            polled: false,
            records,
            tree: lsm_tree(
                layout
                    .options(self.table_bytes, jobs)
                    .filter_bits_per_key(self.filter_bits)
                    .metadata(self.metadata),
                BLOCK_BYTES,
            ),
            segment_bytes: self.table_bytes,
            cache_bytes: self.cache_bytes(records),
            workers: WORKERS,
            clients_max: self.concurrency_max().max(WORKERS),
            durability: Durability::None,
            log: LogPlace::WithTree,
            log_compression: LsmCompression::None,
            costs: self.costs,
            seed: self.seed,
        }
    }
}

/// The paper's numbers alone.
pub fn published() -> Vec<Comparison> {
    numbers::comparisons(None)
}

/// Measures every layout.
///
/// # Errors
/// Those of the target and the stores; [`flashgrain_profile::Error::Interrupted`].
pub fn mqssd_lsm(
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<MqssdResult> {
    let mut layouts = Vec::new();
    for layout in Layout::all(&options.fanouts) {
        layouts.push(measure(options, layout, listener, interrupt)?);
    }
    let drive = drive_costs::measure(options, listener, interrupt)?;
    let prediction = Prediction { options, drive: &drive };
    for found in &mut layouts {
        found.predicted = prediction.of(found);
    }
    Ok(MqssdResult {
        flashgrain_version: env!("CARGO_PKG_VERSION"),
        target: options.target.display().to_string(),
        records: options.records(),
        fill_records: options.fill_records(),
        table_bytes: options.table_bytes,
        block_bytes: BLOCK_BYTES,
        cache_bytes: options.cache_bytes(options.records()),
        filter_bits: options.filter_bits,
        metadata: options.metadata,
        costs: options.costs,
        seed: options.seed,
        drive,
        layouts,
    })
}

fn measure(
    options: &Options,
    layout: Layout,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<Found> {
    let mut jobs: Vec<u32> = options.concurrency.iter().map(|k| layout.jobs(*k)).collect();
    jobs.dedup();
    let mut compactions = Vec::new();
    for k in jobs {
        let filled = |subject: &mut Subject| {
            listener.note(&format!("{}: filling, {k} jobs at a time", layout.name()));
            fill(subject, k, interrupt)
        };
        compactions.push(Subject::with(&options.setup(options.fill_records(), layout, k), filled)?);
    }
    let most = options.concurrency_max();
    Subject::with(&options.setup(options.records(), layout, most), |subject| {
        listener.note(&format!("{}: queries and scans", layout.name()));
        subject.fill(layout.order_for_reads(), interrupt)?;
        subject.settle(interrupt)?;
        let levels = subject.lsm_stats()?.levels;
        let (queries, scans) = read(options, subject, interrupt)?;
        Ok(Found { layout, compactions, levels, queries, scans, predicted: Predicted::default() })
    })
}

/// Fills a store until no merge is due.
fn fill(subject: &mut Subject, jobs: u32, interrupt: &AtomicBool) -> anyhow::Result<Compaction> {
    let began = subject.now();
    subject.fill(Order::Random, interrupt)?;
    subject.settle(interrupt)?;
    let seconds = subject.now().since(began).seconds();
    Ok(Compaction { jobs, seconds, write_amplification: subject.lsm_stats()?.write_amplification })
}

/// Queries and scans by each number of clients.
fn read(
    options: &Options,
    subject: &mut Subject,
    interrupt: &AtomicBool,
) -> anyhow::Result<(Vec<Measured>, Vec<Measured>)> {
    let nothing = Mix { in_order: true, ..Mix::default() };
    let query = Mix { read: 1.0, ..nothing };
    let scan = Mix { scan: 1.0, scan_records: (SCAN_RECORDS, SCAN_RECORDS), ..nothing };
    let mut run = |mix, clients, operations| {
        subject.run(Task { mix, clients, operations, stream: u64::from(clients) }, interrupt)
    };
    // Warm-up: these load the blocks that stay in memory.
    run(query, options.concurrency_max(), options.queries)?;
    let queries = options.concurrency.iter().map(|k| run(query, *k, options.queries));
    let queries = queries.collect::<anyhow::Result<_>>()?;
    let scans = options.concurrency.iter().map(|k| run(scan, *k, options.queries.div_ceil(4)));
    Ok((queries, scans.collect::<anyhow::Result<_>>()?))
}

impl MqssdResult {
    /// The result for people.
    pub fn sheet(&self) -> Sheet {
        sheet::of(self)
    }
}
