//! Another campaign, with trees of a kind that depends on the seed.

use flashgrain::IndexKind;

use super::failure::Failure;
use super::run::Campaign;
use super::{InBlocks, OfKind};
use crate::world::{Counts, Habits};

/// Plays a campaign with B+-trees, LSM-trees, Bε-trees and B+-trees whose nodes are in blocks, in turn of the
/// seeds.
pub struct AnyKind {
    name: &'static str,
    kinds: [Box<dyn Campaign>; 4],
}

impl AnyKind {
    /// The campaigns that `campaign` makes, one for each kind.
    pub fn new<C: Campaign + 'static>(campaign: impl Fn() -> C) -> Self {
        let kinds: [Box<dyn Campaign>; 4] = [
            Box::new(campaign()),
            Box::new(OfKind::new(IndexKind::Lsm, campaign())),
            Box::new(OfKind::new(IndexKind::BeTree, campaign())),
            Box::new(InBlocks::new(campaign())),
        ];
        Self { name: kinds[0].name(), kinds }
    }

    fn of(&self, seed: u64) -> &dyn Campaign {
        // Campaigns alternate between ways to begin as seeds go up: each kind has to meet all of them.
        let count = self.kinds.len() as u64;
        self.kinds[((seed + seed / count) % count) as usize].as_ref()
    }
}

impl Campaign for AnyKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn habits(&self, seed: u64) -> Habits {
        self.of(seed).habits(seed)
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        let kinds = self.kinds.each_ref().map(|campaign| campaign.with_habits(habits));
        Box::new(Self { name: self.name, kinds })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        self.of(seed).play(seed, goes_on)
    }
}
