//! Another campaign, with trees of another kind.

use flashgrain::IndexKind;
use flashgrain::testing::trees_of;

use super::counts::Counts;
use super::failure::Failure;
use super::run::Campaign;
use crate::world::Habits;

/// Plays a campaign with trees that only add versions: they keep versions that are in no page in memory, and
/// read nothing before they write.
pub struct AppendOnly(pub Box<dyn Campaign>);

impl Campaign for AppendOnly {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn habits(&self, seed: u64) -> Habits {
        self.0.habits(seed)
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self(self.0.with_habits(habits)))
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let _kind = trees_of(IndexKind::AppendOnly);
        self.0.play(seed, goes_on)
    }
}
