use toml::{Table, Value};

use super::*;

/// A drive of each medium, valid as it stands.
const NAND: &str = include_str!("nand.toml");
const XPOINT: &str = include_str!("3d-xpoint.toml");
const DISK: &str = include_str!("disk.toml");

/// The drive with one field replaced.
fn with(drive: &str, field: &str, value: &str) -> Result<SimConfig, Error> {
    let mut table: Table = drive.parse().unwrap();
    let value: Table = format!("value = {value}").parse().unwrap();
    let (path, last) = field.rsplit_once('.').unwrap_or(("", field));
    let mut at = &mut table;
    for key in path.split('.').filter(|key| !key.is_empty()) {
        at = at.entry(key).or_insert(Value::Table(Table::new())).as_table_mut().unwrap();
    }
    at.insert(last.to_owned(), value["value"].clone());
    SimConfig::from_toml(&table.to_string(), "test")
}

/// Field, a value that is refused, a part of the allowed range in the error.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    (NAND, "name", "' '", "any text"),
    (NAND, "capacity_bytes", "0", "1048576 to"),
    (NAND, "capacity_bytes", "1073742336", "multiple of medium.nand.mapping.unit_bytes (4096)"),
    (NAND, "capacity_bytes", "1073741825", "multiple of sector_bytes (512)"),
    (NAND, "sector_bytes", "100", "a power of two from 512 to 4096"),
    (NAND, "sector_bytes", "8192", "a power of two from 512 to 4096"),
    (NAND, "drives", "0", "1 to 1024"),
    (NAND, "stripe_unit_bytes", "0", "512 to"),
    (NAND, "stripe_unit_bytes", "1000", "multiple of sector_bytes"),
    (NAND, "stripe_unit_bytes", "4294967296", "to 1073741824"),
    (NAND, "host.queue_depth", "0", "1 to"),
    (NAND, "host.command_ns", "99999999999", "0 to 10000000000"),
    (NAND, "host.write_command_ns", "99999999999", "0 to 10000000000"),
    (NAND, "host.partial_command_ns", "99999999999", "0 to 10000000000"),
    (NAND, "host.fetch_ns", "99999999999", "0 to 10000000000"),
    (NAND, "host.completion_ns", "99999999999", "0 to 10000000000"),
    (NAND, "host.link_bytes_per_s", "0", "100000 to"),
    (NAND, "host.cap.requests_per_s", "0", "1 to 100000000"),
    (NAND, "host.cap.bytes_per_s", "1000", "100000 to"),
    (NAND, "host.cap", "{}", "one with requests_per_s, bytes_per_s or both"),
    (NAND, "medium.nand.channels", "0", "1 to 1024"),
    (NAND, "medium.nand.chips_per_channel", "0", "1 to 1024"),
    (NAND, "medium.nand.dies_per_chip", "0", "1 to 1024"),
    (NAND, "medium.nand.planes_per_die", "0", "1 to 64"),
    (NAND, "medium.nand.pages_per_block", "0", "1 to 65536"),
    (NAND, "medium.nand.page_bytes", "12288", "a power of two from 512"),
    (NAND, "medium.nand.page_bytes", "256", "a power of two from 512"),
    (NAND, "medium.nand.over_provisioning", "0.0", "at least 0."),
    (NAND, "medium.nand.over_provisioning", "-0.1", "0 to 10"),
    (NAND, "medium.nand.over_provisioning", "nan", "0 to 10"),
    (NAND, "medium.nand.read_us", "[]", "1 (SLC) to 4 (QLC)"),
    (NAND, "medium.nand.read_us", "[50.0, 50.0, 50.0, 50.0, 50.0]", "1 (SLC) to 4 (QLC)"),
    (NAND, "medium.nand.read_us", "[50.0, nan, 60.0]", "0.001 to"),
    (NAND, "medium.nand.program_us", "[500.0]", "as many entries as read_us has, 3"),
    (NAND, "medium.nand.program_us", "[500.0, 0.0, 500.0]", "0.001 to"),
    (NAND, "medium.nand.erase_us", "inf", "0.001 to"),
    (NAND, "medium.nand.jitter", "1.5", "0 to 1"),
    (NAND, "medium.nand.channel_mega_transfers_per_s", "0.0", "1 to"),
    (NAND, "medium.nand.channel_command_ns", "99999999999", "0 to 10000000000"),
    (NAND, "medium.nand.suspend_us", "-1.0", "0 to"),
    (NAND, "medium.nand.misaligned_read_us", "nan", "0 to"),
    (NAND, "medium.nand.mapping.unit_bytes", "32768", "a power of two from 512 to 16384"),
    (NAND, "medium.nand.mapping.unit_bytes", "5000", "a power of two"),
    (NAND, "medium.nand.mapping.entry_bytes", "0", "1 to 64"),
    (NAND, "medium.nand.mapping.lookup_ns", "99999999999", "0 to 10000000000"),
    (NAND, "medium.nand.write_cache.bytes", "2147483648", "0 to 1073741824"),
    (NAND, "medium.nand.write_cache.bytes", "4096", "0, or at least 32768"),
    (NAND, "medium.nand.layout.stripe_bytes", "0", "4096 to"),
    (NAND, "medium.nand.layout.stripe_bytes", "66000", "multiple of medium.nand.mapping.unit_bytes"),
    (NAND, "medium.nand.layout.chunk_bytes", "131072", "4096 to 65536"),
    (NAND, "medium.nand.layout.chunk_bytes", "5000", "multiple of medium.nand.mapping.unit_bytes"),
    (NAND, "medium.nand.layout.desirable_write_bytes", "131072", "512 to 65536"),
    (
        NAND,
        "medium.nand.layout.desirable_write_bytes",
        "16384",
        "stripe_bytes (65536), or less than chunk_bytes (16384)",
    ),
    (NAND, "medium.nand.layout.small_write_dies", "0", "1 to 16"),
    (NAND, "medium.nand.layout.small_write_dies", "17", "1 to 16"),
    (NAND, "medium.nand.collect.start_below_free_blocks", "1", "2 to"),
    (NAND, "medium.nand.collect.stop_writes_below_free_blocks", "0", "1 to"),
    (NAND, "state.steady-random.working_set", "0.0", "more than 0, up to 1"),
    (NAND, "state.steady-random.working_set", "1.5", "more than 0, up to 1"),
    (XPOINT, "capacity_bytes", "1073742336", "multiple of medium.3d-xpoint.chunk_bytes (4096)"),
    (XPOINT, "medium.3d-xpoint.channels", "0", "1 to 1024"),
    (XPOINT, "medium.3d-xpoint.banks_per_channel", "0", "1 to 1024"),
    (XPOINT, "medium.3d-xpoint.chunk_bytes", "3000", "a power of two"),
    (XPOINT, "medium.3d-xpoint.read_us", "0.0", "0.001 to"),
    (XPOINT, "medium.3d-xpoint.write_us", "nan", "0.001 to"),
    (XPOINT, "medium.3d-xpoint.jitter", "-0.1", "0 to 1"),
    (XPOINT, "medium.3d-xpoint.channel_bytes_per_s", "0", "100000 to"),
    (XPOINT, "medium.3d-xpoint.misaligned_read_us", "-1.0", "0 to"),
    (DISK, "medium.disk.rotations_per_minute", "0.0", "100 to"),
    (DISK, "medium.disk.cylinders", "1", "2 to"),
    (DISK, "medium.disk.track_seek_ms", "0.0", "0.001 to"),
    (DISK, "medium.disk.average_seek_ms", "0.5", "0.8 to"),
    (DISK, "medium.disk.full_seek_ms", "1.0", "8.5 to"),
    (DISK, "medium.disk.outer_bytes_per_s", "0", "100000 to"),
    (DISK, "medium.disk.inner_bytes_per_s", "200000000", "100000 to 150000000"),
    (DISK, "medium.disk.zones", "0", "1 to"),
    (DISK, "medium.disk.reorder_depth", "0", "1 to"),
    (DISK, "medium.disk.read_ahead_bytes", "2147483648", "0 to 1073741824"),
    (DISK, "medium.disk.write_cache_bytes", "2147483648", "0 to 1073741824"),
];

