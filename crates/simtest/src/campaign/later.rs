//! Another campaign, from a later seed on.

use super::failure::Failure;
use super::run::Campaign;
use crate::world::{Counts, Habits};

/// Plays a campaign from a seed on that is known to find something rare: cases before it would only take
/// time.
pub struct Later {
    /// The seed that is played as the first one.
    pub first_seed: u64,
    /// The campaign.
    pub campaign: Box<dyn Campaign>,
}

impl Campaign for Later {
    fn name(&self) -> &'static str {
        self.campaign.name()
    }

    fn habits(&self, seed: u64) -> Habits {
        self.campaign.habits(self.first_seed + seed)
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self { first_seed: self.first_seed, campaign: self.campaign.with_habits(habits) })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        self.campaign.play(self.first_seed + seed, goes_on)
    }
}
