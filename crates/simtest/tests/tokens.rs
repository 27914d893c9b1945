//! Tokens that are moved: none is lost, doubled or seen on its way, and nothing leaks. `FLASHGRAIN_SEEDS`
//! multiplies how many runs there are.

use flashgrain_simtest::campaign::{Campaign, Tokens};
use flashgrain_simtest::tokens::threads;

fn seeds(count: u64) -> std::ops::Range<u64> {
    0..count * std::env::var("FLASHGRAIN_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn tasks_lose_and_double_no_token_and_leak_nothing_through_restarts() {
    for seed in seeds(60) {
        if let Err(failure) = Tokens.play(seed, &|| true) {
            panic!("{failure}");
        }
    }
}

#[test]
fn threads_lose_and_double_no_token_and_leak_nothing() {
    for seed in seeds(3) {
        if let Err(what) = threads(seed, 2000) {
            panic!("seed {seed}: {what}");
        }
    }
}