#[test]
fn the_drives_that_the_rows_change_are_sound() {
    for drive in [NAND, XPOINT, DISK] {
        SimConfig::from_toml(drive, "test").unwrap();
    }
}

#[test]
fn what_makes_no_drive_names_the_field_its_value_and_what_is_allowed() {
    for (drive, field, value, part) in REFUSED {
        match with(drive, field, value) {
            Err(Error::Config { field: named, allowed, .. }) => {
                assert_eq!(&named, field, "{field} = {value}");
                assert!(allowed.contains(part), "{field} = {value}: {allowed:?} lacks {part:?}");
            }
            other => panic!("{field} = {value}: {other:?}"),
        }
    }
}

#[test]
fn the_mapping_cache_fits_the_drive() {
    for (cache, field) in [
        ("{ entries-bytes = 2147483648 }", "medium.nand.mapping.cache.entries-bytes"),
        ("{ entries-bytes = 4 }", "medium.nand.mapping.cache.entries-bytes"),
        ("{ pages-bytes = 2147483648 }", "medium.nand.mapping.cache.pages-bytes"),
        ("{ pages-bytes = 4096 }", "medium.nand.mapping.cache.pages-bytes"),
    ] {
        let refused = with(NAND, "medium.nand.mapping.cache", cache).unwrap_err().to_string();
        assert!(refused.starts_with(field), "{refused}");
    }
}

