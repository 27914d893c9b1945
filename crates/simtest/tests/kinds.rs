//! Trees that only add versions, and read nothing before they write, keep the promises that B+-trees keep.
//! `FLASHGRAIN_SEEDS` multiplies how many runs there are.

use flashgrain_simtest::campaign::{
    AppendOnly, CASES, Campaign, Counting, Counts, Crash, Errors, Histories, Tokens,
};

/// Plays a campaign until so many cases are over.
fn keeps_all_promises(campaign: AppendOnly, cases: u64) -> Counts {
    let cases =
        cases * std::env::var("FLASHGRAIN_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut counts = Counts::default();
    let mut seed = 0;
    while counts.of(CASES) < cases {
        match campaign.play(seed, &|| true) {
            Ok(played) => counts.add_all(&played),
            Err(failure) => panic!("{}: {failure}\n{}", campaign.name(), failure.trace),
        }
        seed += 1;
    }
    println!("{}: {counts}; {seed} seeds", campaign.name());
    counts
}

#[test]
fn crashes_lose_nothing() {
    keeps_all_promises(AppendOnly(Box::new(Crash::default())), 10_000);
}

#[test]
fn failing_requests_lose_nothing() {
    keeps_all_promises(AppendOnly(Box::new(Errors { habits: None })), 300);
}

#[test]
fn histories_have_snapshot_isolation() {
    keeps_all_promises(AppendOnly(Box::new(Histories)), 30);
}

#[test]
fn tokens_are_neither_lost_nor_doubled_nor_leak() {
    keeps_all_promises(AppendOnly(Box::new(Tokens)), 15);
}

#[test]
fn counters_count() {
    keeps_all_promises(AppendOnly(Box::new(Counting)), 15);
}
