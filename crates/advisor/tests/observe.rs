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

/// As MySQL's and other clients print it: with a row below the other, as CSV with quotes and without.
#[test]
fn a_status_is_read_in_each_form_that_clients_print() {
    let workload = observe(STATUS, None).unwrap();
    let printed = |form: &dyn Fn(&str, &str) -> String| -> String {
        STATUS
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .map(|(name, value)| form(name, value))
            .collect()
    };
    let row = "*************************** 1. row ***************************";
    let vertical = printed(&|name, value| format!("{row}\nVariable_name: {name}\n        Value: {value}\n"));
    let csv = printed(&|name, value| format!("\"{name}\",\"{value}\"\n"));
    for text in
        [vertical, csv.clone(), csv.replace('"', ""), csv.replace(',', ";"), csv.replace('\n', "\r\n")]
    {
        assert_eq!(observe(&text, None).unwrap(), workload, "{}", text.get(..200).unwrap());
    }
}

#[test]
fn statements_on_several_tables_and_of_many_rows_count() {
    let workload =
        |rows: &str| observe(&format!("Com_select\t0\nHandler_read_key\t100\n{rows}"), None).unwrap();
    let many =
        workload("Com_insert\t1\nCom_insert_select\t9\nInnodb_rows_inserted\t1000\nHandler_update\t100\n");
    assert!(near(many.operations.inserts / many.operations.updates, 10.0), "{many:?}");
    assert!(assumes(&many, "1000 rows were inserted by 10 statements"));
    // 1000 commits without a transaction around them, of statements on several tables; each has a flush.
    let flushed = |flushes: u32| {
        let rows = "Com_update_multi\t600\nCom_delete_multi\t400\nHandler_update\t1000\n";
        workload(&format!("{rows}Innodb_os_log_fsyncs\t{flushes}\n")).durability
    };
    assert_eq!(flushed(1000), Durability::Sync);
}

/// What cannot be read weakens nothing: few flushes are no proof that commits do not wait for them.
#[test]
fn durability_that_a_text_does_not_tell_is_assumed_and_said() {
    let status = |rows: &str| {
        let rows = format!("Com_select\t0\nHandler_read_key\t100\nHandler_update\t1000\n{rows}");
        observe(&rows, None).unwrap()
    };
    let few = "Com_update\t1000\nInnodb_os_log_fsyncs\t10\n";
    let untold = status(few);
    assert_eq!(untold.durability, Durability::Sync);
    assert!(assumes(&untold, "10 flushes of 1000 commits") && assumes(&untold, "durability not known"));
    for (mode, durability) in [
        (0, Durability::Group { window_us: 1_000_000 }),
        (1, Durability::Sync),
        (2, Durability::Group { window_us: 1_000_000 }),
    ] {
        let told = status(&format!("{few}innodb_flush_log_at_trx_commit\t{mode}\n"));
        assert_eq!(told.durability, durability);
        assert!(!assumes(&told, "durability"), "{:?}", told.assumptions);
    }
    // A LOG with a few syncs: one table that must last beside another that need not.
    let some = LOG.replace("wal.synced COUNT : 0", "wal.synced COUNT : 40");
    let without = LOG.replace("rocksdb.wal.synced COUNT : 0\n", "");
    for text in [some, without] {
        let untold = observe(&text, None).unwrap();
        assert_eq!(untold.durability, Durability::Sync);
        assert!(assumes(&untold, "durability not known"), "{:?}", untold.assumptions);
    }
}

/// 16 clients share a write of the log and its sync: `db_bench --benchmarks=fillrandom --sync=1
/// --threads=16`.
#[test]
fn commits_that_share_a_sync_are_durable() {
    let with = |own: u32, synced: u32| {
        let counts = format!("rocksdb.write.self COUNT : {own}\nrocksdb.wal.synced COUNT : {synced}");
        LOG.replace("rocksdb.wal.synced COUNT : 0", &counts)
    };
    let workload = observe(&with(31_000, 30_990), None).unwrap();
    assert_eq!(workload.durability, Durability::Sync);
    assert!(assumes(&workload, "443702 writes in 31000 groups, 30990 syncs"), "{:?}", workload.assumptions);
    let some = observe(&with(31_000, 40), None).unwrap();
    assert_eq!(some.durability, Durability::Sync);
    assert!(assumes(&some, "no LOG tells which"), "{:?}", some.assumptions);
    // Without that ticker.
    let last =
        "\nCumulative writes: 443K writes, 443K keys, 31K commit groups, 14.3 writes per commit group\n";
    let lines: String = LOG
        .lines()
        .filter(|line| !line.contains("rocksdb.write.self"))
        .map(|line| format!("{line}\n"))
        .collect();
    let grouped = lines.replace("wal.synced COUNT : 0", "wal.synced COUNT : 30990") + last;
    assert_eq!(observe(&grouped, None).unwrap().durability, Durability::Sync);
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
