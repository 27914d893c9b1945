//! Every file is loaded by its engine, which must know each setting and take its value. An engine that is not
//! installed is named and skipped: `scripts/install-peers.sh --engines` installs all.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use flashgrain_advisor::engine::{EngineAdvice, EngineName};
use flashgrain_advisor::workload::{Durability, PRESETS};
use flashgrain_advisor::{Advice, Workload, workload};
use flashgrain_profile::file;

const PROFILE: &str = include_str!("fixtures/960evo.json");

/// Workloads whose settings differ: those of YCSB, with memory that a test can allocate, and all durabilities.
fn workloads() -> Vec<Workload> {
    let preset = |name: &str, durability| Workload {
        memory_bytes: 256 << 20,
        durability,
        records: flashgrain_advisor::workload::Records {
            count: 1_000_000,
            ..workload::preset(name).unwrap().records
        },
        ..workload::preset(name).unwrap()
    };
    let lazy = [Durability::None, Durability::Group { window_us: 2_000_000 }];
    let ycsb = PRESETS.into_iter().filter(|(name, _)| name.starts_with("ycsb"));
    let all = ycsb.map(|(name, _)| preset(name, Durability::Sync));
    let mut short = Workload { memory_bytes: 64 << 20, ..preset("ycsb-c", Durability::Sync) };
    short.records.count *= 50;
    all.chain(lazy.map(|durability| preset("ycsb-a", durability))).chain([short]).collect()
}

fn advised(engine: EngineName, workload: &Workload) -> EngineAdvice {
    let profile = file::parse("profile.json".as_ref(), PROFILE.as_bytes()).unwrap();
    Advice::new(workload, &profile, &[engine]).engines.remove(0)
}

/// The program's output; `None`, and a word about it, where it is not installed.
fn run(program: &str, arguments: &[&str], input: &str) -> Option<Output> {
    use std::io::Write;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: {program} is not installed; scripts/install-peers.sh --engines installs it");
            return None;
        }
        Err(error) => panic!("{program}: {error}"),
    };
    // A program that does not read is not the matter here.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Some(child.wait_with_output().unwrap())
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Opens a database with the options, writes and reads a little; the options that RocksDB then has.
fn with_rocksdb(options: &str, folder: &Path) -> Option<(Output, String)> {
    let (file, database) = (folder.join("OPTIONS"), folder.join("db"));
    fs::write(&file, options).unwrap();
    let arguments = [
        "--benchmarks=fillrandom,readrandom".to_owned(),
        "--num=2000".to_owned(),
        format!("--options_file={}", file.display()),
        format!("--db={}", database.display()),
    ];
    let output = run("db_bench", &arguments.each_ref().map(String::as_str), "")?;
    let stored = fs::read_dir(&database).into_iter().flatten().filter_map(|entry| {
        let path = entry.unwrap().path();
        path.file_name()?.to_str()?.starts_with("OPTIONS").then(|| fs::read_to_string(&path).unwrap())
    });
    Some((output, stored.last().unwrap_or_default()))
}

#[test]
fn rocksdb_loads_its_options() {
    let mut partitioned = 0;
    for workload in workloads() {
        let advice = advised(EngineName::Rocksdb, &workload);
        partitioned += usize::from(advice.value("partition_filters") == Some("true"));
        let folder = tempfile::tempdir().unwrap();
        let Some((output, stored)) = with_rocksdb(&advice.file, folder.path()) else { return };
        assert!(output.status.success(), "{}\n{}", text(&output), advice.file);
        let lines: Vec<&str> = stored.lines().map(str::trim).collect();
        for setting in &advice.settings {
            // db_bench has a cache of its own, and RocksDB does not write out caches.
            let Some(value) = setting.value.as_ref().filter(|_| setting.name != "block_cache") else {
                continue;
            };
            let of_name = lines.iter().find(|line| line.starts_with(&format!("{}=", setting.name)));
            let loaded = of_name.and_then(|line| line.split_once('=')).map(|(_, value)| value);
            let is_same = loaded.is_some_and(|loaded| match (loaded.parse::<f64>(), value.parse::<f64>()) {
                (Ok(loaded), Ok(value)) => loaded == value,
                _ => loaded == value || loaded.starts_with(value.as_str()),
            });
            assert!(is_same, "{}: {value}, loaded {loaded:?}", setting.name);
        }
    }
    assert!(partitioned > 0, "filters and indexes in the cache were tried, too");
}

