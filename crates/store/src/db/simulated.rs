//! A store over simulated drives, in their time.

use std::panic::resume_unwind;
use std::time::Duration;

use super::prepared::Prepared;
use super::{Builder, Db, Stats};
use crate::options::Options;
use crate::task::JoinHandle;
use crate::worker::{CpuCosts, Harness, spend};
use crate::{Error, io_context};

/// A store whose workers all run on the calling thread, in the virtual time of simulated drives: the same
/// every time, and as many workers as one likes. For tests, and to predict a store's behaviour on other
/// hardware.
///
/// Whatever is done with the store must be done by tasks: [`Simulated::run`], [`Simulated::spawn`]. No handle
/// to it may outlive this.
///
/// ```
/// # fn main() -> Result<(), flashgrain::Error> {
/// use std::sync::Arc;
///
/// use flashgrain::{CpuCosts, Db, Simulated};
/// use flashgrain_ssdsim::{SimConfig, SimDevice};
///
/// let drive = SimDevice::new(&SimConfig::named("905p").unwrap(), "sim:905p", 1).unwrap();
/// let store = Db::builder().device(Arc::new(drive)).workers(4).cache_bytes(8 << 20);
/// let costs = CpuCosts { task_ns: 1_000, request_ns: 500, ..CpuCosts::NONE };
/// let mut simulated = Simulated::create(store, costs)?;
/// simulated.run(|db| db.tree("fruit")?.insert("apple", "red"))?;
/// let begun = simulated.now();
/// let tasks: Vec<_> = (0..100)
///     .map(|_| simulated.spawn(|db| db.tree("fruit")?.get("apple")))
///     .collect();
/// simulated.run_until_idle();
/// assert!(tasks.iter().all(|task| task.is_finished()));
/// assert!(simulated.now() > begun);
/// # Ok(())
/// # }
/// ```
pub struct Simulated {
    harness: Harness,
    db: Option<Db>,
    next_worker: usize,
    workers: usize,
}

impl Simulated {
    /// Makes a new store on the simulated devices of `builder`, with as many workers as it says. From then on
    /// their processors take the time given by `costs`.
    ///
    /// # Errors
    /// As [`Builder::create`]; [`Error::Options`] if a device of the store is not simulated.
    pub fn create(builder: Builder, costs: CpuCosts) -> Result<Self, Error> {
        Self::start(builder.prepare_new()?, costs)
    }

    /// Opens the store that is on the simulated devices of `builder`.
    ///
    /// # Errors
    /// As [`Builder::open`]; [`Error::Options`] if a device of the store is not simulated.
    pub fn open(builder: Builder, costs: CpuCosts) -> Result<Self, Error> {
        Self::start(builder.prepare()?, costs)
    }

    fn start((prepared, options): (Prepared, Options), costs: CpuCosts) -> Result<Self, Error> {
        let devices = prepared.devices().clone();
        if devices.all().iter().any(|device| device.simulation().is_none()) {
            return Err(Error::Options("only a store on simulated drives runs in their time".into()));
        }
        let mut harness = Harness::with_bounds(&devices, options.workers, options.bounds())?;
        harness.set_step_retries(options.step_retries);
        let executor = harness.executor().clone();
        let core = harness.run(move || prepared.start(executor, None))?;
        harness.set_costs(costs);
        Ok(Self { harness, db: Some(Db { core }), next_worker: 0, workers: options.workers })
    }

    /// Runs `work` as a task, and all others meanwhile, until it ends. Panics if the task does.
    pub fn run<T: Send + 'static>(&mut self, work: impl FnOnce(&Db) -> T + Send + 'static) -> T {
        let task = self.spawn(work);
        self.harness.run_until_finished(&task);
        task.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Has `work` run as a task of the next worker in turn, once time passes.
    pub fn spawn<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Db) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let db = self.db.clone();
        let worker = self.next_worker;
        self.next_worker = (worker + 1) % self.workers;
        self.harness.spawn(worker, move || {
            let db = db.unwrap_or_else(|| unreachable!("there is a store until the end"));
            work(&db)
        })
    }

    /// Runs all tasks until nothing is going to happen any more.
    ///
    /// # Panics
    /// If something always does.
    pub fn run_until_idle(&mut self) {
        self.harness.run_until_idle();
    }

    /// Ends as in a crash: nothing more is done, written or waited for. The drives have everything that was
    /// acknowledged as durable, and the store can be opened again from them.
    pub fn abandon(mut self) {
        if let Some(db) = self.db.take() {
            db.core.abandon();
        }
    }

    /// Lets `span` of virtual time pass; all tasks run meanwhile.
    pub fn run_for(&mut self, span: Duration) {
        let until = io_context::now(self.harness.devices()) + span.into();
        self.harness.run_until(until);
    }

    /// From now on, the order in which workers step and in which their ready tasks run is drawn from `seed`,
    /// instead of everyone in turn: one of very many interleavings, the same one for the same seed.
    pub fn set_schedule(&mut self, seed: u64) {
        self.harness.set_schedule(seed);
    }

    /// From now on, [`Simulated::run`] panics if its task takes more turns of the workers than this:
    /// something goes on for ever.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn set_turns_max(&mut self, turns: u64) {
        self.harness.set_turns_max(turns);
    }

    /// From now on processors cost this.
    pub fn set_costs(&mut self, costs: CpuCosts) {
        self.harness.set_costs(costs);
    }

    /// Processor time of all workers so far. Divided by the elapsed time and the number of workers, it is
    /// their utilisation.
    pub fn spent(&self) -> Duration {
        self.harness.spent().into()
    }

    /// As [`Db::stats`].
    pub fn stats(&self) -> Stats {
        self.db.as_ref().map(Db::stats).unwrap_or_default()
    }

    /// Charges the calling task `cpu` instead of [`CpuCosts::task_ns`] for its work since it last waited: for
    /// an operation that found everything in memory, or for the program's own computation between calls.
    /// Other tasks of the worker may go on before this one does. It does nothing if processors have no costs,
    /// and in stores that are not simulated.
    pub fn spend(cpu: Duration) {
        spend(cpu.into());
    }

    /// Virtual time since the drives were made.
    pub fn now(&self) -> Duration {
        io_context::now(self.harness.devices()).into()
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let Some(db) = self.db.take() else { return };
        // Closing a store is work for a task, and no task runs while a test fails; nor can it end before
        // tasks that wait for ever.
        if std::thread::panicking() {
            db.core.abandon();
            return;
        }
        self.harness.run_until_idle();
        if self.harness.unfinished() > 0 {
            db.core.abandon();
        } else {
            self.harness.run(move || drop(db));
        }
    }
}