#[test]
fn credits_belong_to_a_rate() {
    for (cap, problem) in [
        (
            "{ bytes_per_s = 125000000, burst_requests = 5 }",
            "burst_requests is 5: allowed is 0, as no requests_per_s is given",
        ),
        (
            "{ requests_per_s = 3000, burst_bytes = 5 }",
            "burst_bytes is 5: allowed is 0, as no bytes_per_s is given",
        ),
        ("{ requests_per_s = 1, burst_requests = 2251799813685248 }", "allowed is 0 to 1125899906842624"),
        ("{ bytes_per_s = 100000, burst_bytes = 2251799813685248 }", "allowed is 0 to 1125899906842624"),
    ] {
        let refused = with(NAND, "host.cap", cap).unwrap_err().to_string();
        assert!(refused.contains("host.cap.burst_") && refused.contains(problem), "{refused}");
    }
    with(NAND, "host.cap", "{ requests_per_s = 3000, burst_requests = 5400000, bytes_per_s = 125000000 }")
        .unwrap();
}

#[test]
fn every_field_of_a_number_has_a_row() {
    for (drive, text) in [("nand", NAND), ("3d-xpoint", XPOINT), ("disk", DISK)] {
        let config = SimConfig::from_toml(text, "test").unwrap();
        let table: Table = config.to_toml().unwrap().parse().unwrap();
        let mut fields = Vec::new();
        numbers(&table, "", &mut fields);
        assert!(fields.len() > 10, "{drive}: {fields:?}");
        for field in fields {
            // Nothing is wrong with any gap between erase counts.
            let free = ["medium.nand.collect.wear_gap"].contains(&field.as_str());
            assert!(free || REFUSED.iter().any(|row| row.1 == field), "no row for {field}");
        }
    }
}

fn numbers(table: &Table, path: &str, fields: &mut Vec<String>) {
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Value::Integer(_) | Value::Float(_) => fields.push(path),
            Value::Array(array) if array.iter().any(Value::is_float) => fields.push(path),
            Value::Table(table) => numbers(table, &path, fields),
            _ => {}
        }
    }
}

#[test]
fn an_unknown_field_is_named_with_those_that_are_known() {
    for (field, known) in [
        ("medium.nand.chanels", "channels"),
        ("host.depth", "queue_depth"),
        ("capacity", "capacity_bytes"),
        ("medium.nand.layout.stripe", "stripe_bytes"),
    ] {
        let refused = with(NAND, field, "1").unwrap_err().to_string();
        let name = field.rsplit('.').next().unwrap();
        assert!(refused.contains(&format!("unknown field `{name}`")), "{refused}");
        assert!(refused.contains(&format!("`{known}`")), "{refused}");
    }
}

#[test]
fn a_missing_field_is_named() {
    let without: String =
        NAND.lines().filter(|line| !line.starts_with("erase_us")).collect::<Vec<_>>().join("\n");
    let refused = SimConfig::from_toml(&without, "drive.toml").unwrap_err().to_string();
    assert!(refused.contains("missing field `erase_us`") && refused.contains("drive.toml"), "{refused}");
}

#[test]
fn what_is_written_reads_back() {
    for drive in [NAND, XPOINT, DISK] {
        let config = SimConfig::from_toml(drive, "test").unwrap();
        let text = config.to_toml().unwrap();
        assert_eq!(SimConfig::from_toml(&text, "test").unwrap(), config, "{text}");
    }
    let mut config = SimConfig::from_toml(NAND, "test").unwrap();
    for state in [StartState::Fresh, StartState::SteadyRandom { working_set: 0.85 }] {
        config.state = state;
        assert_eq!(SimConfig::from_toml(&config.to_toml().unwrap(), "test").unwrap(), config);
    }
}
