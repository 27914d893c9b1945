//! The RocksDB that is linked, Debian's or the one of the crate, loads the OPTIONS files that are advised for
//! its version.

use std::fs;
use std::path::Path;

use flashgrain_advisor::engine::{EngineAdvice, EngineName as AdvisedName, EngineVersion};
use flashgrain_advisor::{Advice, Workload, workload};
use flashgrain_bench::engine::{Durability, Engine, EngineName, Settings, Setup};
use flashgrain_profile::file;

use super::{ask, scratch, setup};

const PROFILE: &str = include_str!("../../../advisor/tests/fixtures/960evo.json");

fn advised(workload: &Workload) -> EngineAdvice {
    let profile = file::parse("profile.json".as_ref(), PROFILE.as_bytes()).unwrap();
    let version = EngineVersion::of(AdvisedName::Rocksdb, &EngineName::RocksDb.version().unwrap()).unwrap();
    Advice::for_versions(workload, &profile, &[version]).engines.remove(0)
}

/// A workload that has most settings, and one whose filters and indexes are partitions: memory has no room
/// for them.
fn workloads() -> [Workload; 2] {
    let mut mixed = workload::preset("ycsb-a").unwrap();
    (mixed.memory_bytes, mixed.records.count) = (256 << 20, 1_000_000);
    let mut short = workload::preset("ycsb-c").unwrap();
    (short.memory_bytes, short.records.count) = (64 << 20, 50_000_000);
    [mixed, short]
}

fn open(dir: &Path, options: &str) -> anyhow::Result<Box<dyn Engine>> {
    let settings = Settings { store: options.to_owned(), table: String::new() };
    EngineName::RocksDb.open(&Setup { settings: Some(settings), ..setup(dir, Durability::Full) })
}

/// The file in which a database keeps the options that it has.
fn stored(dir: &Path) -> String {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_stored = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        name.starts_with("OPTIONS-") && !name.ends_with(".dbtmp")
    };
    fs::read_to_string(files.filter(|path| is_stored(path)).max().unwrap()).unwrap()
}

/// Whether RocksDB writes a value in its own way: numbers as numbers, policies with a name before them.
fn is_same(stored: &str, value: &str) -> bool {
    match (stored.parse::<f64>(), value.parse::<f64>()) {
        (Ok(stored), Ok(value)) => stored == value,
        _ => stored.contains(value.trim_end_matches(":false")),
    }
}

#[test]
fn advised_options_are_loaded_and_kept() {
    for (workload, is_partitioned) in workloads().iter().zip([false, true]) {
        let advice = advised(workload);
        assert_eq!(advice.file.contains("partition_filters=true"), is_partitioned, "{}", advice.file);
        let folder = scratch();
        let engine = open(folder.path(), &advice.file).unwrap();
        let found = ask(&*engine, |session| {
            session.put(0, b"key", b"value")?;
            let mut value = Vec::new();
            session.get(0, b"key", &mut value)?;
            Ok(value)
        });
        assert_eq!(found.unwrap(), b"value");
        let stored = stored(folder.path());
        engine.close().unwrap();
        let mut seen = 0;
        for setting in &advice.settings {
            // RocksDB does not write out caches.
            let Some(value) = setting.value.as_ref().filter(|_| setting.name != "block_cache") else {
                continue;
            };
            let of_name =
                |line: &str| line.trim().strip_prefix(setting.name)?.strip_prefix('=').map(str::to_owned);
            let loaded: Vec<String> = stored.lines().filter_map(of_name).collect();
            assert!(
                !loaded.is_empty() && loaded.iter().any(|loaded| is_same(loaded, value)),
                "{}: {value}, loaded {loaded:?}",
                setting.name
            );
            seen += 1;
        }
        assert!(seen > 0, "{}", advice.file);
    }
}

#[test]
fn an_option_that_this_version_does_not_have_is_refused_by_name() {
    let file = advised(&workloads()[0]).file.replace("[DBOptions]\n", "[DBOptions]\nno_such_option=1\n");
    let error = open(scratch().path(), &file).err().unwrap();
    assert!(format!("{error:#}").contains("no_such_option"), "{error:#}");
}
