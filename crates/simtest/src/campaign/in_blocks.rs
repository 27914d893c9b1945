//! Another campaign, with B+-trees whose nodes are in blocks.

use flashgrain::testing::{TreesOf, trees_in_blocks};

use super::failure::Failure;
use super::run::Campaign;
use crate::world::{Counts, Habits};

/// Blocks of a node: of the largest, the smallest cache has room for eight.
const BLOCKS: [u32; 2] = [2, 4];

/// Plays a campaign with B+-trees whose nodes are in blocks; of how many is drawn from the seed.
pub struct InBlocks {
    /// The campaign.
    pub campaign: Box<dyn Campaign>,
}

impl InBlocks {
    /// The campaign with such trees.
    pub fn new(campaign: impl Campaign + 'static) -> Self {
        Self { campaign: Box::new(campaign) }
    }
}

/// Trees of this seed.
fn trees(seed: u64) -> TreesOf {
    trees_in_blocks(BLOCKS[seed as usize % BLOCKS.len()])
}

impl Campaign for InBlocks {
    fn name(&self) -> &'static str {
        self.campaign.name()
    }

    fn habits(&self, seed: u64) -> Habits {
        let _trees = trees(seed);
        self.campaign.habits(seed)
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self { campaign: self.campaign.with_habits(habits) })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let _trees = trees(seed);
        let blocks = BLOCKS[seed as usize % BLOCKS.len()];
        let played = self.campaign.play(seed, goes_on);
        played.map_err(|failure| Failure {
            case: format!("nodes of {blocks} blocks, {}", failure.case),
            ..failure
        })
    }
}
