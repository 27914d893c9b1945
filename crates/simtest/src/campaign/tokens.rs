//! Tokens that are moved between places by transactions and bulk removals, through restarts and power cuts.

use super::failure::Failure;
use super::run::Campaign;
use crate::tokens::simulated;
use crate::world::{CASES, Counts, Habits, quietly};

/// See the module. A case is a run of three lives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokens;

impl Campaign for Tokens {
    fn name(&self) -> &'static str {
        "tokens"
    }

    fn habits(&self, _seed: u64) -> Habits {
        Habits::default()
    }

    fn with_habits(&self, _habits: Habits) -> Box<dyn Campaign> {
        Box::new(*self)
    }

    fn play(&self, seed: u64, _goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let played = quietly(|| simulated(seed)).and_then(|result| result);
        played.map_err(|what| Failure::new(seed, "moving tokens", what))?;
        let mut counts = Counts::default();
        counts.add(CASES, 1);
        Ok(counts)
    }
}
