//! Injects, at any place inside a store, the effects that a drive in trouble can have there: a page that is
//! needed is not in memory and cannot be read, memory for another page cannot be freed because changed pages
//! cannot be written, or another task's write has just failed.
//!
//! This campaign complements [nth](super::Nth), where only the waiting thread of a request notices that it
//! failed: small stores have most pages in memory.

use flashgrain::testing::Trouble;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::failure::Failure;
use super::nth::{Life, Nth, Start};
use super::paths::Paths;
use super::run::Campaign;
use crate::media::FailPlan;
use crate::world::{CASES, Counts, Habits};

/// See the module. A case is an occasion for one kind of trouble, of those that a life has.
pub struct Inside {
    /// The lives.
    pub lives: Nth,
    /// Occasions of a kind that are taken of each life; if there are fewer, all.
    pub occasions: u64,
}

impl Default for Inside {
    fn default() -> Self {
        Self { lives: Nth::default(), occasions: 80 }
    }
}

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x696e_7369_6465;

impl Campaign for Inside {
    fn name(&self) -> &'static str {
        "inside"
    }

    fn habits(&self, seed: u64) -> Habits {
        self.lives.habits(seed)
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self { lives: Nth { habits: Some(habits), ..self.lives }, ..*self })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let habits = self.habits(seed);
        let start = Start::draw(seed, habits)?;
        let mut counts = Counts::default();
        let mut random = Pcg64::seed_from_u64(seed ^ STREAM);
        for trouble in Trouble::ALL {
            let (plan, paths) = (FailPlan::none(), Paths::default());
            let listened = trouble.listen(paths.listener());
            let played = Life::of(&start, habits, seed, &mut counts).play_with(&plan, Some(listened));
            let occasions = played.map_err(|what| Failure::new(seed, "while nothing failed", what))?;
            for nth in chosen(self.occasions, occasions, &paths.rarest(), &mut random) {
                counts.add(CASES, 1);
                let life = Life::of(&start, habits, seed, &mut counts);
                let played = life.play_with(&FailPlan::inside(), Some(trouble.at(nth)));
                let how = || format!("{trouble:?} at occasion {nth} of {occasions}");
                played.map_err(|what| Failure::new(seed, how(), what))?;
                if !goes_on() {
                    return Ok(counts);
                }
            }
        }
        Ok(counts)
    }
}

/// All occasions if they are few. Otherwise one on each path that leads to occasions, rare paths first, as
/// random choice would miss them, and some of all.
fn chosen(most: u64, occasions: u64, rarest: &[u64], random: &mut Pcg64) -> Vec<u64> {
    if occasions <= most {
        return (1..=occasions).collect();
    }
    let mut chosen: Vec<_> = rarest.iter().copied().take((most / 4 * 3) as usize).collect();
    chosen.extend((chosen.len() as u64..most).map(|_| random.random_range(1..=occasions)));
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}
