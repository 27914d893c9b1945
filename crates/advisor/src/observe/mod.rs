//! Workloads from the counters of engines.
//!
//! 1. [`Kind::of`] recognises the text, unless the user names its kind.
//! 2. A parser for each kind collects the values in the text: `bench`, `db_bench`, `rocksdb_log`, `mariadb`.
//! 3. Values that are missing in the text are assumed, and each assumption is a sentence in
//!    [`Workload::assumptions`].
//!
//! An observed workload never promises less than its engine kept: where a text does not tell whether commits
//! were made durable, every commit is taken to be.

mod bench;
mod db_bench;
mod mariadb;
mod rocksdb_log;

use crate::Error;
use crate::workload::{Durability, Operations, Records, Workload, checked};

/// Kinds of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A result of `flashgrain bench --json` or `flashgrain-bench`.
    Bench,
    /// A LOG of RocksDB that has a dump of statistics.
    RocksdbLog,
    /// The output of `db_bench`.
    DbBench,
    /// `SHOW GLOBAL STATUS` of MariaDB.
    MariadbStatus,
}

impl Kind {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Bench => "result of flashgrain bench",
            Self::RocksdbLog => "LOG of RocksDB",
            Self::DbBench => "output of db_bench",
            Self::MariadbStatus => "status of MariaDB",
        }
    }

    /// The kind of a text, if it is one that is known.
    pub fn of(text: &str) -> Option<Self> {
        let has = |part: &str| text.contains(part);
        if text.trim_start().starts_with('{') {
            Some(Self::Bench)
        } else if has("micros/op") && has("Entries:") {
            Some(Self::DbBench)
        } else if has("RocksDB version:") {
            Some(Self::RocksdbLog)
        } else if has("Com_select") && has("Handler_read_key") {
            Some(Self::MariadbStatus)
        } else {
            None
        }
    }
}

/// The workload of a text.
///
/// # Errors
/// [`Error::Observation`] if the text lacks a value that no assumption can replace, such as counts of
/// operations, or if its kind is not recognised.
pub fn observe(text: &str, kind: Option<Kind>) -> Result<Workload, Error> {
    let Some(kind) = kind.or_else(|| Kind::of(text)) else {
        let problem = "neither a result of flashgrain bench, nor a LOG of RocksDB, nor the output of db_bench, nor MariaDB's SHOW GLOBAL STATUS: name its kind with --observe-kind";
        return Err(Error::Observation { kind: "text", problem: problem.into() });
    };
    let seen = match kind {
        Kind::Bench => bench::parse(text),
        Kind::RocksdbLog => rocksdb_log::parse(text),
        Kind::DbBench => db_bench::parse(text),
        Kind::MariadbStatus => mariadb::parse(text),
    };
    seen.map_err(|problem| Error::Observation { kind: kind.describe(), problem })?.complete(kind)
}

/// The values found in a text.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Counts of operations.
    point_hits: f64,
    point_misses: f64,
    inserts: f64,
    updates: f64,
    deletes: f64,
    ranges: f64,
    range_bytes: Option<f64>,
    records: Option<f64>,
    key_bytes: Option<f64>,
    value_bytes: Option<f64>,
    memory_bytes: Option<f64>,
    skew: Option<f64>,
    clients: Option<f64>,
    durability: Option<Durability>,
    /// Sentences about values that were read in an unusual way.
    notes: Vec<String>,
}

/// Defaults for values that are missing in a text.
const KEY_BYTES: f64 = 16.0;
const VALUE_BYTES: f64 = 100.0;
const RANGE_RECORDS: f64 = 50.0;
const CLIENTS: f64 = 16.0;
/// Memory over the bytes of all records.
const MEMORY_FRACTION: f64 = 0.25;
const MEMORY_BYTES_MIN: f64 = (64u64 << 20) as f64;
const RECORDS_MIN: f64 = 1e6;
/// Operations per record where the number of records is not known.
const OPERATIONS_PER_RECORD: f64 = 4.0;
/// Records that memory has room for, at least.
const RECORDS_IN_MEMORY_MIN: f64 = 4.0;

impl Seen {
    fn operations(&self) -> f64 {
        self.point_hits + self.point_misses + self.inserts + self.updates + self.deletes + self.ranges
    }

    fn complete(self, kind: Kind) -> Result<Workload, Error> {
        let all = self.operations();
        if all <= 0.0 {
            let problem = "it has no counts of operations".to_owned();
            return Err(Error::Observation { kind: kind.describe(), problem });
        }
        let mut assumed = Assumed(self.notes.clone());
        let key_bytes = assumed.number("bytes of keys", self.key_bytes, KEY_BYTES).max(1.0).round();
        let value_bytes = assumed.number("bytes of values", self.value_bytes, VALUE_BYTES).max(0.0).round();
        let touched = (all / OPERATIONS_PER_RECORD).max(RECORDS_MIN).round();
        let count = assumed.number("number of records (--records)", self.records, touched).max(1.0).round();
        let record = key_bytes + value_bytes;
        let some = (count * record * MEMORY_FRACTION).max(MEMORY_BYTES_MIN);
        let some = some.max(record * RECORDS_IN_MEMORY_MIN).round();
        let memory_bytes = assumed.bytes("memory (--memory)", self.memory_bytes, some);
        let clients = assumed.number("clients (--clients)", self.clients, CLIENTS).clamp(1.0, 65_536.0);
        let range_bytes = match self.ranges > 0.0 {
            true => assumed.bytes("bytes of a range", self.range_bytes, RANGE_RECORDS * record),
            false => 0.0,
        };
        if self.skew.is_none() {
            assumed.0.push("distribution of keys not known, taken as uniform".into());
        }
        if self.durability.is_none() {
            assumed.0.push("durability not known: every commit must survive a power cut".into());
        }
        let share = |count: f64| count / all;
        checked(Workload {
            name: format!("observed {}", kind.describe()),
            operations: Operations {
                point_hits: share(self.point_hits),
                point_misses: share(self.point_misses),
                inserts: share(self.inserts),
                updates: share(self.updates),
                deletes: share(self.deletes),
                ranges: share(self.ranges),
                // A range has a record at least, and not more than there are.
                range_bytes: match self.ranges > 0.0 {
                    true => range_bytes.max(record).min(count * record).round() as u64,
                    false => 0,
                },
            },
            records: Records {
                count: count as u64,
                key_bytes: key_bytes as u64,
                value_bytes: value_bytes as u64,
            },
            memory_bytes: memory_bytes.max(1_048_576.0) as u64,
            skew: self.skew.unwrap_or(0.0),
            clients: clients as u32,
            rate_per_second: None,
            cores: None,
            durability: self.durability.unwrap_or(Durability::Sync),
            lifetime: None,
            assumptions: assumed.0,
        })
    }
}

/// Sentences about assumed values.
struct Assumed(Vec<String>);

impl Assumed {
    fn number(&mut self, fact: &str, seen: Option<f64>, otherwise: f64) -> f64 {
        self.value(fact, seen, otherwise, format!("{otherwise:.0}"))
    }

    fn bytes(&mut self, fact: &str, seen: Option<f64>, otherwise: f64) -> f64 {
        self.value(fact, seen, otherwise, flashgrain_settings::Bytes(otherwise as u64).to_string())
    }

    fn value(&mut self, fact: &str, seen: Option<f64>, otherwise: f64, words: String) -> f64 {
        seen.filter(|value| value.is_finite()).unwrap_or_else(|| {
            self.0.push(format!("{fact} not known, taken as {words}"));
            otherwise
        })
    }
}
