//! Many workers on one thread, the same every time.

use std::panic::resume_unwind;
use std::sync::Arc;

use super::worker::{Bounds, Worker};
use crate::lane::Devices;
use crate::task::{Crew, Home, JoinHandle};

/// Steps workers in turn until none has anything to do; only then does time pass on simulated devices, until the next answer. For tests and
/// simulations: it panics where a real worker would end the store.
pub(crate) struct Harness {
    workers: Vec<Worker>,
    crew: Crew,
    devices: Devices,
}

impl Harness {
    /// `workers` workers on the calling thread.
    pub fn new(devices: &Devices, workers: usize) -> Self {
        Self::with_crew(
            devices,
            &Crew::new((0..workers).map(|_| Arc::default()).collect()),
            Bounds::default(),
        )
    }

    /// The workers of a crew that exists already.
    pub fn with_crew(devices: &Devices, crew: &Crew, bounds: Bounds) -> Self {
        let worker = |home: &Arc<Home>| {
            Worker::new(devices, Arc::clone(home), bounds)
                .unwrap_or_else(|error| panic!("open a lane: {error}"))
        };
        Self {
            workers: crew.homes().iter().map(worker).collect(),
            crew: crew.clone(),
            devices: devices.clone(),
        }
    }

    /// The workers, for those who have background work.
    pub fn crew(&self) -> &Crew {
        &self.crew
    }

    /// Has `job` run as a task of a worker, once the harness runs.
    pub fn spawn<T: Send + 'static>(
        &self,
        worker: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.workers[worker].home().run(job)
    }

    /// Runs `job` as a task of the first worker, and all other tasks meanwhile; its result. Panics as it does, and if it can never end.
    pub fn run<T: Send + 'static>(&mut self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let handle = self.spawn(0, job);
        while !handle.is_finished() {
            let goes_on = self.turn();
            assert!(goes_on || handle.is_finished(), "all {} tasks wait for each other", self.unfinished());
        }
        handle.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs until every task has ended or waits for something that nobody is going to do, and nothing is in flight.
    pub fn run_until_idle(&mut self) {
        while self.turn() {}
    }

    /// Tasks that have not ended.
    pub fn unfinished(&self) -> usize {
        self.workers.iter().map(Worker::unfinished).sum()
    }

    /// Steps every worker once, and lets time pass if that did nothing; `false` if nothing is going to happen any more.
    pub fn turn(&mut self) -> bool {
        let mut busy = false;
        for worker in &mut self.workers {
            let step = worker.step().unwrap_or_else(|error| panic!("step a worker: {error}"));
            busy |= step.ran > 0 || step.answered > 0;
        }
        if busy || self.workers.iter().any(Worker::has_ready) {
            return true;
        }
        self.workers.iter().any(|worker| worker.in_flight() > 0) && self.pass()
    }

    /// Lets time pass until something is answered.
    fn pass(&mut self) -> bool {
        let simulations: Vec<_> =
            self.devices.all().iter().filter_map(|device| device.simulation()).collect();
        if simulations.len() < self.devices.all().len() {
            let wait =
                |worker: &mut Worker| worker.wait(None).unwrap_or_else(|error| panic!("wait: {error}"));
            let waits = self.workers.iter_mut().find(|worker| worker.in_flight() > 0);
            waits.map(wait);
            return true;
        }
        loop {
            let next = simulations.iter().filter_map(|simulation| simulation.next_event()).min();
            let Some(next) = next else { return false };
            // Both pass, so that their clocks agree.
            if simulations.iter().filter(|simulation| simulation.pass(next)).count() > 0 {
                return true;
            }
        }
    }
}
