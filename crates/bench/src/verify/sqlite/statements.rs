//! Statements of SQLite that fill a table and work on it.

use std::fmt::Write as _;

use flashgrain_advisor::Workload;
use flashgrain_advisor::workload::Records;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// Of an integer key.
pub(super) const KEY_BYTES: u64 = 8;

/// Rows of a transaction while the table is filled.
const BATCH: u64 = 10_000;

/// The script that makes the table and its rows, in key order, and ends with nothing in a log.
pub(super) fn fill(pragmas: &str, records: Records) -> String {
    let mut script = format!("{pragmas}\nCREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB NOT NULL);\n");
    for first in (0..records.count).step_by(BATCH as usize) {
        let last = (first + BATCH).min(records.count) - 1;
        let _infallible = writeln!(
            script,
            "WITH RECURSIVE c(k) AS (SELECT {first} UNION ALL SELECT k + 1 FROM c WHERE k < {last}) \
             INSERT INTO t SELECT k, randomblob({}) FROM c;",
            records.value_bytes
        );
    }
    script + "PRAGMA wal_checkpoint(TRUNCATE);\n"
}

/// One client's statements, without an end; each is a line and answers with one line.
pub(super) struct Statements {
    reads: f64,
    updates: f64,
    records: Records,
    per_range: u64,
    random: Pcg64,
}

impl Statements {
    /// Of a workload that is adapted.
    pub fn new(workload: &Workload, seed: u64) -> Self {
        let (operations, records) = (workload.operations, workload.records);
        Self {
            reads: operations.point_hits,
            updates: operations.updates,
            records,
            per_range: operations.range_bytes.div_ceil(records.record_bytes()).max(1),
            random: Pcg64::seed_from_u64(seed),
        }
    }

    /// The next one.
    pub fn next_line(&mut self) -> String {
        let key = self.random.random_range(0..self.records.count);
        let picked: f64 = self.random.random();
        if picked < self.reads {
            format!("SELECT length(v) FROM t WHERE k = {key};\n")
        } else if picked < self.reads + self.updates {
            let bytes = self.records.value_bytes;
            // SQLite returns the row before the commit. The program writes it out after the commit, when it
            // reads the next statement.
            format!("UPDATE t SET v = randomblob({bytes}) WHERE k = {key} RETURNING k;\n")
        } else {
            let end = key + self.per_range;
            format!("SELECT sum(length(v)) FROM t WHERE k >= {key} AND k < {end};\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Records {
        Records { count: 25_000, key_bytes: 8, value_bytes: 100 }
    }

    #[test]
    fn the_table_is_filled_by_batches_without_a_gap() {
        let script = fill("PRAGMA page_size = 8192;", records());
        assert!(script.starts_with("PRAGMA page_size = 8192;\nCREATE TABLE"), "{script}");
        for bounds in ["SELECT 0 ", "k < 9999)", "SELECT 10000 ", "SELECT 20000 ", "k < 24999)"] {
            assert!(script.contains(bounds), "{bounds}: {script}");
        }
        assert_eq!(script.matches("INSERT").count(), 3);
    }

    #[test]
    fn statements_have_the_shares_of_the_workload_and_follow_from_the_seed() {
        let mut workload = Workload::preset("ycsb-a").unwrap();
        workload.records = records();
        let operations = &mut workload.operations;
        (operations.point_hits, operations.updates, operations.ranges) = (0.6, 0.3, 0.1);
        operations.range_bytes = 1000;
        let lines = |seed| {
            let mut statements = Statements::new(&workload, seed);
            (0..10_000).map(|_| statements.next_line()).collect::<Vec<_>>()
        };
        let some = lines(1);
        let share = |word: &str| some.iter().filter(|line| line.starts_with(word)).count() as f64 / 1e4;
        for (word, expected) in [("SELECT length", 0.6), ("UPDATE", 0.3), ("SELECT sum", 0.1)] {
            assert!((share(word) - expected).abs() < 0.03, "{word}: {}", share(word));
        }
        assert!(some == lines(1) && some != lines(2));
    }
}
