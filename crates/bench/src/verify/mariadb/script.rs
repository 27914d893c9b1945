//! The texts that fill a table of MariaDB and work on it.

use std::fmt::Write as _;

use flashgrain_advisor::Workload;
use flashgrain_advisor::workload::Records;

use super::super::adapt::records_per_range;
use super::super::integer_keys::{MISSING, SPACING};
use crate::keys::{Distribution, Popularity};

pub(super) const DATABASE: &str = "flashgrain";

/// Rows of a transaction while the table is filled.
const BATCH: u64 = 10_000;

/// The most that `RANDOM_BYTES` yields.
const RANDOM_BYTES_MAX: u64 = 1024;

/// Statements that make the table and its rows, in key order.
pub(super) fn fill(records: Records) -> String {
    let mut script = format!(
        "CREATE DATABASE {DATABASE};\nUSE {DATABASE};\n\
         CREATE TABLE t (k BIGINT PRIMARY KEY, v LONGBLOB NOT NULL) ENGINE = InnoDB;\n"
    );
    let value = random_bytes(records.value_bytes);
    for first in (0..records.count).step_by(BATCH as usize) {
        let last = (first + BATCH).min(records.count) - 1;
        let _infallible =
            writeln!(script, "INSERT INTO t SELECT seq * {SPACING}, {value} FROM seq_{first}_to_{last};");
    }
    script
}

/// An expression for a random value.
fn random_bytes(bytes: u64) -> String {
    let whole = (0..bytes / RANDOM_BYTES_MAX).map(|_| RANDOM_BYTES_MAX);
    let rest = Some(bytes % RANDOM_BYTES_MAX).filter(|rest| *rest > 0);
    let parts: Vec<String> = whole.chain(rest).map(|part| format!("RANDOM_BYTES({part})")).collect();
    format!("CONCAT('', {})", if parts.is_empty() { "''".into() } else { parts.join(", ") })
}

/// A script of sysbench's: the workload's numbers, and the code that draws operations from them.
pub(super) fn events(workload: &Workload) -> String {
    let (operations, records) = (workload.operations, workload.records);
    let zipf = match workload.skew {
        0.0 => None,
        theta => Popularity::new(records.count, Distribution::Zipf { theta }).grays_constants(),
    };
    let zipf = zipf.map_or("nil".to_owned(), |[zeta, zeta_two, alpha, eta]| {
        format!("{{ zeta = {zeta:?}, zeta_two = {zeta_two:?}, alpha = {alpha:?}, eta = {eta:?} }}")
    });
    let shares = [
        operations.point_hits,
        operations.point_misses,
        operations.updates,
        operations.inserts,
        operations.ranges,
    ];
    let shares = shares.map(|share| format!("{share:?}")).join(", ");
    format!(
        "local records, spacing, missing = {}, {SPACING}, {MISSING}\n\
         local shares = {{ {shares} }}\n\
         local value, per_range = \"{}\", {}\n\
         local zipf = {zipf}\n\n{}",
        records.count,
        random_bytes(records.value_bytes),
        records_per_range(workload),
        include_str!("events.lua"),
    )
}

/// Transactions per second, such as of `    transactions:    34567  (3456.70 per sec.)`.
pub(super) fn rate(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.trim().strip_prefix("transactions:"))?;
    let rate = line.split_once('(')?.1.split_once(" per sec.")?.0.parse().ok()?;
    (rate > 0.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_filled_by_batches_without_a_gap() {
        let script = fill(Records { count: 25_000, key_bytes: 8, value_bytes: 2050 });
        for bounds in ["seq_0_to_9999;", "seq_10000_to_19999;", "seq_20000_to_24999;"] {
            assert!(script.contains(bounds), "{bounds}: {script}");
        }
        assert_eq!(script.matches("INSERT").count(), 3);
        assert!(script.contains("CONCAT('', RANDOM_BYTES(1024), RANDOM_BYTES(1024), RANDOM_BYTES(2))"));
        assert_eq!(random_bytes(0), "CONCAT('', '')");
    }

    #[test]
    fn rates_are_transactions_per_second() {
        let said = "SQL statistics:\n    queries performed:\n        read: 100\n    \
                    transactions:                        7405   (1480.21 per sec.)\n    \
                    queries:                             7405   (1480.21 per sec.)\n";
        assert_eq!(rate(said), Some(1480.21));
        assert_eq!(rate("    transactions:  0 (0.00 per sec.)"), None);
        assert_eq!(rate("FATAL: no"), None);
    }
}
