//! Rankings at the ends of what a workload may be.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use flashgrain_advisor::engine::EngineName;
use flashgrain_advisor::rank::{Family, Row};
use flashgrain_advisor::{Advice, Workload, workload};
use flashgrain_profile::file;

fn advice(workload: &Workload) -> Advice {
    let profile = include_str!("fixtures/960evo.json");
    let profile = file::parse("profile.json".as_ref(), profile.as_bytes()).unwrap();
    Advice::new(&workload::checked(workload.clone()).unwrap(), &profile, &[])
}

fn row(advice: &Advice, family: Family) -> &Row {
    advice.ranking.rows.iter().find(|row| row.family == family).unwrap()
}

/// Look-ups of records of 100 bytes, uniformly.
fn look_ups() -> Workload {
    let mut workload = Workload { skew: 0.0, ..workload::preset("ycsb-c").unwrap() };
    workload.records.value_bytes = 100;
    workload
}

#[test]
fn no_family_is_left_out_for_little_memory_or_much_data() {
    let small = Workload { memory_bytes: 4 << 20, ..look_ups() };
    let mut large = Workload { memory_bytes: 4 << 30, ..look_ups() };
    large.records.count = 1_000_000_000_000;
    for workload in [small, large] {
        let mut workload = workload;
        (workload.operations.point_hits, workload.operations.updates) = (0.5, 0.5);
        let left_out = advice(&workload).ranking.left_out;
        assert!(!left_out.iter().any(|family| family.describe().starts_with("LSM")), "{left_out:?}");
    }
}

#[test]
fn buffers_do_not_speed_up_look_ups_alone() {
    for memory_bytes in [64 << 20, 1 << 30, 8 << 30] {
        let advice = advice(&Workload { memory_bytes, ..look_ups() });
        let first = advice.ranking.rows[0].family;
        assert!(![Family::BEpsilonNaive, Family::BEpsilonOptimised].contains(&first), "{memory_bytes}");
        let blocks = &row(&advice, Family::PdamBTree).design;
        assert!(
            blocks.contains("of 16.0 ×") || blocks.contains("of 8.0 ×"),
            "the store makes no more: {blocks}"
        );
    }
}

#[test]
fn full_scans_are_read_ahead_in_every_design() {
    let mut workload = Workload { clients: 1, ..look_ups() };
    (workload.operations.point_hits, workload.operations.ranges) = (0.0, 1.0);
    workload.operations.range_bytes = 1 << 30;
    let advice = advice(&workload);
    let best = advice.ranking.rows[0].rate_per_second.value;
    for row in &advice.ranking.rows {
        assert!(row.rate_per_second.value > 0.2 * best, "{row:?}");
    }
}

#[test]
fn few_records_take_little_space() {
    let mut workload = workload::preset("ycsb-a").unwrap();
    workload.records.count = 4000;
    for row in advice(&workload).ranking.rows {
        assert!(row.space_amplification < 5.0, "{row:?}");
    }
}

#[test]
fn a_tree_that_only_grows_keeps_no_older_versions() {
    let mut workload = workload::preset("ycsb-a").unwrap();
    let operations = &mut workload.operations;
    (operations.updates, operations.inserts) = (0.0, operations.updates);
    let space = |workload: &Workload| row(&advice(workload), Family::LsmTiered).space_amplification;
    assert!(space(&workload) < 1.1, "{}", space(&workload));
    (workload.operations.updates, workload.operations.inserts) = (workload.operations.inserts, 0.0);
    assert!(space(&workload) > 1.3, "{}", space(&workload));
}

#[test]
fn rates_without_a_number_of_cores_say_so() {
    let mut workload = Workload { clients: 10_000, memory_bytes: 1 << 40, ..look_ups() };
    let says = |advice: &Advice| advice.notes.iter().any(|note| note.starts_with("cores is not given"));
    assert!(says(&advice(&workload)), "nothing but processors limits what is in memory");
    workload.cores = Some(16);
    assert!(!says(&advice(&workload)));
}

