//! MariaDB with its pages at hot locations (§4.1.3, Figure 13): first by settings alone, the size of pages
//! and the begin of the partition, then as the paper changed InnoDB, whose pages are written in two parts.
//!
//! A server cannot run in virtual time. Its requests are made up by `innodb`, in the layout of `layout`, with
//! memory as in `pool` and writes as in `cleaner`; `recording` holds all of them to the requests of a server.
//! `client` has the operations of both experiments.

mod cleaner;
mod client;
mod innodb;
mod layout;
mod pool;
#[cfg(test)]
mod recording;
mod sheet;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flashgrain_profile::Error;
use flashgrain_ssdsim::{SimConfig, SimDevice};
use serde::Serialize;

use super::Options;
use super::hot::Iteration;
use super::stage::Phase;
use crate::listener::Listener;
use crate::workload::Workload;
use client::{Client, Table};
use innodb::{Memory, Setup};
use layout::Layout;

pub use client::ServerCosts;
pub(super) use sheet::{Show, part};

/// Chunk, stripe, and hot location within a chunk, of the paper's SSD-S (Table 1).
const STRIPE_BYTES: u64 = 64 << 10;
const HOT_BYTES: u64 = 32 << 10;

/// The paper's pages, and InnoDB's default and smallest.
pub(super) const PAPER_PAGE_BYTES: u64 = 64 << 10;
const PAGES_BYTES: [u64; 3] = [4 << 10, 16 << 10, PAPER_PAGE_BYTES];

/// Records of the paper's YCSB, and operations of a run.
const YCSB_RECORDS: u64 = 1_000_000;
const YCSB_OPERATIONS: u64 = 100_000;

/// The mixes.
pub(super) const YCSB: [&str; 6] = ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"];

/// A simulated drive has room for this many times the table.
const DRIVE_FACTOR: u64 = 8;

/// Places of the table's pages, and the way they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Variant {
    /// The partition begins where a stripe does.
    Original,
    /// The partition begins at a hot location: no line of InnoDB is changed.
    Partition,
    /// InnoDB shifts the table's pages within their file and writes them in two parts, with a flush between.
    Paper,
}

impl Variant {
    pub const ALL: [Self; 3] = [Self::Original, Self::Partition, Self::Paper];

    pub fn name(self) -> &'static str {
        match self {
            Self::Original => "partition at a stripe",
            Self::Partition => "partition at a hot location",
            Self::Paper => "pages shifted and split, as in the paper",
        }
    }

    fn layout(self, page_bytes: u64, system_pages: u32) -> Layout {
        let at = |of: Self| if self == of { HOT_BYTES } else { 0 };
        Layout {
            page_bytes,
            partition_begin_bytes: at(Self::Partition),
            table_shift_bytes: at(Self::Paper),
            system_pages,
        }
    }
}

/// The benchmark experiment with pages of one size.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    pub variant: Variant,
    pub page_bytes: u64,
    pub pages: u32,
    pub iterations: Vec<Iteration>,
}

/// A mix of YCSB.
#[derive(Debug, Serialize)]
pub(super) struct Ycsb {
    pub variant: Variant,
    pub workload: &'static str,
    pub operations: Phase,
}

/// Both experiments.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub target: String,
    pub costs: ServerCosts,
    pub runs: Vec<Run>,
    pub ycsb_records: u64,
    pub ycsb: Vec<Ycsb>,
}

impl Run {
    /// Operations a second over all iterations.
    pub fn mean(&self, of: impl Fn(&Iteration) -> f64) -> f64 {
        let seconds: f64 = self.iterations.iter().map(|iteration| 1.0 / of(iteration)).sum();
        self.iterations.len() as f64 / seconds
    }
}

impl Found {
    pub fn run(&self, variant: Variant, page_bytes: u64) -> Option<&Run> {
        self.runs.iter().find(|run| (run.variant, run.page_bytes) == (variant, page_bytes))
    }

