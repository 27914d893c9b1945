//! Isolation: histories of concurrent transactions, with and without crashes, judged by their reads.

use super::failure::Failure;
use super::run::Campaign;
use crate::isolation::{Judgement, Shape, crashing, simulated};
use crate::world::{CASES, Counts, Habits, quietly};

/// See the module. A case is a history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Histories;

/// Crashes in a history that has some.
const CRASHES: usize = 3;

impl Campaign for Histories {
    fn name(&self) -> &'static str {
        "isolation"
    }

    fn habits(&self, _seed: u64) -> Habits {
        Habits::default()
    }

    fn with_habits(&self, _habits: Habits) -> Box<dyn Campaign> {
        Box::new(*self)
    }

    fn play(&self, seed: u64, _goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let history = quietly(|| match seed % 4 {
            3 => crashing(seed, Shape::default(), CRASHES),
            2 => simulated(seed, Shape::default()),
            _ => simulated(seed, Shape::contended(seed)),
        });
        let history = history.and_then(|history| history.map_err(|error| error.to_string()));
        let judgement = history.map(|history| Judgement::of(&history));
        let judgement = judgement.map_err(|what| Failure::new(seed, "a history", what))?;
        if let Some(anomaly) = judgement.violations().next() {
            return Err(Failure::new(seed, "a history", anomaly.to_string()));
        }
        let mut counts = Counts::default();
        counts.add(CASES, 1);
        counts.add("commits", judgement.committed as u64);
        counts.add("dependencies", judgement.dependencies as u64);
        counts.add("write skews, which are allowed", judgement.anomalies.len() as u64);
        Ok(counts)
    }
}
