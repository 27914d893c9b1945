//! Trees of other kinds keep the promises that B+-trees keep: LSM-trees, Bε-trees, and B+-trees whose nodes
//! are in blocks. All but the last read nothing before they write. How LSM-trees are kept is drawn from the
//! seed, and printed with what fails. `FLASHGRAIN_SEEDS` multiplies how many runs there are.

use flashgrain::IndexKind;
use flashgrain_simtest::campaign::{
    AnyKind, CASES, Campaign, Counting, Counts, Crash, Decay, Errors, Histories, InBlocks, Lives, OfKind,
    Tokens,
};
use flashgrain_simtest::world::Habits;

/// Plays a campaign with trees of a kind until so many cases are over.
fn keeps_all_promises(kind: IndexKind, campaign: impl Campaign + 'static, cases: u64) {
    plays(&format!("{kind:?}"), &OfKind::new(kind, campaign), cases);
}

/// The same of B+-trees whose nodes are in blocks.
fn in_blocks(campaign: impl Campaign + 'static, cases: u64) {
    plays("blocks", &InBlocks::new(campaign), cases);
}

fn plays(kind: &str, campaign: &dyn Campaign, cases: u64) {
    let cases =
        cases * std::env::var("FLASHGRAIN_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut counts = Counts::default();
    let mut seed = 0;
    while counts.of(CASES) < cases {
        match campaign.play(seed, &|| true) {
            Ok(played) => counts.add_all(&played),
            Err(failure) => panic!("{kind}, {}: {failure}\n{}", campaign.name(), failure.trace),
        }
        seed += 1;
    }
    println!("{kind}, {}: {counts}; {seed} seeds", campaign.name());
}

#[test]
fn crashes_lose_nothing() {
    // A few states of many lives: each has trees of its own.
    let crash = || Crash { states_per_life: 400, ..Crash::default() };
    keeps_all_promises(IndexKind::Lsm, crash(), 9_000);
    keeps_all_promises(IndexKind::BeTree, crash(), 5_000);
}

#[test]
fn failing_requests_lose_nothing() {
    keeps_all_promises(IndexKind::Lsm, Errors { habits: None }, 600);
    keeps_all_promises(IndexKind::BeTree, Errors { habits: None }, 200);
    keeps_all_promises(IndexKind::Lsm, Errors { habits: Some(Habits::many_records()) }, 100);
    keeps_all_promises(IndexKind::BeTree, Errors { habits: Some(Habits::many_records()) }, 40);
}

#[test]
fn histories_have_snapshot_isolation() {
    keeps_all_promises(IndexKind::Lsm, Histories, 100);
    keeps_all_promises(IndexKind::BeTree, Histories, 60);
}

#[test]
fn tokens_are_neither_lost_nor_doubled_nor_leak() {
    keeps_all_promises(IndexKind::Lsm, Tokens, 150);
    keeps_all_promises(IndexKind::BeTree, Tokens, 80);
}

#[test]
fn counters_count() {
    keeps_all_promises(IndexKind::Lsm, Counting, 60);
    keeps_all_promises(IndexKind::BeTree, Counting, 30);
}

#[test]
fn crashes_in_a_row_and_damage_lose_nothing() {
    plays("any kind", &AnyKind::new(Lives::default), 500);
    plays("any kind", &AnyKind::new(Decay::default), 900);
}

#[test]
fn crashes_lose_nothing_in_blocks() {
    in_blocks(Crash { states_per_life: 400, ..Crash::default() }, 4_000);
    let habits = Some(Habits::many_records());
    in_blocks(Crash { habits, states_per_life: 100, ..Crash::default() }, 2_000);
    in_blocks(Lives::default(), 500);
}

#[test]
fn failing_requests_and_damage_lose_nothing_in_blocks() {
    in_blocks(Errors { habits: None }, 200);
    in_blocks(Errors { habits: Some(Habits::many_records()) }, 100);
    in_blocks(Decay::default(), 1_500);
}

#[test]
fn transactions_are_kept_apart_in_blocks() {
    in_blocks(Histories, 50);
    in_blocks(Tokens, 50);
    in_blocks(Counting, 50);
}