    /// By how much a variant is faster than the original: 0.1 is 10 %.
    pub fn gain(&self, variant: Variant, page_bytes: u64, of: impl Fn(&Iteration) -> f64) -> Option<f64> {
        Some(
            self.run(variant, page_bytes)?.mean(&of) / self.run(Variant::Original, page_bytes)?.mean(&of)
                - 1.0,
        )
    }

    pub fn ycsb(&self, variant: Variant, workload: &str) -> Option<&Ycsb> {
        self.ycsb.iter().find(|found| found.variant == variant && found.workload == workload)
    }

    /// The same for a mix of YCSB.
    pub fn ycsb_gain(&self, variant: Variant, workload: &str) -> Option<f64> {
        let per_s = |variant| Some(self.ycsb(variant, workload)?.operations.per_s);
        Some(per_s(variant)? / per_s(Variant::Original)? - 1.0)
    }
}

/// Measures both experiments.
pub(super) fn find(
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<Found> {
    let ycsb_records = (YCSB_RECORDS / options.divisor).max(1);
    let mut found = Found {
        target: options.hot_target.clone(),
        costs: options.server_costs,
        runs: Vec::new(),
        ycsb_records,
        ycsb: Vec::new(),
    };
    for page_bytes in PAGES_BYTES {
        for variant in Variant::ALL {
            // Of smaller pages, none lies across a stripe when all are shifted by a half.
            if variant == Variant::Paper && page_bytes != PAPER_PAGE_BYTES {
                continue;
            }
            listener.note(&format!("MariaDB, pages of {} KiB, {}", page_bytes >> 10, variant.name()));
            let table = Table::of_pairs(options.pairs(), page_bytes);
            let mut client = client(options, variant, table)?;
            client.selects(options.operations(), interrupt)?;
            let mut iterations = Vec::new();
            for _ in 0..options.iterations {
                let inserts = client.inserts(options.operations(), interrupt)?;
                let selects = client.selects(options.operations(), interrupt)?;
                iterations.push(Iteration { inserts, selects });
            }
            found.runs.push(Run { variant, page_bytes, pages: table.pages(), iterations });
        }
    }
    for workload in YCSB {
        let Some(mix) = Workload::named(workload) else { continue };
        for variant in Variant::ALL {
            listener.note(&format!("MariaDB, {workload}, {}", variant.name()));
            let mut client = client(options, variant, Table::of_ycsb(ycsb_records, PAPER_PAGE_BYTES))?;
            let operations = (YCSB_OPERATIONS / options.divisor).max(1);
            // The first fill the pool.
            client.ycsb(&mix, operations, interrupt)?;
            let operations = client.ycsb(&mix, operations * u64::from(options.iterations), interrupt)?;
            found.ycsb.push(Ycsb { variant, workload, operations });
        }
    }
    Ok(found)
}

/// A server with a table, on a drive of its own, and its client.
fn client(options: &Options, variant: Variant, table: Table) -> anyhow::Result<Client> {
    let target = &options.hot_target;
    if !SimConfig::is_name(target) {
        let why = "is no simulated drive, such as sim:960evo; MariaDB's requests are made up in virtual time";
        return Err(Error::Argument(format!("{target} {why}")).into());
    }
    let frames = ((f64::from(table.pages()) * options.cache_share) as usize).max(2);
    let memory = Memory::scaled(frames);
    let layout = variant.layout(table.page_bytes, memory.system_pages());
    let pages = memory.system_pages() + table.pages();
    let drive_bytes = layout.drive_bytes(pages).max(DRIVE_FACTOR * u64::from(pages) * table.page_bytes);
    let config = SimConfig::named(target)?.resized(drive_bytes);
    let device = Arc::new(SimDevice::new(&config, target, options.seed)?);
    let split_bytes = (variant == Variant::Paper).then_some(STRIPE_BYTES);
    let setup = Setup { layout, pages, memory, has_doublewrite: true, split_bytes };
    Client::make(setup, device, table, options.server_costs, options.seed)
}
