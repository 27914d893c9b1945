//! Another campaign, with trees of another kind.

use std::fmt;

use flashgrain::IndexKind;
use flashgrain::testing::trees_of;

use super::failure::Failure;
use super::run::Campaign;
use crate::world::{BeTrees, Counts, Habits, LsmTrees};

/// Plays a campaign with trees of a kind: see [`TreesOf`](flashgrain::testing::TreesOf). How LSM-trees
/// and Bε-trees are kept, and how long the segments of stores with LSM-trees are, is drawn from the seed.
pub struct OfKind {
    /// Kind of the trees that the campaign makes.
    pub kind: IndexKind,
    /// The campaign.
    pub campaign: Box<dyn Campaign>,
}

impl OfKind {
    /// The campaign with trees of this kind.
    pub fn new(kind: IndexKind, campaign: impl Campaign + 'static) -> Self {
        Self { kind, campaign: Box::new(campaign) }
    }
}

impl Campaign for OfKind {
    fn name(&self) -> &'static str {
        self.campaign.name()
    }

    fn habits(&self, seed: u64) -> Habits {
        let _kind = trees_of(self.kind);
        self.campaign.habits(seed)
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self { kind: self.kind, campaign: self.campaign.with_habits(habits) })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let play = |trees: &dyn fmt::Display| {
            let played = self.campaign.play(seed, goes_on);
            played.map_err(|failure| Failure { case: format!("{trees}, {}", failure.case), ..failure })
        };
        match self.kind {
            IndexKind::Lsm => {
                let trees = LsmTrees::draw(seed);
                let _made = trees.make();
                play(&trees)
            }
            IndexKind::BeTree => {
                let trees = BeTrees::draw(seed);
                let _made = trees.make();
                play(&trees)
            }
            kind => {
                let _kind = trees_of(kind);
                self.campaign.play(seed, goes_on)
            }
        }
    }
}
