//! Stores on which everything is drawn: their features, their operations, and how they are read again.

use std::fmt::Write as _;
use std::ops::Range;

use super::failure::Failure;
use super::run::Campaign;
use crate::swarm::{Feature, Features, simulated};
use crate::world::{CASES, Counts, Habits, quietly};

/// See the module. A case is a store with its lives.
#[derive(Clone, Debug, Default)]
pub struct Swarm {
    /// Features that no run has.
    pub without: Vec<Feature>,
    /// Features that all runs have.
    pub with: Vec<Feature>,
}

impl Swarm {
    fn features(&self, seed: u64) -> Features {
        Features::draw(seed).with(&self.with).without(&self.without)
    }

    fn play_with(seed: u64, features: Features) -> Result<Counts, Failure> {
        let played = quietly(|| simulated(seed, features)).and_then(|result| result);
        let mut counts = played.map_err(|what| Failure::new(seed, features.to_string(), what))?;
        counts.add(CASES, 1);
        Ok(counts)
    }
}

impl Campaign for Swarm {
    fn name(&self) -> &'static str {
        "swarm"
    }

    fn habits(&self, _seed: u64) -> Habits {
        Habits::default()
    }

    fn with_habits(&self, _habits: Habits) -> Box<dyn Campaign> {
        Box::new(self.clone())
    }

    fn play(&self, seed: u64, _goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        Self::play_with(seed, self.features(seed))
    }

    /// Without each feature that the failure does not need.
    fn smaller(&self, failure: &Failure) -> Option<Failure> {
        let mut features = self.features(failure.seed);
        let mut smallest = failure.clone();
        let mut left_out = Vec::new();
        for feature in Feature::ALL.iter().filter(|feature| self.features(failure.seed).has(**feature)) {
            let fewer = features.without(&[*feature]);
            if !fewer.has_trees() {
                continue;
            }
            if let Err(found) = Self::play_with(failure.seed, fewer) {
                (features, smallest) = (fewer, found);
                left_out.push(feature.name());
            }
        }
        let case = format!("--without '{}' leaves {}", left_out.join(","), smallest.case);
        Some(Failure { case, ..smallest })
    }

    fn summary(&self, seeds: Range<u64>) -> String {
        self.coverage(seeds)
    }
}

impl Swarm {
    /// The features that the runs of some seeds had, and the pairs that met.
    fn coverage(&self, seeds: Range<u64>) -> String {
        let count = seeds.end - seeds.start;
        let mut single = vec![0_u64; Feature::ALL.len()];
        let mut pairs = vec![0_u64; Feature::ALL.len() * Feature::ALL.len()];
        for seed in seeds {
            let all: Vec<usize> = self.features(seed).all().map(|feature| feature as usize).collect();
            for (place, one) in all.iter().enumerate() {
                single[*one] += 1;
                all[place + 1..].iter().for_each(|other| pairs[one * Feature::ALL.len() + other] += 1);
            }
        }
        let mut text = format!("Features of {count} runs:");
        for feature in Feature::ALL {
            let _ = write!(text, " {} {},", feature.name(), single[*feature as usize]);
        }
        let possible = Feature::ALL.len() * (Feature::ALL.len() - 1) / 2;
        let met = pairs.iter().filter(|count| **count > 0).count();
        let least = pairs.iter().filter(|count| **count > 0).min().copied().unwrap_or(0);
        let _ =
            write!(text, "\npairs of features that met: {met} of {possible}, each {least} times at least");
        text
    }
}
