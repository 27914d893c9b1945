//! Stores that are kept full: inserts until nothing more is taken, removals, inserts again, closing and
//! opening.

use super::failure::Failure;
use super::run::Campaign;
use crate::swarm::{Feature, Features, filled};
use crate::world::{CASES, Counts, Habits, quietly};

/// See the module. A case is a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Full;

/// Features that a store that is kept full does not have: it is about room.
const WITHOUT: [Feature; 4] =
    [Feature::PowerCuts, Feature::Kills, Feature::SeveralTrees, Feature::FailingOperator];

impl Campaign for Full {
    fn name(&self) -> &'static str {
        "full"
    }

    fn habits(&self, _seed: u64) -> Habits {
        Habits::default()
    }

    fn with_habits(&self, _habits: Habits) -> Box<dyn Campaign> {
        Box::new(*self)
    }

    fn play(&self, seed: u64, _goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let features = Features::draw(seed).with(&[Feature::LittleRoom]).without(&WITHOUT);
        let played = quietly(|| filled(seed, features)).and_then(|result| result);
        let mut counts = played.map_err(|what| Failure::new(seed, features.to_string(), what))?;
        counts.add(CASES, 1);
        Ok(counts)
    }

    fn smaller(&self, failure: &Failure) -> Option<Failure> {
        Some(failure.clone())
    }
}
