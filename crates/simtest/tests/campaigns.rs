//! The campaigns, as long as every run of the tests can afford. Longer: `flashgrain-simtest`, or
//! `FLASHGRAIN_CAMPAIGNS`, which multiplies the cases; `FLASHGRAIN_SEED` begins elsewhere.

use std::sync::atomic::AtomicBool;

use flashgrain_simtest::campaign::{
    AnyKind, Campaign, Crash, Extent, Faults, Histories, Inside, Kind, Nth, Report, Rot, run,
};

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// No promise is broken in so many cases.
fn keeps_all_promises(campaign: &dyn Campaign, cases: u64) -> Report {
    let cases = cases * number("FLASHGRAIN_CAMPAIGNS", 1);
    let extent = Extent { seed: number("FLASHGRAIN_SEED", 0), cases, jobs: 2 };
    let report = run(campaign, &extent, &AtomicBool::new(false), &|_| {});
    println!("{}: {}; {} seeds from {} on", campaign.name(), report.counts, report.seeds, extent.seed);
    if let Some(failure) = &report.failure {
        panic!("{}: {failure}\n{}", campaign.name(), failure.trace);
    }
    assert!(report.counts.cases() >= cases);
    report
}

#[test]
fn crash_states_are_recovered() {
    let counts = keeps_all_promises(&Crash::default(), 300_000).counts;
    // Nothing is shown by stores to which nothing happened.
    let happened =
        ["torn logs", "times grown", "bytes moved by the cleaner", "in recoveries", "worked on", "backups"];
    for what in happened {
        assert!(counts.of(what) > 50, "{what}: {counts}");
    }
}

#[test]
fn every_kind_of_fault_has_only_allowed_ends() {
    for kind in Kind::ALL {
        let counts = keeps_all_promises(&AnyKind::new(|| Faults::new(*kind)), 640).counts;
        assert!(counts.of("struck") > 100, "{}: {counts}", kind.name());
    }
}

#[test]
fn any_request_may_fail() {
    // A part of the requests of more lives, which have trees of all kinds.
    let some = || Nth { every: 16, ..Nth::default() };
    let counts = keeps_all_promises(&AnyKind::new(some), 1_600).counts;
    assert!(counts.of("tasks that ended with an error") > 1_000, "{counts}");
}

#[test]
fn a_store_may_be_in_trouble_anywhere_inside() {
    let few = || Inside { occasions: 40, ..Inside::default() };
    let counts = keeps_all_promises(&AnyKind::new(few), 2_000).counts;
    assert!(counts.of("tasks that ended with an error") > 1_000, "{counts}");
}

#[test]
fn no_flipped_bit_is_returned_as_data() {
    // Sectors of a closed and of a crashed store.
    let counts = keeps_all_promises(&Rot::every(211), 50_000).counts;
    assert!(counts.of("found when read") > 500 && counts.of("found when opened") > 50, "{counts}");
}

#[test]
fn histories_have_snapshot_isolation() {
    let counts = keeps_all_promises(&Histories, 60).counts;
    assert!(counts.of("dependencies") > counts.of("commits"), "{counts}");
}
