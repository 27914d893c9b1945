//! Running a campaign from seed to seed, on several threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::failure::Failure;
use crate::world::{Counts, Habits};

/// Something to do to stores, again and again, each time with another seed.
pub trait Campaign: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Workload of the stores with this seed.
    fn habits(&self, seed: u64) -> Habits;

    /// The same with other habits, whatever the seed, and looking at everything from the beginning.
    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign>;

    /// Does it with everything random drawn from `seed`; returns the counts. It may end early when `goes_on`
    /// no longer says so.
    ///
    /// # Errors
    /// The first promise that was broken.
    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure>;

    /// A smaller case that fails as `failure` does, if the campaign has a way of its own to look for one.
    fn smaller(&self, _failure: &Failure) -> Option<Failure> {
        None
    }

    /// Description of the cases of some seeds, for the end of a report; empty if there is nothing to say.
    fn summary(&self, _seeds: std::ops::Range<u64>) -> String {
        String::new()
    }
}

/// How much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first seed; the next ones follow.
    pub seed: u64,
    /// It ends after this number of cases, or a few more.
    pub cases: u64,
    /// Threads.
    pub jobs: usize,
}

/// Result of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Counts of all seeds.
    pub counts: Counts,
    /// Seeds that were played.
    pub seeds: u64,
    /// The failure with the smallest seed.
    pub failure: Option<Failure>,
}

/// Plays a campaign until there are enough cases, one fails, or `stop` is set. `show` gets the report after
/// every seed.
pub fn run(
    campaign: &dyn Campaign,
    extent: &Extent,
    stop: &AtomicBool,
    show: &(dyn Fn(&Report) + Sync),
) -> Report {
    let next = AtomicU64::new(extent.seed);
    let report = Mutex::new(Report::default());
    let is_over = |report: &Report| report.failure.is_some() || report.counts.cases() >= extent.cases;
    let lock = || report.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        while !stop.load(Ordering::Relaxed) && !is_over(&lock()) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let result = campaign.play(seed, &|| !stop.load(Ordering::Relaxed));
            let mut report = lock();
            report.seeds += 1;
            match result {
                Ok(counts) => report.counts.add_all(&counts),
                Err(failure) => {
                    let is_first = report.failure.as_ref().is_none_or(|first| failure.seed < first.seed);
                    report.failure = if is_first { Some(failure) } else { report.failure.take() };
                }
            }
            show(&report);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..extent.jobs {
            scope.spawn(work);
        }
        work();
    });
    report.into_inner().unwrap_or_else(PoisonError::into_inner)
}
