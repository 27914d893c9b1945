//! Histories of the store, judged. `FLASHGRAIN_SEEDS` multiplies how many.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeSet;

use flashgrain::testing::Bug;
use flashgrain_simtest::isolation::{History, Judgement, Kind, Shape, crashing, simulated, threads};

fn seeds(count: u64) -> std::ops::Range<u64> {
    0..count * std::env::var("FLASHGRAIN_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Panics if `history` has an anomaly that the store does not allow.
fn judge(history: &History, seed: u64) -> Judgement {
    let judgement = Judgement::of(history);
    if let Some(anomaly) = judgement.violations().next() {
        panic!("seed {seed}: {anomaly}");
    }
    judgement
}

#[test]
fn tasks_in_any_order_have_snapshot_isolation_in_real_time() {
    let (mut committed, mut dependencies, mut skews) = (0, 0, 0);
    for seed in seeds(60) {
        let shape = if seed % 2 == 0 { Shape::contended(seed) } else { Shape::default() };
        let judgement = judge(&simulated(seed, shape).unwrap(), seed);
        (committed, dependencies) = (committed + judgement.committed, dependencies + judgement.dependencies);
        skews += judgement.anomalies.len();
    }
    println!("{committed} commits, {dependencies} dependencies, {skews} histories with write skew");
    // They are in each other's way: else there would be nothing to find.
    assert!(dependencies > committed && skews > 0);
}

#[test]
fn the_same_seed_gives_the_same_history_and_another_one_another() {
    let text = |seed| {
        let history = simulated(seed, Shape { sessions: 4, transactions: 10, ..Shape::default() }).unwrap();
        history.transactions.iter().map(|transaction| format!("{transaction}\n")).collect::<String>()
    };
    let texts: Vec<_> = (0..5).map(text).collect();
    assert_eq!(texts, (0..5).map(text).collect::<Vec<_>>());
    assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), 5);
}

#[test]
fn threads_have_snapshot_isolation_in_real_time() {
    for seed in seeds(4) {
        let shape = Shape { sessions: 4, transactions: 250, ..Shape::default() };
        let judgement = judge(&threads(seed, shape).unwrap(), seed);
        assert!(judgement.committed > 400);
    }
}

#[test]
fn histories_go_on_after_power_cuts_where_they_were() {
    let mut early = 0;
    for seed in seeds(25) {
        let judgement = judge(&crashing(seed, Shape::default(), 3).unwrap(), seed);
        assert!(judgement.committed > 30, "seed {seed}");
        early += judgement.read_too_early;
    }
    println!("{early} transactions have read what did not survive");
}

/// The first seed whose history of a store with a bug shows such an anomaly.
fn first(bug: Bug, kind: Kind) -> Option<u64> {
    let planted = bug.plant();
    let shows = |seed: &u64| {
        let history = simulated(*seed, Shape::contended(*seed)).unwrap();
        Judgement::of(&history).violations().any(|anomaly| anomaly.kind == kind)
    };
    let first = (0..HISTORIES_MAX).find(shows);
    println!("{}: seed {first:?}, struck {} times", bug.name(), planted.strikes());
    first
}

/// Many more than it takes.
const HISTORIES_MAX: u64 = 1000;

#[test]
fn planted_bugs_of_isolation_are_found() {
    for (bug, kind) in [
        (Bug::CommitSkipsValidation, Kind::LostUpdate),
        (Bug::ChangedLeafTrusted, Kind::LostUpdate),
        (Bug::OnlyFirstKeyLocked, Kind::LostUpdate),
        (Bug::VisibleBeforeApplied, Kind::LostUpdate),
        (Bug::ReadDoesNotWaitForVisible, Kind::Stale),
        (Bug::SnapshotReadsNewest, Kind::ReadSkew),
    ] {
        assert!(first(bug, kind).is_some(), "{} shows no {kind:?}", bug.name());
    }
}
