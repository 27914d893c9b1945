//! Runs of stores on which everything is drawn. `FLASHGRAIN_SEEDS` multiplies how many there are,
//! `FLASHGRAIN_SEED` begins elsewhere.

use std::sync::atomic::AtomicBool;

use flashgrain_simtest::campaign::{Extent, Swarm, run};
use flashgrain_simtest::swarm::Feature;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn whatever_is_drawn_a_store_keeps_its_promises() {
    let swarm = Swarm::default();
    let extent =
        Extent { seed: number("FLASHGRAIN_SEED", 0), cases: 300 * number("FLASHGRAIN_SEEDS", 1), jobs: 2 };
    let report = run(&swarm, &extent, &AtomicBool::new(false), &|_| {});
    println!("swarm: {}; {} seeds from {} on", report.counts, report.seeds, extent.seed);
    if let Some(failure) = &report.failure {
        panic!("swarm: {failure}");
    }
    // Nothing is shown by stores to which nothing happened.
    for feature in
        [Feature::Batches, Feature::Merges, Feature::Ranges, Feature::Scans, Feature::HeldSnapshots]
    {
        assert!(report.counts.of(feature.name()) > 100, "{}: {}", feature.name(), report.counts);
    }
}