#[test]
fn rocksdb_refuses_what_it_does_not_know() {
    let advice = advised(EngineName::Rocksdb, &workloads()[0]);
    let folder = tempfile::tempdir().unwrap();
    let odd = advice.file.replace("[DBOptions]\n", "[DBOptions]\nno_such_option=1\n");
    let Some((output, _)) = with_rocksdb(&odd, folder.path()) else { return };
    assert!(!output.status.success() && text(&output).contains("no_such_option"), "{}", text(&output));
}

#[test]
fn sqlite_takes_its_pragmas() {
    for workload in workloads() {
        let advice = advised(EngineName::Sqlite, &workload);
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("test.db");
        // SQLite passes over PRAGMAs that it does not know, so that each is read back after the first write.
        let mut script = advice.file.clone() + "CREATE TABLE t(k PRIMARY KEY, v) WITHOUT ROWID;\n";
        let set: Vec<_> = advice.settings.iter().filter(|setting| setting.value.is_some()).collect();
        for setting in &set {
            script += &format!("SELECT '{}=' || {0} FROM pragma_{0};\n", setting.name);
        }
        // These have no table of their own.
        let script = script.replace(
            "SELECT 'wal_autocheckpoint=' || wal_autocheckpoint FROM pragma_wal_autocheckpoint",
            "PRAGMA wal_autocheckpoint",
        );
        let Some(output) = run("sqlite3", &["-bail", database.to_str().unwrap()], &script) else { return };
        let said = text(&output);
        assert!(output.status.success(), "{said}\n{script}");
        for setting in set {
            let value = match (setting.name, setting.value.as_deref().unwrap()) {
                ("synchronous", "FULL") => "2".to_owned(),
                ("synchronous", "NORMAL") => "1".to_owned(),
                ("journal_mode", mode) => mode.to_lowercase(),
                (_, value) => value.to_owned(),
            };
            let expected = match setting.name {
                "wal_autocheckpoint" => value,
                name => format!("{name}={value}"),
            };
            assert!(said.lines().any(|line| line == expected), "{expected} in:\n{said}");
        }
    }
}

/// Makes a data directory with the file and has the server run a statement on it.
fn with_mariadb(file: &str, folder: &Path) -> Option<Output> {
    let (config, data) = (folder.join("my.cnf"), folder.join("data"));
    fs::write(&config, file).unwrap();
    fs::create_dir(&data).unwrap();
    let config = format!("--defaults-file={}", config.display());
    let data = format!("--datadir={}", data.display());
    let statements = "CREATE DATABASE t;\nCREATE TABLE t.t (k INT PRIMARY KEY, v INT) ENGINE=InnoDB;\nINSERT INTO t.t VALUES (1, 2);\n";
    run("mariadbd", &[&config, &data, "--user=root", "--bootstrap"], statements)
}

#[test]
fn mariadb_starts_with_its_settings() {
    for workload in workloads() {
        let advice = advised(EngineName::Mariadb, &workload);
        let folder = tempfile::tempdir().unwrap();
        let Some(output) = with_mariadb(&advice.file, folder.path()) else { return };
        let said = text(&output);
        assert!(output.status.success(), "{said}\n{}", advice.file);
        let warned = |line: &&str| line.contains("[Warning]") && line.to_lowercase().contains("innodb");
        assert_eq!(said.lines().find(warned), None);
        // The server's own words about each setting.
        let config = format!("--defaults-file={}", folder.path().join("my.cnf").display());
        let shown = run("mariadbd", &[&config, "--user=root", "--verbose", "--help"], "").unwrap();
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        for setting in &advice.settings {
            let Some(value) = &setting.value else { continue };
            let name = setting.name.replace('_', "-");
            let line = shown.lines().find(|line| line.split_whitespace().next() == Some(&name)).unwrap();
            let loaded: u64 = line.split_whitespace().last().unwrap().parse().unwrap();
            let unit = |text: &str| match text.strip_suffix(['M', 'k']) {
                Some(number) if text.ends_with('M') => number.parse::<u64>().unwrap() << 20,
                Some(number) => number.parse::<u64>().unwrap() << 10,
                None => text.parse().unwrap(),
            };
            assert_eq!(loaded, unit(value), "{name}");
        }
    }
}

