//! A client's operations: the pages of a table that they need, and the changes that they make.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flashgrain_device::Nanos;
use flashgrain_ssdsim::{Counters, SimDevice};
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use serde::Serialize;

use super::super::go_on;
use super::super::stage::Phase;
use super::innodb::{InnoDb, Setup};
use crate::keys::{self, Distribution, Picker, Popularity};
use crate::processor::OPERATION_NS;
use crate::workload::{Operation, Workload};

/// Bytes of a record in addition to its columns: header, transaction, roll pointer, and lengths of columns.
const RECORD_OVERHEAD_BYTES: u64 = 25;

/// Columns of a pair of the benchmark experiment, and of a record of YCSB: a key of 24 bytes and ten fields
/// of 100.
const PAIR_BYTES: u64 = 32 + 100;
const YCSB_ROW_BYTES: u64 = 24 + 10 * 100;

/// Share of a leaf that records fill when they were inserted in a random order: ln 2.
const FILLED: f64 = std::f64::consts::LN_2;

/// Bytes of a transaction's redo log in addition to those of its row, which is in the log twice where it is
/// changed: in its page, and as it was before, in the undo log's.
const REDO_OVERHEAD_BYTES: u64 = 300;

/// Bytes of a field of YCSB, which an update changes.
const FIELD_BYTES: u64 = 100;

/// Processor time of the server and its client, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ServerCosts {
    /// A select of a record that is in the buffer pool.
    pub select_ns: u64,
    /// A change of such a record, with its commit, without the waiting for the drive.
    pub change_ns: u64,
    /// A page of 64 KiB on its way from the drive through the kernel into the buffer pool.
    pub page_ns: u64,
}

impl std::str::FromStr for ServerCosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<u64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        match numbers.as_deref() {
            Ok(&[select_ns, change_ns, page_ns])
                if [select_ns, change_ns, page_ns].iter().all(|ns| OPERATION_NS.contains(ns)) =>
            {
                Ok(Self { select_ns, change_ns, page_ns })
            }
            _ => Err("expected times of 1 to 1000000000 ns: SELECT,CHANGE,PAGE".into()),
        }
    }
}

impl std::fmt::Display for ServerCosts {
    /// Writes it as it is typed.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{},{},{}", self.select_ns, self.change_ns, self.page_ns)
    }
}

/// Records of a table in the order of their scattered keys, spread evenly over its leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub records: u64,
    /// Bytes of a row's columns.
    row_bytes: u64,
    pages: u32,
    pub page_bytes: u64,
}

impl Table {
    /// A table of `records` rows of `row_bytes` in `pages` leaves.
    pub fn of_rows(records: u64, row_bytes: u64, pages: u32, page_bytes: u64) -> Self {
        Self { records, row_bytes, pages, page_bytes }
    }

    /// The same, in as many leaves as rows in a random order need.
    fn scattered(records: u64, row_bytes: u64, page_bytes: u64) -> Self {
        let records_per_page = page_bytes as f64 * FILLED / (row_bytes + RECORD_OVERHEAD_BYTES) as f64;
        let pages = (records as f64 / records_per_page).ceil().max(1.0) as u32;
        Self::of_rows(records, row_bytes, pages, page_bytes)
    }

    pub fn of_pairs(records: u64, page_bytes: u64) -> Self {
        Self::scattered(records, PAIR_BYTES, page_bytes)
    }

    pub fn of_ycsb(records: u64, page_bytes: u64) -> Self {
        Self::scattered(records, YCSB_ROW_BYTES, page_bytes)
    }

    /// Leaves. New records find room in them.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The leaf of a record, and where in it the record is, as a share of its length.
    fn place(&self, record: u64) -> (u32, f64) {
        let mut key = [0; size_of::<u64>()];
        keys::scattered_key(record, &mut key);
        let place = u128::from(u64::from_be_bytes(key)) * u128::from(self.pages());
        ((place >> u64::BITS) as u32, place as u64 as f64 / u64::MAX as f64)
    }
}

/// See the module.
pub(super) struct Client {
    pub innodb: InnoDb,
    first_page: u32,
    table: Table,
    costs: ServerCosts,
    seed: u64,
    /// Streams of picks so far.
    streams: u64,
    /// Records by now.
    records: u64,
}

