//! The jobs of a tree that are running.

use super::hidden;
use super::levels::{Levels, Target};
use super::options::Options;
use super::policy::{Busy, ForRoom, Job, Ticket, pick};
use crate::buffered::{KeyInterval, Retention};
use crate::index::{Horizon, is_eager};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::task::{Waker, park, waker};

/// One more job runs for each `BATCHES_PER_JOB` batches of level 0 that the debt has in bytes.
const BATCHES_PER_JOB: u64 = 4;

/// See the module.
#[derive(Default)]
pub(super) struct Jobs(Mutex<State>);

#[derive(Default)]
struct State {
    busy: Busy,
    /// Tasks that look for jobs or sweep.
    looking: u32,
    waiting: Vec<Waker>,
}

/// A job that is running, until this is dropped.
pub(super) struct Running<'a> {
    jobs: &'a Jobs,
    ticket: Ticket,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.jobs.state();
            state.busy.end(self.ticket);
            std::mem::take(&mut state.waiting)
        };
        waiting.iter().for_each(Waker::wake);
    }
}

/// A task that looks for jobs or sweeps, until this is dropped: it may have tables that have left the levels.
pub(super) struct Looking<'a>(&'a Jobs);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.state();
            state.looking -= 1;
            std::mem::take(&mut state.waiting)
        };
        waiting.iter().for_each(Waker::wake);
    }
}

/// How many jobs more than one may run with such a debt.
fn more_jobs(debt_bytes: u64, batch_bytes: u64) -> u64 {
    match is_eager() {
        true => u32::MAX.into(),
        false => debt_bytes / (BATCHES_PER_JOB * batch_bytes).max(1),
    }
}

impl Jobs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job, which is running from now on, if one is due. How many may run follows from the debt.
    /// `levels` gives the present ones. Tables that no reader sees any more come first, and the merges that
    /// are `wanted` for the sake of room last.
    pub fn begin(
        &self,
        options: &Options,
        (horizon, wanted): (Option<&dyn Horizon>, ForRoom),
        levels: impl FnOnce() -> Arc<Levels>,
    ) -> Option<(Job, Ticket, Arc<Levels>)> {
        let mut state = self.state();
        // The lock is held, so nothing here may wait: the levels have the tables of each job that has ended.
        let levels = levels();
        let dropping =
            horizon.and_then(|horizon| hidden::pick(&levels, &state.busy, &Retention::new(horizon)));
        if let Some(job) = dropping {
            let ticket = state.busy.begin(&job);
            return Some((job, ticket, levels));
        }
        let more = more_jobs(options.policy.debt(&levels).bytes, options.batch_bytes());
        if state.busy.len() as u64 >= (1 + more).min(options.jobs.into()) {
            return None;
        }
        let job = pick((&*options.policy, &options.policy_options), &levels, &state.busy, wanted)?;
        let ticket = state.busy.begin(&job);
        Some((job, ticket, levels))
    }

    /// The job that `pick` chooses, however many are running: it is running from now on.
    pub fn begin_one(
        &self,
        levels: impl FnOnce() -> Arc<Levels>,
        pick: impl FnOnce(&Levels, &Busy) -> Option<Job>,
    ) -> Option<(Job, Ticket, Arc<Levels>)> {
        let mut state = self.state();
        // The lock is held, as in `begin`.
        let levels = levels();
        let job = pick(&levels, &state.busy)?;
        let ticket = state.busy.begin(&job);
        Some((job, ticket, levels))
    }

    /// Chooses where tables with keys of this range go, and keeps jobs away from there as one that is
    /// running.
    pub fn begin_load(
        &self,
        range: KeyInterval<'_>,
        choose: impl FnOnce(&Busy) -> Target,
    ) -> (Target, Ticket) {
        let mut state = self.state();
        let to = choose(&state.busy);
        (to, state.busy.begin_load(to.level(), range))
    }

    /// The job runs until the result is dropped.
    pub fn running(&self, ticket: Ticket) -> Running<'_> {
        Running { jobs: self, ticket }
    }

    /// The caller looks for jobs or sweeps until the result is dropped.
    pub fn look(&self) -> Looking<'_> {
        self.state().looking += 1;
        Looking(self)
    }

    /// Waits until no job is running.
    pub fn wait(&self) {
        self.wait_until(|state| state.busy.len() == 0);
    }

    /// Waits until no job is running, and no task looks for one.
    pub fn wait_for_rest(&self) {
        self.wait_until(|state| state.busy.len() == 0 && state.looking == 0);
    }

    fn wait_until(&self, is_reached: impl Fn(&State) -> bool) {
        loop {
            {
                let mut state = self.state();
                if is_reached(&state) {
                    return;
                }
                state.waiting.push(waker());
            }
            park();
        }
    }
}