#[test]
fn mariadb_refuses_what_it_does_not_know() {
    let file = advised(EngineName::Mariadb, &workloads()[0]).file + "innodb_no_such_setting = 1\n";
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = with_mariadb(&file, folder.path()) else { return };
    assert!(
        !output.status.success() && text(&output).contains("innodb_no_such_setting"),
        "{}",
        text(&output)
    );
}

/// Opens a database with the configuration and makes a table, whose metadata then is returned.
fn with_wiredtiger(file: &str, folder: &Path) -> Option<(Output, String)> {
    let home = folder.join("home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("WiredTiger.config"), file).unwrap();
    let table = file.lines().find_map(|line| line.strip_prefix("# WT_SESSION::create: ")).unwrap_or_default();
    let home = home.to_str().unwrap();
    let output = run("wt", &["-h", home, "create", "-c", table, "table:t"], "")?;
    let listed = run("wt", &["-h", home, "list", "-v"], "")?;
    Some((output, text(&listed)))
}

#[test]
fn wiredtiger_opens_with_its_configuration() {
    for workload in workloads() {
        let advice = advised(EngineName::Wiredtiger, &workload);
        let folder = tempfile::tempdir().unwrap();
        let Some((output, listed)) = with_wiredtiger(&advice.file, folder.path()) else { return };
        assert!(output.status.success(), "{}\n{}", text(&output), advice.file);
        // The home's own file of settings was read: with a log there are files of it.
        let value = |name| advice.settings.iter().find(|setting| setting.name == name).unwrap().value.clone();
        let mut files = fs::read_dir(folder.path().join("home")).unwrap();
        let is_log = |name: &str| name.starts_with("WiredTigerLog.");
        let has_log = files.any(|file| file.unwrap().file_name().to_str().is_some_and(is_log));
        assert_eq!(has_log, value("log").is_some(), "{}", advice.file);
        if let Some(leaf) = value("leaf_page_max") {
            assert!(listed.contains(&format!("leaf_page_max={leaf}")), "{leaf}: {listed}");
        }
    }
}

#[test]
fn wiredtiger_refuses_what_it_does_not_know() {
    let file = advised(EngineName::Wiredtiger, &workloads()[0]).file;
    let folder = tempfile::tempdir().unwrap();
    let Some((output, _)) = with_wiredtiger(&(file + "no_such_setting=1\n"), folder.path()) else { return };
    assert!(!output.status.success() && text(&output).contains("no_such_setting"), "{}", text(&output));
}

/// Fence pointers of 3.2 GB, of blocks of 4 KiB each, and filters.
#[test]
fn rocksdb_reads_metadata_that_memory_has_no_room_for() {
    let with = |mebibytes: u64| {
        let mut workload = Workload { clients: 1, skew: 0.0, ..workload::preset("ycsb-c").unwrap() };
        (workload.memory_bytes, workload.records.value_bytes) = (mebibytes << 20, 4096);
        let advice = advised(EngineName::Rocksdb, &workload);
        let is_cached = advice.file.contains("cache_index_and_filter_blocks=true");
        (is_cached, advice.default_rate_per_second.value, advice.advised_rate_per_second.value)
    };
    let [(no_room, default, few), (room, _, many)] = [256, 8192].map(with);
    assert!(no_room && !room);
    assert!(few < 0.7 * many && default < 0.7 * many, "{default} {few} {many}");
}
