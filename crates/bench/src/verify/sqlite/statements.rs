//! Statements of SQLite that fill a table and work on it.

use std::fmt::Write as _;

use flashgrain_advisor::Workload;
use flashgrain_advisor::workload::{Operations, Records};

use super::super::adapt::records_per_range;
use super::super::integer_keys::{MISSING, SPACING};
use crate::keys::{Distribution, Picker, Popularity};

/// Rows of a transaction while the table is filled.
const BATCH: u64 = 10_000;

/// The script that makes the table and its rows, in key order, and ends with nothing in a log.
pub(super) fn fill(pragmas: &str, records: Records) -> String {
    let mut script = format!("{pragmas}\nCREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB NOT NULL);\n");
    for first in (0..records.count).step_by(BATCH as usize) {
        let last = (first + BATCH).min(records.count) - 1;
        let _infallible = writeln!(
            script,
            "WITH RECURSIVE c(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM c WHERE n < {last}) \
             INSERT INTO t SELECT n * {SPACING}, randomblob({}) FROM c;",
            records.value_bytes
        );
    }
    script + "PRAGMA wal_checkpoint(TRUNCATE);\n"
}

/// Statements without an end; each is a line and answers with one line.
pub(super) struct Statements {
    operations: Operations,
    value_bytes: u64,
    per_range: u64,
    picker: Picker,
}

impl Statements {
    /// Those of a client.
    pub fn new(workload: &Workload, popularity: Popularity, seed: u64, client: u64) -> Self {
        Self {
            operations: workload.operations,
            value_bytes: workload.records.value_bytes,
            per_range: records_per_range(workload),
            picker: Picker::new(popularity, seed, client),
        }
    }

    /// The next one.
    pub fn next_line(&mut self) -> String {
        let key = self.picker.record() * SPACING;
        let Operations { point_hits, point_misses, updates, inserts, .. } = self.operations;
        let bytes = self.value_bytes;
        let mut remaining = self.picker.share();
        let mut is_next = |share: f64| {
            remaining -= share;
            remaining < 0.0
        };
        // SQLite returns the row of a change before the commit. The program writes it out after the commit,
        // when it reads the next statement. A sum is a row even where there is nothing to add up.
        if is_next(point_hits) {
            format!("SELECT sum(length(v)) FROM t WHERE k = {key};\n")
        } else if is_next(point_misses) {
            let missing = key + self.picker.between(MISSING, SPACING - 1);
            format!("SELECT sum(length(v)) FROM t WHERE k = {missing};\n")
        } else if is_next(updates) {
            format!("UPDATE t SET v = randomblob({bytes}) WHERE k = {key} RETURNING k;\n")
        } else if is_next(inserts) {
            let new = key + self.picker.between(1, MISSING - 1);
            format!("REPLACE INTO t VALUES ({new}, randomblob({bytes})) RETURNING k;\n")
        } else {
            let most = self.per_range;
            format!(
                "SELECT sum(length(v)) FROM (SELECT v FROM t WHERE k >= {key} ORDER BY k LIMIT {most});\n"
            )
        }
    }
}

/// Of the records of a workload.
pub(super) fn popularity(workload: &Workload) -> Popularity {
    let distribution = match workload.skew {
        0.0 => Distribution::Uniform,
        theta => Distribution::Zipf { theta },
    };
    Popularity::new(workload.records.count, distribution)
}

#[cfg(test)]
mod tests {
    use flashgrain_advisor::workload;

    use super::*;

    fn records() -> Records {
        Records { count: 25_000, key_bytes: 8, value_bytes: 100 }
    }

    #[test]
    fn the_table_is_filled_by_batches_without_a_gap() {
        let script = fill("PRAGMA page_size = 8192;", records());
        assert!(script.starts_with("PRAGMA page_size = 8192;\nCREATE TABLE"), "{script}");
        for bounds in ["SELECT 0 ", "n < 9999)", "SELECT 10000 ", "SELECT 20000 ", "n < 24999)"] {
            assert!(script.contains(bounds), "{bounds}: {script}");
        }
        assert_eq!(script.matches("INSERT").count(), 3);
    }

    /// Ten thousand statements of a workload.
    fn lines(workload: &Workload, seed: u64) -> Vec<String> {
        let mut statements = Statements::new(workload, popularity(workload), seed, 0);
        (0..10_000).map(|_| statements.next_line()).collect()
    }

    fn mixed() -> Workload {
        let mut workload = workload::preset("ycsb-a").unwrap();
        workload.records = records();
        workload.operations = Operations {
            point_hits: 0.3,
            point_misses: 0.1,
            updates: 0.2,
            inserts: 0.3,
            ranges: 0.1,
            range_bytes: 1000,
            ..Operations::default()
        };
        workload
    }

    #[test]
    fn statements_have_the_shares_of_the_workload_and_follow_from_the_seed() {
        let some = lines(&mixed(), 1);
        let share = |text: &str| some.iter().filter(|line| line.contains(text)).count() as f64 / 1e4;
        for (text, expected) in [("WHERE k = ", 0.6), ("UPDATE", 0.2), ("REPLACE", 0.3), ("LIMIT 10", 0.1)] {
            assert!((share(text) - expected).abs() < 0.03, "{text}: {}", share(text));
        }
        assert!(some == lines(&mixed(), 1) && some != lines(&mixed(), 2));
    }

    #[test]
    fn keys_that_miss_are_never_inserted() {
        let key_of = |line: &str, before: &str| -> Option<u64> {
            let digits = line.split_once(before)?.1;
            digits.split(|digit: char| !digit.is_ascii_digit()).next()?.parse().ok()
        };
        let some = lines(&mixed(), 1);
        let keys = |before: &'static str| some.iter().filter_map(move |line| key_of(line, before));
        let misses = keys("FROM t WHERE k = ").filter(|key| key % SPACING != 0);
        assert!(misses.clone().count() > 500 && misses.clone().all(|key| key % SPACING >= MISSING));
        let inserted = keys("VALUES (");
        assert!(inserted.clone().count() > 2000);
        assert!(inserted.clone().all(|key| (1..MISSING).contains(&(key % SPACING))));
    }

    #[test]
    fn keys_are_picked_with_the_skew_of_the_workload() {
        let most_popular = |skew: f64| {
            let mut workload = mixed();
            workload.skew = skew;
            workload.operations = Operations { updates: 1.0, ..Operations::default() };
            let mut counts = std::collections::BTreeMap::new();
            lines(&workload, 1).into_iter().for_each(|line| *counts.entry(line).or_insert(0_u32) += 1);
            counts.into_values().max()
        };
        // By Zipf's law with 0.99 the first of 25,000 records has 9 % of all.
        assert!(most_popular(0.99) > Some(500) && most_popular(0.0) < Some(50));
    }
}
