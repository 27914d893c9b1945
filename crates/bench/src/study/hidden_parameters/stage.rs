//! A database of pairs on a simulated drive, and the benchmark experiment's two phases (§3.2.2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flashgrain_device::{Nanos, Simulation as _};
use flashgrain_profile::Error;
use flashgrain_sqlite_vfs::{DEVICE_VFS_NAME, Sent, Volume, VolumeOptions};
use flashgrain_ssdsim::{Counters, SimConfig, SimDevice};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use rusqlite::{Connection, OpenFlags, Statement};
use serde::Serialize;

use super::{go_on, vfs};
use crate::processor::OPERATION_NS;

/// Bytes of a page of the database, as in the paper.
pub(super) const PAGE_BYTES: u64 = 64 << 10;

const KEY_WORDS: usize = 4;
const VALUE_BYTES: usize = 100;

/// SQLite's cache while a database is filled.
const FILL_CACHE_BYTES: u64 = 512 << 20;

/// A simulated drive has room for this many times the pairs' bytes, and for the log of an iteration.
const DRIVE_FACTOR: u64 = 8;
const DRIVE_BYTES_MIN: u64 = 256 << 20;

/// Processor time of SQLite's work, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SqliteCosts {
    /// A select that finds all pages in SQLite's cache.
    pub select_ns: u64,
    /// An insert that does, within a transaction.
    pub insert_ns: u64,
    /// A page of 64 KiB on its way between SQLite and the drive, through the kernel.
    pub page_ns: u64,
}

impl std::str::FromStr for SqliteCosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<u64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        match numbers.as_deref() {
            Ok(&[select_ns, insert_ns, page_ns])
                if [select_ns, insert_ns, page_ns].iter().all(|ns| OPERATION_NS.contains(ns)) =>
            {
                Ok(Self { select_ns, insert_ns, page_ns })
            }
            _ => Err("expected times of 1 to 1000000000 ns: SELECT,INSERT,PAGE".into()),
        }
    }
}

impl std::fmt::Display for SqliteCosts {
    /// Writes it as it is typed.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{},{},{}", self.select_ns, self.insert_ns, self.page_ns)
    }
}

/// How a database is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script<'a> {
    /// `sim:PRESET` or `sim:FILE.toml`.
    pub target: &'a str,
    /// Parameters of the database's URI.
    pub parameters: &'a str,
    pub journal_mode: &'a str,
    pub pairs: u64,
    /// Inserts and selects of an iteration.
    pub operations: u64,
    pub cache_share: f64,
    pub costs: SqliteCosts,
    pub seed: u64,
}

/// A phase of the experiment.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Phase {
    pub per_s: f64,
    /// Requests to the drive for each operation.
    pub reads_each: f64,
    pub writes_each: f64,
    pub flushes_each: f64,
}

/// See the module.
pub(super) struct Stage<'a> {
    script: Script<'a>,
    device: Arc<SimDevice>,
    volume: Arc<Volume>,
    mount: String,
    /// Always there but while it is opened anew.
    connection: Option<Connection>,
    pairs: u64,
    random: Pcg64,
    counted: Counters,
}

impl<'a> Stage<'a> {
    /// Makes a database with all its pairs, and opens it with its cache.
    pub fn make(script: Script<'a>, interrupt: &AtomicBool) -> anyhow::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if !SimConfig::is_name(script.target) {
            let why =
                "is no simulated drive, such as sim:960evo; real ones have a file system's layout between";
            return Err(Error::Argument(format!("{} {why}", script.target)).into());
        }
        vfs::register()?;
        let bytes = script.pairs * (VALUE_BYTES + KEY_WORDS * size_of::<u64>()) as u64;
        let log_bytes = script.operations * 3 * PAGE_BYTES;
        let drive_bytes = (bytes * DRIVE_FACTOR).max(DRIVE_BYTES_MIN) + log_bytes;
        let config = SimConfig::named(script.target)?.resized(drive_bytes);
        let device = Arc::new(SimDevice::new(&config, script.target, script.seed)?);
        let volume = Volume::create(Arc::clone(&device) as _, VolumeOptions { read_ahead_bytes: 0 })?;
        let mount = format!("study-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        flashgrain_sqlite_vfs::mount(&mount, Arc::clone(&volume))?;
        let random = Pcg64::seed_from_u64(script.seed);
        let counted = device.statistics().counters;
        let mut stage = Self { script, device, volume, mount, connection: None, pairs: 0, random, counted };
        stage.fill(interrupt)?;
        stage.open((stage.database_bytes()? as f64 * script.cache_share) as u64)?;
        Ok(stage)
    }

    /// Opens the database with `cache_bytes` of cache.
    fn open(&mut self, cache_bytes: u64) -> anyhow::Result<()> {
        self.connection = None;
        let uri = format!("file:/{}/pairs?{}", self.mount, self.script.parameters);
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags_and_vfs(uri, flags, DEVICE_VFS_NAME)?;
        connection.execute_batch(&format!(
            "PRAGMA page_size = {PAGE_BYTES}; PRAGMA cache_size = -{}; PRAGMA temp_store = memory",
            cache_bytes >> 10
        ))?;
        self.connection = Some(connection);
        Ok(())
    }

    fn connection(&self) -> anyhow::Result<&Connection> {
        self.connection.as_ref().ok_or_else(|| anyhow::anyhow!("the database is closed"))
    }

