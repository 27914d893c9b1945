//! A store under test: how it is made, where it lies, and how clients run in it.

mod location;
mod options;

use std::panic::resume_unwind;
use std::time::Duration;

use anyhow::bail;
use flashgrain::{Db, Durability, Error, JoinHandle, Simulated, Stats};
use flashgrain_device::{Nanos, process_cpu};
use flashgrain_profile::load::Region;

pub use location::{Room, StoreLocation};
pub use options::{Options, StoreOptions};

use crate::drive::{Host, pass_while};
use crate::engine::Job;
use crate::engine::flashgrain::Client;
use crate::processor::ProcessorCosts;

/// The tree that clients work on.
pub const TREE: &str = "records";

/// Time between two checks of the conditions that stop a run early.
const TICK: Duration = Duration::from_millis(20);

/// The same in virtual time, where a store may do much in a tick of real time.
const VIRTUAL_TICK: Duration = Duration::from_millis(1);

/// Time between two checks whether clients have ended; the rest of the last tick is idle.
const VIRTUAL_JOIN_TICK: Duration = Duration::from_micros(20);

/// How long an operation may take that has begun when a run is over.
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module.
pub struct Store {
    kind: Kind,
    durability: Option<Durability>,
    clients: Vec<JoinHandle<anyhow::Result<()>>>,
}

enum Kind {
    /// On threads of its own, in the system's time.
    Threads(Db),
    /// Stepped by the caller, in the time of simulated drives.
    Simulated(Box<Simulated>, ProcessorCosts),
}

impl From<Db> for Store {
    fn from(db: Db) -> Self {
        Self { kind: Kind::Threads(db), durability: None, clients: Vec::new() }
    }
}

impl Store {
    /// In virtual time; its clients use the processor times in `costs`.
    pub fn simulated(store: Simulated, costs: ProcessorCosts) -> Self {
        let kind = Kind::Simulated(Box::new(store), costs);
        Self { kind, durability: None, clients: Vec::new() }
    }

    /// From now on, clients that are started write so durably, instead of as the store was made.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = Some(durability);
    }

    /// From now on, clients that are started write as durably as the store was made.
    pub fn reset_durability(&mut self) {
        self.durability = None;
    }

    /// Does `work` and waits for it: on this thread, or as a task while time passes.
    pub fn run<T: Send + 'static>(&mut self, work: impl FnOnce(&Db) -> T + Send + 'static) -> T {
        match &mut self.kind {
            Kind::Threads(db) => work(db),
            Kind::Simulated(simulated, _) => simulated.run(work),
        }
    }

    fn spawn<T: Send + 'static>(&mut self, work: impl FnOnce(&Db) -> T + Send + 'static) -> JoinHandle<T> {
        match &mut self.kind {
            Kind::Threads(db) => {
                let own = db.clone();
                db.spawn(move || work(&own))
            }
            Kind::Simulated(simulated, _) => simulated.spawn(work),
        }
    }

    /// The processor time that clients spend, as their own work takes no virtual time.
    pub fn costs(&self) -> Option<ProcessorCosts> {
        match &self.kind {
            Kind::Threads(_) => None,
            Kind::Simulated(_, costs) => Some(*costs),
        }
    }

    /// From now on, simulated processors take this time, and clients that are started spend it.
    pub fn set_costs(&mut self, costs: ProcessorCosts) {
        if let Kind::Simulated(simulated, own) = &mut self.kind {
            simulated.set_costs(costs.of_workers());
            *own = costs;
        }
    }

    /// The store's own numbers.
    pub fn stats(&self) -> Stats {
        match &self.kind {
            Kind::Threads(db) => db.stats(),
            Kind::Simulated(simulated, _) => simulated.stats(),
        }
    }

    /// The region of the store's pages. Segments are taken from the first on; the rest of a file was never
    /// written and would be answered without the drive.
    pub fn written_region(&self) -> Region {
        let space = self.stats().space;
        let written = space.segments_bytes - space.free_bytes;
        Region { offset_bytes: space.segments_start_bytes, length_bytes: written }
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn close(self) -> Result<(), Error> {
        match self.kind {
            Kind::Threads(db) => db.close(),
            Kind::Simulated(mut simulated, _) => simulated.run(|db| db.clone().close()),
        }
    }
}

impl Host for Store {
    type Counters = Stats;

    fn start(&mut self, clients: usize, job: Job) -> anyhow::Result<()> {
        let trees = vec![self.run(|db| db.tree(TREE))?];
        let (costs, durability) = (self.costs(), self.durability);
        let start = |number| {
            let (trees, job) = (trees.clone(), job.clone());
            self.spawn(move |db| {
                let client = Client::new(db.clone(), trees);
                job(number, &mut client.with_durability(durability).with_costs(costs))
            })
        };
        let started = (0..clients).map(start).collect();
        self.clients = started;
        Ok(())
    }

    fn have_ended(&self) -> bool {
        self.clients.iter().all(JoinHandle::is_finished)
    }

    fn pass(&mut self, until: Nanos) {
        let remaining = Duration::from(until.since(self.now()));
        match &mut self.kind {
            Kind::Threads(_) => std::thread::park_timeout(remaining),
            Kind::Simulated(simulated, _) => simulated.run_for(remaining),
        }
    }

    fn join(&mut self) -> anyhow::Result<()> {
        let patience = self.now() + Nanos::from(PATIENCE);
        let tick = match &self.kind {
            Kind::Threads(_) => TICK,
            Kind::Simulated(..) => VIRTUAL_JOIN_TICK,
        };
        pass_while(self, patience, tick, |_| true);
        let stuck = self.clients.iter().filter(|client| !client.is_finished()).count();
        if stuck > 0 {
            bail!("{stuck} operations do not end: {:?}", self.stats().throttle);
        }
        let join = |client: JoinHandle<_>| client.join().unwrap_or_else(|panic| resume_unwind(panic));
        // All of them are joined before any error is returned.
        let results: Vec<anyhow::Result<()>> = self.clients.drain(..).map(join).collect();
        results.into_iter().collect()
    }

    fn now(&self) -> Nanos {
        match &self.kind {
            Kind::Threads(db) => db.now().into(),
            Kind::Simulated(simulated, _) => simulated.now().into(),
        }
    }

    fn tick(&self) -> Duration {
        match &self.kind {
            Kind::Threads(_) => TICK,
            Kind::Simulated(..) => VIRTUAL_TICK,
        }
    }

    fn cpu(&self) -> Duration {
        match &self.kind {
            Kind::Threads(_) => process_cpu().into(),
            Kind::Simulated(simulated, _) => simulated.spent(),
        }
    }

    fn counters(&self) -> Stats {
        self.stats()
    }

    fn written_bytes(counters: &Stats) -> u64 {
        counters.device.written_bytes
    }
}
