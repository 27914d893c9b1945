//! Workload files: what is read, and what is refused with the field and its range.

use flashgrain_advisor::workload::{self, PRESETS};

const GOOD: &str = r#"
name = "orders"
memory_bytes = "1GiB"
clients = 8
skew = 0.8
[operations]
point_hits = 0.5
inserts = 0.2
updates = 0.2
ranges = 0.1
range_bytes = "4KiB"
[records]
count = 10_000_000
key_bytes = 16
value_bytes = 200
[durability]
promise = "group"
window_us = 100_000
[lifetime]
drive_writes_per_day = 1.0
drive_bytes = "960GB"
"#;

#[test]
fn a_file_is_read_and_printed_alike() {
    let workload = workload::parse(GOOD).unwrap();
    assert_eq!((workload.memory_bytes, workload.operations.range_bytes), (1 << 30, 4096));
    assert_eq!(workload::parse(&workload::print(&workload)).unwrap(), workload);
}

#[test]
fn every_preset_is_a_workload_that_can_be_printed_and_read() {
    for (name, _) in PRESETS {
        let workload = workload::preset(name).unwrap();
        assert_eq!(workload::parse(&workload::print(&workload)).unwrap(), workload, "{name}");
    }
    let error = workload::preset("ycsb-g").unwrap_err().to_string();
    assert!(error.contains("ycsb-g") && error.contains("ycsb-f"), "{error}");
}

/// Each change of the good file makes it impossible; the message has all the texts.
const IMPOSSIBLE: &[(&str, &str, &[&str])] = &[
    ("inserts = 0.2", "inserts = 0.3", &["`operations`", "1.1", "sum is 1"]),
    ("inserts = 0.2", "inserts = 1.2", &["`operations.inserts` is 1.2", "0 to 1"]),
    ("inserts = 0.2", "inserts = -0.2", &["`operations.inserts` is -0.2", "0 to 1"]),
    ("inserts = 0.2", "inserts = nan", &["`operations.inserts`", "0 to 1"]),
    ("inserts = 0.2", "insertions = 0.2", &["unknown field `insertions`", "`inserts`"]),
    ("clients = 8", "clients = 0", &["`clients` is 0", "1 to 65536"]),
    ("clients = 8", "clients = -3", &["`clients` is -3", "1 to 65536"]),
    ("clients = 8", "client = 8", &["unknown field `client`", "`clients`"]),
    ("skew = 0.8", "skew = 9", &["`skew` is 9", "0 to 4"]),
    ("skew = 0.8", "skew = inf", &["`skew` is inf", "0 to 4"]),
    ("memory_bytes = \"1GiB\"", "memory_bytes = \"4 parsecs\"", &["memory_bytes", "unknown unit", "4KiB"]),
    ("memory_bytes = \"1GiB\"", "memory_bytes = 1000", &["`memory_bytes` is 1000", "1048576 to"]),
    ("memory_bytes = \"1GiB\"", "", &["missing field `memory_bytes`"]),
    ("value_bytes = 200", "value_bytes = \"1.5GiB\"", &["`records.value_bytes` is 1.5 GiB", "0 B to 1 GiB"]),
    (
        "value_bytes = 200",
        "value_bytes = \"1GiB\"",
        &["`records.value_bytes`", "memory_bytes without the key"],
    ),
    ("key_bytes = 16", "key_bytes = 0", &["`records.key_bytes` is 0", "1 to 65536"]),
    ("count = 10_000_000", "count = 0", &["`records.count` is 0"]),
    ("count = 10_000_000", "count = 10_000_000_000", &["`records.count`", "do not fit on the drive"]),
    ("range_bytes = \"4KiB\"", "", &["`operations.range_bytes` is 0 B", "216 B to"]),
    ("ranges = 0.1", "point_misses = 0.1", &["`operations.range_bytes` is 4 KiB", "operations.ranges is 0"]),
    ("window_us = 100_000", "", &["`durability.window_us` is missing", "group"]),
    ("window_us = 100_000", "window_us = 0", &["`durability.window_us` is 0", "1 to 60000000"]),
    (
        "promise = \"group\"",
        "promise = \"sync\"",
        &["`durability.window_us`", "durability.promise is \"group\""],
    ),
    ("promise = \"group\"", "promise = \"never\"", &["never", "`sync`", "`none`"]),
    ("drive_writes_per_day = 1.0", "drive_writes_per_day = 0", &["drive_writes_per_day", "more than 0"]),
    ("drive_bytes = \"960GB\"", "drive_bytes = 5", &["`lifetime.drive_bytes` is 5"]),
    ("[records]", "[record]", &["unknown field `record`", "`records`"]),
    ("name = \"orders\"", "name = [", &["TOML"]),
    ("name = \"orders\"", "name = \"a\\nevil = 1\"", &["`name`", "without control characters"]),
];

#[test]
fn what_cannot_be_is_refused_with_field_and_range() {
    for (good, bad, texts) in IMPOSSIBLE {
        assert!(GOOD.contains(good), "{good}");
        let error = workload::parse(&GOOD.replacen(good, bad, 1)).expect_err(bad).to_string();
        for text in *texts {
            assert!(error.contains(text), "{bad}: expected {text:?} in: {error}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,80}") {
        let _ = workload::parse(&text);
    }
}
