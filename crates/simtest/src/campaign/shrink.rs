//! Finding a smaller case that fails, too.

use super::failure::Failure;
use super::run::Campaign;
use crate::world::Habits;

/// Seeds that are tried with each size.
const SEEDS: u64 = 12;

/// The first failure of the same campaign with the fewest steps of the fewest tasks, if one is found with
/// less work; else the same one. How the smaller life is lived is said with it.
pub fn shrink(campaign: &dyn Campaign, failure: Failure) -> Failure {
    if let Some(smaller) = campaign.smaller(&failure) {
        return smaller;
    }
    let full = campaign.habits(failure.seed);
    let steps = (0..).map(|power| 1 << power).take_while(|steps| *steps < full.steps);
    for (steps, tasks) in steps.flat_map(|steps| [1, 2, full.tasks].map(|tasks| (steps, tasks))) {
        let habits = Habits { steps, tasks: tasks.min(full.tasks), ..full };
        let smaller = campaign.with_habits(habits);
        for seed in failure.seed..failure.seed + SEEDS {
            if let Err(found) = smaller.play(seed, &|| true) {
                let case = format!("{} steps of {} tasks, {}", habits.steps, habits.tasks, found.case);
                return Failure { case, ..found };
            }
        }
    }
    failure
}
