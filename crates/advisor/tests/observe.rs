//! Workloads from what engines have printed; the fixtures are cut from real ones.

use flashgrain_advisor::observe::{Kind, observe};
use flashgrain_advisor::workload::{Durability, Workload};

const LOG: &str = include_str!("fixtures/rocksdb-log.txt");
const DB_BENCH: &str = include_str!("fixtures/db-bench.txt");
const STATUS: &str = include_str!("fixtures/mariadb-status.txt");
const BENCH: &str = include_str!("fixtures/bench-lookup.json");

fn near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.01
}

fn assumes(workload: &Workload, what: &str) -> bool {
    workload.assumptions.iter().any(|text| text.contains(what))
}

#[test]
fn kinds_are_recognised() {
    for (text, kind) in [
        (LOG, Kind::RocksdbLog),
        (DB_BENCH, Kind::DbBench),
        (STATUS, Kind::MariadbStatus),
        (BENCH, Kind::Bench),
    ] {
        assert_eq!(Kind::of(text), Some(kind));
    }
    let error = observe("once upon a time", None).unwrap_err().to_string();
    assert!(error.contains("--observe-kind"), "{error}");
}

/// 443,703 writes and 64,807 reads of a `readwhilewriting` after a `fillrandom`, without syncs.
#[test]
fn a_rocksdb_log_tells_reads_writes_sizes_and_syncs() {
    let workload = observe(LOG, None).unwrap();
    let operations = workload.operations;
    assert!(near(operations.updates, 443_703.0 / 508_510.0), "{operations:?}");
    assert!(near(operations.point_hits + operations.point_misses, 64_807.0 / 508_510.0), "{operations:?}");
    assert_eq!((workload.records.key_bytes, workload.records.value_bytes), (16, 400));
    assert_eq!(workload.memory_bytes, (8 << 20) + 2 * (64 << 20));
    assert_eq!(workload.durability, Durability::None);
    // Two tables of about 101,000 entries each were in level 0 when the last dump was made.
    assert!(near(workload.records.count as f64, 203_360.0), "{:?}", workload.records);
    assert!(
        assumes(&workload, "not told apart") && assumes(&workload, "clients"),
        "{:?}",
        workload.assumptions
    );
}

#[test]
fn a_log_whose_writes_were_synced_keeps_its_promise() {
    let synced = LOG.replace("rocksdb.wal.synced COUNT : 0", "rocksdb.wal.synced COUNT : 443000");
    assert_ne!(synced, LOG);
    assert_eq!(observe(&synced, None).unwrap().durability, Durability::Sync);
    let without = LOG.lines().filter(|line| !line.starts_with("rocksdb.")).collect::<Vec<_>>().join("\n");
    let error = observe(&without, None).unwrap_err().to_string();
    assert!(error.contains("statistics"), "{error}");
}

#[test]
fn the_output_of_db_bench_tells_sizes_and_hits() {
    let workload = observe(DB_BENCH, None).unwrap();
    assert_eq!((workload.records.key_bytes, workload.records.value_bytes), (16, 400));
    assert_eq!(workload.records.count, 200_000);
    let operations = workload.operations;
    assert!(near(operations.point_hits, 0.9 * 44_256.0 / 50_000.0), "{operations:?}");
    assert!(near(operations.updates, 0.1), "{operations:?}");
    assert!(assumes(&workload, "filling the database") && assumes(&workload, "durability not known"));
    assert_eq!(workload.durability, Durability::Sync);
    let odd = DB_BENCH.replace("readwhilewriting :", "approximatesizerandom :");
    let error = observe(&odd, None).unwrap_err().to_string();
    assert!(error.contains("approximatesizerandom"), "{error}");
}

/// sysbench's `oltp_read_write` with 4 threads on 200,000 rows.
#[test]
fn a_status_of_mariadb_tells_statements_memory_and_flushes() {
    let workload = observe(STATUS, None).unwrap();
    let operations = workload.operations;
    assert!(operations.ranges > 0.3 && operations.point_hits > 0.3, "{operations:?}");
    assert!(near(operations.updates / operations.deletes, 2.0), "{operations:?}");
    assert_eq!(workload.memory_bytes, 8112 * 16384);
    assert_eq!((workload.clients, workload.durability), (4, Durability::Sync));
    // As a table with borders.
    let table: String = STATUS
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, value)| format!("| {name} | {value} |\n"))
        .collect();
    assert_eq!(observe(&table, None).unwrap(), workload);
}

#[test]
fn a_bench_result_tells_its_operation() {
    let workload = observe(BENCH, None).unwrap();
    assert_eq!(workload.operations.point_hits, 1.0);
    assert_eq!((workload.records.count, workload.clients, workload.memory_bytes), (200_000, 128, 2_560_000));
    let run = r#"{"engine": "rocksdb", "workload": "ycsb-a", "contents": {"records": {"count": 1000, "key_bytes": 8, "value_bytes": 100}}, "cache_bytes": 8388608,
        "durability": "Full", "clients": 4, "kinds": {"read": {"operations_per_s": 50.0, "records_per_s": 50.0},
        "modify": {"operations_per_s": 50.0, "records_per_s": 50.0}}}"#;
    let workload = observe(&run.replace('\n', " "), None).unwrap();
    assert!(near(workload.operations.updates, 1.0 / 3.0) && workload.durability == Durability::Sync);
    for bad in ["{", "{}", r#"{"operation": "juggling", "operations": 5}"#, r#"{"kinds": {"juggle": {}}}"#] {
        assert!(observe(bad, None).is_err(), "{bad}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in "[ -~\n\t]{0,200}", kind in 0_usize..4) {
        let kinds = [Kind::Bench, Kind::RocksdbLog, Kind::DbBench, Kind::MariadbStatus];
        let _ = observe(&text, Some(kinds[kind]));
    }

    #[test]
    fn a_text_that_is_cut_off_is_read_as_far_as_it_goes_or_refused(share in 0.0_f64..1.0) {
        for text in [LOG, DB_BENCH, STATUS, BENCH] {
            let end = (text.len() as f64 * share) as usize;
            if let Some(part) = text.get(..end) {
                let _ = observe(part, Kind::of(text));
            }
        }
    }
}
