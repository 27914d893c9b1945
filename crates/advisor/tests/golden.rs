//! The files that are written for each engine, word for word. After a change that is meant,
//! `FLASHGRAIN_GOLDEN=write cargo test -p flashgrain_advisor --test golden` writes them anew; look at the
//! difference.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::{env, fs};

use flashgrain_advisor::engine::{EngineName, EngineVersion};
use flashgrain_advisor::workload::Durability;
use flashgrain_advisor::{Advice, Workload, workload};
use flashgrain_profile::file;

const PROFILE: &str = include_str!("fixtures/960evo.json");

fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("FLASHGRAIN_GOLDEN").is_some_and(|value| value == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    for (line, (golden, now)) in golden.lines().zip(text.lines()).enumerate() {
        assert_eq!(golden, now, "{name}, line {}", line + 1);
    }
    assert_eq!(golden.lines().count(), text.lines().count(), "{name}");
}

#[test]
fn files_are_as_they_were() {
    let profile = file::parse("profile.json".as_ref(), PROFILE.as_bytes()).unwrap();
    for preset in ["ycsb-a", "ycsb-e"] {
        let advice = Advice::new(&workload::preset(preset).unwrap(), &profile, &EngineName::ALL);
        for engine in &advice.engines {
            let name = engine.engine.describe().to_lowercase();
            check(&format!("{preset}-{name}.txt"), &engine.file);
        }
        check(&format!("{preset}-workload.toml"), &workload::print(&advice.workload));
    }
    let newer = EngineVersion::of(EngineName::Rocksdb, "11").unwrap();
    let advice = Advice::for_versions(&workload::preset("ycsb-a").unwrap(), &profile, &[newer]);
    check("ycsb-a-rocksdb-11.txt", &advice.engines[0].file);
    // Small records that are updated without waiting: an LSM-tree.
    let mut updates =
        Workload { durability: Durability::None, skew: 0.0, ..workload::preset("ycsb-a").unwrap() };
    (updates.operations.point_hits, updates.operations.updates) = (0.0, 1.0);
    updates.records.value_bytes = 100;
    let advice = Advice::new(&updates, &profile, &[EngineName::Flashgrain]);
    check("small-updates-flashgrain.txt", &advice.engines[0].file);
}