impl Client {
    /// Makes the table: all pages are written once, in a random order.
    pub fn make(
        setup: Setup,
        device: Arc<SimDevice>,
        table: Table,
        costs: ServerCosts,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let mut innodb = InnoDb::make(setup, device, seed)?;
        let first_page = setup.memory.system_pages();
        let mut pages: Vec<u32> = (0..first_page + table.pages()).collect();
        let mut random = Pcg64::seed_from_u64(seed);
        pages.shuffle(&mut random);
        // Batches of one size would have a drive that deals writes out in turns place all pages alike.
        let mut rest = pages.as_slice();
        while !rest.is_empty() {
            let count = random.random_range(1..=setup.layout.doublewrite_pages()).min(rest.len());
            let (batch, later) = rest.split_at(count);
            innodb.write(batch)?;
            rest = later;
        }
        Ok(Self { innodb, first_page, table, costs, seed, streams: 0, records: table.records })
    }

    fn picker(&mut self, distribution: Distribution) -> Picker {
        self.streams += 1;
        Picker::new(Popularity::new(self.table.records, distribution), self.seed, self.streams)
    }

    /// Selects random records.
    pub fn selects(&mut self, count: u64, interrupt: &AtomicBool) -> anyhow::Result<Phase> {
        let mut picker = self.picker(Distribution::Uniform);
        self.measured(count, interrupt, |client| {
            let record = picker.record_of(client.records);
            client.select(record, 1)
        })
    }

    /// Inserts new records, each in a transaction.
    pub fn inserts(&mut self, count: u64, interrupt: &AtomicBool) -> anyhow::Result<Phase> {
        self.measured(count, interrupt, Self::insert)
    }

    /// Gives random records another row, each in a transaction.
    #[cfg(test)]
    pub fn updates(&mut self, count: u64, interrupt: &AtomicBool) -> anyhow::Result<Phase> {
        let mut picker = self.picker(Distribution::Uniform);
        self.measured(count, interrupt, |client| {
            let record = picker.record_of(client.records);
            client.change(record, client.table.row_bytes)
        })
    }

    /// Does operations of a mix.
    pub fn ycsb(&mut self, workload: &Workload, count: u64, interrupt: &AtomicBool) -> anyhow::Result<Phase> {
        let mut picker = self.picker(workload.distribution);
        let mix = workload.role(0, 1).mix;
        self.measured(count, interrupt, |client| {
            let operation = mix.draw(&mut picker);
            let record = picker.record_of(client.records);
            match operation {
                Operation::Read | Operation::Miss => client.select(record, 1),
                Operation::Update => client.change(record, FIELD_BYTES),
                Operation::Insert => client.insert(),
                Operation::Scan => {
                    let (from, to) = mix.scan_records;
                    client.select(record, picker.between(from.into(), to.into()))
                }
                Operation::Modify => {
                    client.select(record, 1)?;
                    client.change(record, FIELD_BYTES)
                }
            }
        })
    }

    /// Reads `count` records in key order, from one on.
    fn select(&mut self, record: u64, count: u64) -> anyhow::Result<()> {
        let (first, place) = self.table.place(record);
        let pages = place + (count - 1) as f64 / (self.table.records as f64 / f64::from(self.table.pages));
        for page in first..=(first + pages as u32).min(self.table.pages() - 1) {
            let is_read = self.innodb.fetch(self.first_page + page)?;
            self.moved(is_read)?;
        }
        self.innodb.work(self.costs.select_ns)
    }

    fn insert(&mut self) -> anyhow::Result<()> {
        self.records += 1;
        self.change(self.records - 1, self.table.row_bytes)
    }

    /// Changes a record, in a transaction of its own.
    fn change(&mut self, record: u64, row_bytes: u64) -> anyhow::Result<()> {
        let (page, _) = self.table.place(record);
        let is_read = self.innodb.change(self.first_page + page)?;
        self.moved(is_read)?;
        self.innodb.work(self.costs.change_ns)?;
        self.innodb.commit(REDO_OVERHEAD_BYTES + 2 * row_bytes)
    }

    /// The processor's time for a page that was read.
    fn moved(&mut self, is_read: bool) -> anyhow::Result<()> {
        if is_read {
            self.innodb.work(self.costs.page_ns * self.table.page_bytes / super::PAPER_PAGE_BYTES)?;
        }
        Ok(())
    }

    fn measured(
        &mut self,
        count: u64,
        interrupt: &AtomicBool,
        mut operation: impl FnMut(&mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<Phase> {
        let (began, before) = (self.innodb.now(), self.innodb.counters());
        for number in 0..count {
            if number.is_multiple_of(1 << 10) {
                go_on(interrupt)?;
            }
            operation(self)?;
        }
        let after = self.innodb.counters();
        let each = |of: fn(&Counters) -> u64| (of(&after) - of(&before)) as f64 / count as f64;
        let elapsed: Nanos = self.innodb.now().since(began);
        Ok(Phase {
            per_s: count as f64 / elapsed.seconds(),
            reads_each: each(|counters| counters.reads),
            writes_each: each(|counters| counters.writes),
            flushes_each: each(|counters| counters.flushes),
        })
    }
}