#[test]
fn there_are_no_more_records_than_keys_and_nothing_is_not_negative() {
    let mut workload = look_ups();
    (workload.records.key_bytes, workload.records.count) = (1, 1_000_000_000);
    assert!(workload::checked(workload.clone()).unwrap_err().to_string().contains("records.count"));
    workload.records.count = 256;
    workload::checked(workload.clone()).unwrap();
    let mut workload = look_ups();
    (workload.skew, workload.operations.ranges) = (-0.0, -0.0);
    let json = serde_json::to_string(&advice(&workload)).unwrap();
    assert!(!json.contains("-0.0") && !json.contains("-0,"), "{json}");
}

/// The ranking and the settings of this project's store have one rule for metadata that memory has no room for.
#[test]
fn lsm_trees_of_the_ranking_are_no_slower_than_those_of_the_store() {
    for mebibytes in [128, 1024, 1536] {
        let mut workload = Workload { clients: 1, memory_bytes: mebibytes << 20, ..look_ups() };
        (workload.operations.point_hits, workload.operations.updates) = (0.7, 0.3);
        workload.records.value_bytes = 4096;
        workload.durability = workload::Durability::None;
        let profile = include_str!("fixtures/960evo.json");
        let profile = file::parse("profile.json".as_ref(), profile.as_bytes()).unwrap();
        let engines = [EngineName::Flashgrain];
        let advice = Advice::new(&workload::checked(workload).unwrap(), &profile, &engines);
        let is_lsm = |row: &&Row| row.family.describe().starts_with("LSM");
        let rates = advice.ranking.rows.iter().filter(is_lsm).map(|row| row.rate_per_second.value);
        let ranked = rates.fold(0.0, f64::max);
        let own = advice.engines[0].trees.iter().find(|tree| tree.name.starts_with("an LSM-tree")).unwrap();
        println!("{mebibytes} MiB: {ranked} and {own:?}");
        assert!(ranked > 0.8 * own.rate_per_second.value, "{mebibytes} MiB: {ranked} and {own:?}");
    }
}

/// Values of any length may be outside of the basement nodes.
#[test]
fn longer_values_make_no_b_epsilon_tree_faster() {
    let rates = [4000, 8000, 12_000].map(|value_bytes| {
        let mut workload = workload::preset("ycsb-b").unwrap();
        (workload.records.count, workload.records.value_bytes) = (10_000_000, value_bytes);
        let profile = include_str!("fixtures/960evo.json");
        let profile = file::parse("profile.json".as_ref(), profile.as_bytes()).unwrap();
        let engines = [EngineName::Flashgrain];
        let advice = Advice::new(&workload::checked(workload).unwrap(), &profile, &engines);
        let trees = &advice.engines[0].trees;
        trees.iter().find(|tree| tree.name.starts_with("a Bε-tree")).unwrap().rate_per_second.value
    });
    assert!(rates.is_sorted_by(|shorter, longer| *longer < 1.03 * *shorter), "{rates:?}");
}

/// How full the levels of an LSM-tree are just now is no reason for or against memory.
#[test]
fn more_memory_makes_no_tree_of_the_store_slower() {
    const DRIVES: [&str; 2] =
        [include_str!("fixtures/960evo.json"), include_str!("../../profile/tests/fixtures/profile-v1.json")];
    for (preset, profile) in [("ycsb-a", DRIVES[0]), ("ycsb-a", DRIVES[1]), ("uniform-updates", DRIVES[0])] {
        let profile = file::parse("profile.json".as_ref(), profile.as_bytes()).unwrap();
        let rate = |memory_bytes| {
            let durability = workload::Durability::None;
            let workload = Workload { memory_bytes, durability, ..workload::preset(preset).unwrap() };
            let advice = Advice::new(&workload, &profile, &[EngineName::Flashgrain]);
            let own =
                advice.engines[0].trees.iter().find(|tree| tree.name.starts_with("an LSM-tree")).unwrap();
            own.rate_per_second.value
        };
        let memories = (0..13).map(|step| ((64 << 20) as f64 * 2f64.powf(f64::from(step) / 2.0)) as u64);
        let rates: Vec<f64> = memories.map(rate).collect();
        println!("{preset}: {rates:?}");
        assert!(rates.is_sorted(), "{preset}: {rates:?}");
    }
}