    /// Inserts the initial pairs, whose order is random as their keys are.
    fn fill(&mut self, interrupt: &AtomicBool) -> anyhow::Result<()> {
        self.open(FILL_CACHE_BYTES)?;
        let connection = self.connection()?;
        connection.execute_batch(
            "PRAGMA synchronous = off; CREATE TABLE pairs (key BLOB PRIMARY KEY, value BLOB); BEGIN",
        )?;
        let mut insert = insert(connection)?;
        for number in 0..self.script.pairs {
            if number.is_multiple_of(1 << 16) {
                go_on(interrupt)?;
            }
            insert.execute((key(self.script.seed, number), [0_u8; VALUE_BYTES]))?;
        }
        drop(insert);
        connection.execute_batch("COMMIT")?;
        let mode = self.script.journal_mode;
        connection.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(()))?;
        self.pairs = self.script.pairs;
        Ok(())
    }

    /// Statements that are not measured.
    pub fn execute(&self, statements: &str) -> anyhow::Result<()> {
        Ok(self.connection()?.execute_batch(statements)?)
    }

    /// A number that a pragma answers with.
    pub fn number(&self, pragma: &str) -> anyhow::Result<i64> {
        Ok(self.connection()?.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))?)
    }

    /// Bytes of the database.
    pub fn database_bytes(&self) -> anyhow::Result<u64> {
        Ok(self.number("page_count")?.unsigned_abs() * PAGE_BYTES)
    }

    /// The drive's time.
    fn now(&self) -> Nanos {
        self.device.now()
    }

    /// Lets the processor's time pass: that of an operation, and of the pages that it has moved.
    fn spend(&mut self, operation_ns: u64) {
        let counters = self.device.statistics().counters;
        let moved = counters.host_bytes_read + counters.host_bytes_written
            - self.counted.host_bytes_read
            - self.counted.host_bytes_written;
        self.counted = counters;
        let until = Nanos(self.now().0 + operation_ns + moved * self.script.costs.page_ns / PAGE_BYTES);
        while self.now() < until {
            self.device.pass(until);
        }
    }

    /// Inserts new pairs, `per_transaction` in a transaction.
    pub fn inserts(
        &mut self,
        count: u64,
        per_transaction: u64,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<Phase> {
        let (began, before) = (self.now(), self.device.statistics().counters);
        let mut left = count;
        while left > 0 {
            go_on(interrupt)?;
            let now = left.min(per_transaction);
            self.insert_together(now)?;
            left -= now;
        }
        Ok(self.phase(count, began, &before))
    }

    fn insert_together(&mut self, count: u64) -> anyhow::Result<()> {
        let connection = self.connection()?;
        connection.execute_batch("BEGIN")?;
        let mut insert = insert(connection)?;
        for number in self.pairs..self.pairs + count {
            insert.execute((key(self.script.seed, number), [0_u8; VALUE_BYTES]))?;
        }
        drop(insert);
        connection.execute_batch("COMMIT")?;
        self.pairs += count;
        self.spend(self.script.costs.insert_ns * count);
        Ok(())
    }

    /// Selects pairs at random, all in one transaction.
    pub fn selects(&mut self, count: u64, interrupt: &AtomicBool) -> anyhow::Result<Phase> {
        let (began, before) = (self.now(), self.device.statistics().counters);
        self.execute("BEGIN")?;
        for number in 0..count {
            if number.is_multiple_of(1 << 10) {
                go_on(interrupt)?;
            }
            let pair = self.random.random_range(0..self.pairs);
            let mut select = self.connection()?.prepare("SELECT value FROM pairs WHERE key = ?1")?;
            let value: Vec<u8> = select.query_row([key(self.script.seed, pair)], |row| row.get(0))?;
            anyhow::ensure!(value.len() == VALUE_BYTES, "SQLite has lost a pair");
            drop(select);
            self.spend(self.script.costs.select_ns);
        }
        self.execute("COMMIT")?;
        Ok(self.phase(count, began, &before))
    }

    fn phase(&self, count: u64, began: Nanos, before: &Counters) -> Phase {
        let after = self.device.statistics().counters;
        let each = |of: fn(&Counters) -> u64| (of(&after) - of(before)) as f64 / count as f64;
        Phase {
            per_s: count as f64 / self.now().since(began).seconds(),
            reads_each: each(|counters| counters.reads),
            writes_each: each(|counters| counters.writes),
            flushes_each: each(|counters| counters.flushes),
        }
    }

    /// Copies the log into the database; frames of the log, and seconds.
    pub fn checkpoint(&mut self) -> anyhow::Result<(u64, f64)> {
        let began = self.now();
        let frames: i64 = self.connection()?.query_row("PRAGMA wal_checkpoint", [], |row| row.get(1))?;
        self.spend(0);
        Ok((frames.unsigned_abs(), self.now().since(began).seconds()))
    }

    /// Begins to record the volume's requests, or ends it.
    pub fn record(&self, is_on: bool) -> Vec<Sent> {
        self.volume.record(is_on)
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        flashgrain_sqlite_vfs::unmount(&self.mount);
    }
}

fn insert(connection: &Connection) -> rusqlite::Result<Statement<'_>> {
    connection.prepare("INSERT INTO pairs VALUES (?1, ?2)")
}

/// The key of a pair: 32 bytes in no order.
fn key(seed: u64, number: u64) -> [u8; KEY_WORDS * size_of::<u64>()] {
    let mut random = Pcg64::new(seed.into(), u128::from(number));
    let words: [u64; KEY_WORDS] = std::array::from_fn(|_| random.random());
    let mut key = [0; KEY_WORDS * size_of::<u64>()];
    for (place, word) in key.chunks_exact_mut(size_of::<u64>()).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    key
}
