//! A store that is being measured, and who runs its tasks.

use std::panic::resume_unwind;
use std::time::Duration;

use flashgrain::{Db, JoinHandle, Simulated, Stats};
use flashgrain_device::process_cpu;

use super::costs::Costs;

/// Between two looks at what stops a measurement early.
const TICK: Duration = Duration::from_millis(20);

/// The same in virtual time, of which a store may do much in a tick of ours.
const VIRTUAL_TICK: Duration = Duration::from_millis(1);

/// See the module.
pub enum Store {
    /// On threads of its own, in our time.
    Threads(Db),
    /// Stepped by us, in the time of simulated drives.
    Simulated(Box<Simulated>, Costs),
}

impl Store {
    /// Does `work` and waits for it: on this thread, or as a task while time passes.
    pub fn run<T: Send + 'static>(&mut self, work: impl FnOnce(&Db) -> T + Send + 'static) -> T {
        match self {
            Self::Threads(db) => work(db),
            Self::Simulated(simulated, _) => simulated.run(work),
        }
    }

    /// Has `work` done as a task.
    pub fn spawn<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Db) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        match self {
            Self::Threads(db) => {
                let own = db.clone();
                db.spawn(move || work(&own))
            }
            Self::Simulated(simulated, _) => simulated.spawn(work),
        }
    }

    /// Runs all of `tasks` at a time, and waits for them. Panics as they do.
    pub fn all<T, F>(&mut self, tasks: Vec<F>) -> Vec<T>
    where
        T: Send + 'static,
        F: FnOnce(&Db) -> T + Send + 'static,
    {
        let handles: Vec<_> = tasks.into_iter().map(|task| self.spawn(task)).collect();
        let join = |handle: JoinHandle<T>| handle.join().unwrap_or_else(|panic| resume_unwind(panic));
        let joined = move || handles.into_iter().map(join).collect();
        match self {
            Self::Threads(_) => joined(),
            Self::Simulated(simulated, _) => simulated.run(move |_| joined()),
        }
    }

    /// Lets tasks run until `until` or as long as `go_on` says so.
    pub fn wait_until(&mut self, until: Duration, mut go_on: impl FnMut() -> bool) {
        while go_on() {
            let left = until.saturating_sub(self.now());
            if left.is_zero() {
                return;
            }
            match self {
                Self::Threads(_) => std::thread::park_timeout(left.min(TICK)),
                Self::Simulated(simulated, _) => simulated.run_for(left.min(VIRTUAL_TICK)),
            }
        }
    }

    /// The time of the store's device.
    pub fn now(&self) -> Duration {
        match self {
            Self::Threads(db) => db.now(),
            Self::Simulated(simulated, _) => simulated.now(),
        }
    }

    /// Time that processors have worked: ours, or the simulated ones.
    pub fn cpu(&self) -> Duration {
        match self {
            Self::Threads(_) => process_cpu().into(),
            Self::Simulated(simulated, _) => simulated.spent(),
        }
    }

    /// What a task has to spend for an operation, as its own work takes no virtual time.
    pub fn costs(&self) -> Option<Costs> {
        match self {
            Self::Threads(_) => None,
            Self::Simulated(_, costs) => Some(*costs),
        }
    }

    pub fn stats(&self) -> Stats {
        match self {
            Self::Threads(db) => db.stats(),
            Self::Simulated(simulated, _) => simulated.stats(),
        }
    }

    pub fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Threads(db) => Ok(db.close()?),
            Self::Simulated(mut simulated, _) => Ok(simulated.run(|db| db.clone().close())?),
        }
    }
}
