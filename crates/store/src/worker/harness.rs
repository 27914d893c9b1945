//! A deterministic scheduler of many workers on one thread.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::Arc;

use flashgrain_device::{Device, Nanos};

use super::steps::{Bounds, Step, Worker};
use crate::Error;
use crate::io_context::Devices;
use crate::task::{Executor, JoinHandle, Schedule, yield_now};

/// Steps workers in turn until none has anything to do; only then does time pass on simulated devices, up to
/// the next completion. For tests and simulations: a failed step panics, unlike on a real worker, unless
/// `step_retries` allows for it.
pub(crate) struct Harness {
    workers: Vec<Member>,
    executor: Executor,
    devices: Devices,
    costs: CpuCosts,
    /// Consecutive failed steps that a worker may have.
    step_retries: u32,
    /// Turns within which a task that is waited for has to end.
    turns_max: u64,
    /// Turns with work for some worker.
    busy_turns: u64,
    schedule: Schedule,
    /// Devices of other stores that tasks use, after the last step.
    guests: Vec<Devices>,
}

/// After this number of turns, time passes although tasks are ready.
const BUSY_TURNS: u64 = 1024;

/// Work ends within far fewer turns; campaigns need a hundred thousand at most.
const TURNS_MAX: usize = 2_000_000;

/// A worker and its processor.
struct Member {
    worker: Worker,
    /// When its processor is done with its last step, in virtual time.
    free_at: Nanos,
    /// Processor time spent so far.
    spent: Nanos,
    /// Consecutive failed steps.
    failed: u32,
}

/// Processor time that tasks declared by calling [`spend`] during a step.
#[derive(Clone, Copy, Default)]
struct Spending {
    costs: CpuCosts,
    cpu: Nanos,
    /// Tasks that called [`spend`].
    ran: usize,
}

thread_local! {
    /// Of the present step; `None` while the step's worker has no processor costs.
    static SPENDING: Cell<Option<Spending>> = const { Cell::new(None) };
}

/// Charges the calling task `cpu` instead of [`CpuCosts::task_ns`] for its work since it was resumed, and
/// yields until its processor has spent that time. It does nothing if processors have no costs.
pub(crate) fn spend(cpu: Nanos) {
    if let Some(spending) = SPENDING.get() {
        SPENDING.set(Some(Spending { cpu: spending.cpu + cpu, ran: spending.ran + 1, ..spending }));
        yield_now();
    }
}

/// As [`spend`], for the search of a table: [`CpuCosts::search_ns`].
pub(crate) fn spend_search() {
    spend_some(|costs| costs.search_ns);
}

/// As [`spend`], for merged records of `bytes` bytes: [`CpuCosts::merged_kib_ns`].
pub(crate) fn spend_merged(bytes: u64) {
    spend_some(|costs| costs.merged_kib_ns * bytes / 1024);
}

/// Charges the present step for the nodes of a memtable that an insert has compared its key with:
/// [`CpuCosts::compared_ns`]. Unlike [`spend`] it does not yield, as an insert must not wait: the processor
/// is busy for longer from the task's next wait on.
pub(crate) fn charge_compared(nodes: u64) {
    if let Some(spending) = SPENDING.get() {
        let cpu = spending.cpu + Nanos(spending.costs.compared_ns * nodes);
        SPENDING.set(Some(Spending { cpu, ..spending }));
    }
}

/// As [`spend`], unless the costs have nothing for it.
fn spend_some(ns: impl FnOnce(CpuCosts) -> u64) {
    let cpu = SPENDING.get().map_or(0, |spending| ns(spending.costs));
    if cpu > 0 {
        spend(Nanos(cpu));
    }
}

/// Processor time that a worker's operations take, in virtual time; zeros make processors infinitely fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCosts {
    /// For each time that a task runs until it waits or ends.
    pub task_ns: u64,
    /// For each request, submission and completion together.
    pub request_ns: u64,
    /// For each table of an LSM-tree that a look-up searches a block of; not for those that a filter keeps it
    /// out of.
    pub search_ns: u64,
    /// The time for each KiB of the records that a flush or a merge reads.
    pub merged_kib_ns: u64,
    /// For each node of a memtable that a write compares its key with: some more with each doubling of the
    /// memtable.
    pub compared_ns: u64,
}

impl CpuCosts {
    /// Infinitely fast processors.
    pub const NONE: Self = Self { task_ns: 0, request_ns: 0, search_ns: 0, merged_kib_ns: 0, compared_ns: 0 };
}

/// Interval at which an idle processor with costs looks for work. Stepping every worker at every single event
/// would take long.
const GLANCE_NS: u64 = 500;

impl Member {
    /// Virtual time at which the present step begins: the end of the previous step if the worker had ready
    /// tasks then. Otherwise each short step would cost half a [`GLANCE_NS`] more.
    fn begin(&self, now: Nanos) -> Nanos {
        let goes_on = self.worker.has_ready() && now.since(self.free_at) < Nanos(GLANCE_NS);
        if goes_on { self.free_at } else { now }
    }

    /// Steps the worker and returns the processor time of the step.
    fn step(&mut self, costs: CpuCosts, retries: u32) -> (Step, Nanos) {
        let none = Spending { costs, ..Spending::default() };
        SPENDING.set((costs != CpuCosts::default()).then_some(none));
        let step = self.worker.step();
        let Spending { cpu, ran, .. } = SPENDING.take().unwrap_or_default();
        let step = match step {
            Ok(step) => {
                self.failed = 0;
                step
            }
            Err(error) => {
                self.failed += 1;
                assert!(self.failed <= retries, "step a worker: {error}");
                // A failed step does not report which tasks ran before the failure, so it counts as one that
                // did something.
                Step { ran: ran.max(1), answered: 0 }
            }
        };
        let others = step.ran.saturating_sub(ran) as u64;
        (step, cpu + Nanos(others * costs.task_ns + step.answered as u64 * costs.request_ns))
    }
}

impl Harness {
    /// `workers` workers on the calling thread.
    #[cfg(test)]
    pub fn new(devices: &Devices, workers: usize) -> Self {
        Self::with_bounds(devices, workers, Bounds::default())
            .unwrap_or_else(|error| panic!("open an I/O context: {error}"))
    }

    /// The same, each within `bounds`.
    ///
    /// # Errors
    /// As [`Worker::new`].
    pub fn with_bounds(devices: &Devices, workers: usize, bounds: Bounds) -> Result<Self, Error> {
        let executor = Executor::new((0..workers).map(|_| Arc::default()).collect());
        let worker = |index| {
            let worker = Worker::new(devices, &executor, index, bounds)?;
            Ok(Member { worker, free_at: Nanos(0), spent: Nanos(0), failed: 0 })
        };
        let workers = (0..workers).map(worker).collect::<Result<_, Error>>()?;
        let costs = CpuCosts::default();
        Ok(Self {
            workers,
            executor,
            devices: devices.clone(),
            costs,
            step_retries: 0,
            turns_max: u64::MAX,
            busy_turns: 0,
            schedule: Schedule::default(),
            guests: Vec::new(),
        })
    }

    /// From now on, the workers' operations take time on simulated devices. A step takes effect at its
    /// beginning; its worker is busy until the costs have passed.
    pub fn set_costs(&mut self, costs: CpuCosts) {
        self.costs = costs;
    }

    /// From now on, a worker that fails to step does so again, but not more often than this in a row.
    pub fn set_step_retries(&mut self, retries: u32) {
        self.step_retries = retries;
    }

    /// From now on, a task that is waited for has to end within `turns`.
    #[cfg(feature = "testing")]
    pub fn set_turns_max(&mut self, turns: u64) {
        self.turns_max = turns;
    }

    /// From now on, the order of the workers' steps, the ready task that runs next, and for how long, are
    /// drawn from `seed`; now and then time passes although tasks are ready.
    pub fn set_schedule(&mut self, seed: u64) {
        self.schedule = Schedule::seeded(seed, 0);
        for (stream, member) in (1..).zip(&mut self.workers) {
            member.worker.set_schedule(&Schedule::seeded(seed, stream));
        }
    }

    /// The workers, for background work.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The devices that the workers run over.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Has `job` run as a task of a worker, once the harness runs.
    pub fn spawn<T: Send + 'static>(
        &self,
        worker: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.workers[worker].worker.mailbox().run(job)
    }

    /// Runs `job` as a task of the first worker, and all other tasks meanwhile. Returns its result. Panics if
    /// the job does, and if it can never end.
    pub fn run<T: Send + 'static>(&mut self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let handle = self.spawn(0, job);
        self.run_until_finished(&handle);
        handle.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs all tasks until this one ends.
    ///
    /// # Panics
    /// If that never comes.
    pub fn run_until_finished<T>(&mut self, handle: &JoinHandle<T>) {
        let mut turns = 0;
        while !handle.is_finished() {
            let goes_on = self.turn();
            turns += 1;
            assert!(turns < self.turns_max, "a task does not end, and others go on for ever");
            assert!(goes_on || handle.is_finished(), "all {} tasks wait for each other", self.unfinished());
        }
    }

    /// Runs until every task has ended or waits for an event that no other task will cause, and nothing is in
    /// flight.
    ///
    /// # Panics
    /// If that never comes.
    pub fn run_until_idle(&mut self) {
        let turns = (0..TURNS_MAX).take_while(|_| self.turn()).count();
        assert!(turns < TURNS_MAX, "an unused store never comes to rest");
    }

    /// Tasks that have not ended.
    pub fn unfinished(&self) -> usize {
        self.workers.iter().map(|member| member.worker.unfinished()).sum()
    }

    /// Processor time of all workers so far.
    pub fn spent(&self) -> Nanos {
        self.workers.iter().fold(Nanos(0), |sum, member| sum + member.spent)
    }

    /// Steps every worker once whose processor is free, and lets time pass if that did nothing; `false` if
    /// nothing is going to happen any more.
    pub fn turn(&mut self) -> bool {
        let busy = self.step_all();
        if !busy {
            return self.pass();
        }
        let may_pass = self.is_long_busy() || self.schedule.is_random() && self.schedule.draw(8) == 0;
        if may_pass && self.devices.is_simulated() {
            self.pass_virtually(None);
        }
        true
    }

    /// Runs until `until`, in virtual time, whether anything happens or not.
    pub fn run_until(&mut self, until: Nanos) {
        while self.virtual_now() < until {
            if !self.step_all() || self.is_long_busy() {
                self.pass_virtually(Some(until));
            }
        }
    }

    /// Whether time is to pass although there was something to do: where processors cost nothing, tasks that
    /// only ask whether others have gone on would keep it from passing for those others.
    fn is_long_busy(&mut self) -> bool {
        self.busy_turns += 1;
        self.costs == CpuCosts::default() && self.busy_turns.is_multiple_of(BUSY_TURNS)
    }

    /// Steps every worker once whose processor is free. Returns whether that did anything.
    fn step_all(&mut self) -> bool {
        let now = self.virtual_now();
        // They must not be kept longer than by the tasks that use them.
        self.guests.clear();
        let mut order: Vec<&mut Member> = self.workers.iter_mut().collect();
        self.schedule.order(&mut order);
        let mut busy = false;
        // In half of the turns one worker is held up.
        let held_up = match self.schedule.is_random() {
            true => self.schedule.draw(2 * order.len()),
            false => usize::MAX,
        };
        for (place, member) in order.into_iter().enumerate() {
            if place == held_up {
                busy = true;
            }
            if place == held_up || member.free_at > now {
                continue;
            }
            let begin = if self.costs == CpuCosts::default() { now } else { member.begin(now) };
            let (step, cost) = member.step(self.costs, self.step_retries);
            (member.free_at, member.spent) = (begin + cost, member.spent + cost);
            busy |= step.ran > 0 || step.answered > 0 || (member.worker.has_ready() && member.free_at == now);
        }
        self.guests.extend(self.workers.iter().flat_map(|member| member.worker.guests()));
        busy
    }

    /// Those of the harness, and of other stores that its tasks use.
    fn all_devices(&self) -> impl Iterator<Item = &Arc<dyn Device>> {
        self.devices.all().iter().chain(self.guests.iter().flat_map(|guests| guests.all()))
    }

    /// Zero if no time is simulated: then processors cost nothing.
    fn virtual_now(&self) -> Nanos {
        let simulations = self.all_devices().filter_map(|device| device.simulation());
        simulations.map(|simulation| simulation.now()).max().unwrap_or(Nanos(0))
    }

    /// Lets time pass until something is answered, a timer has run down or a processor is free; `false` if
    /// there is nothing to wait for.
    fn pass(&mut self) -> bool {
        if self.devices.is_simulated() {
            return self.pass_virtually(None);
        }
        let waits = |member: &Member| member.worker.in_flight() > 0 || member.worker.next_timer().is_some();
        // The one with the next timer; those without one have something in flight.
        let first = (0..self.workers.len())
            .filter(|index| waits(&self.workers[*index]))
            .min_by_key(|index| self.workers[*index].worker.next_timer());
        let Some(first) = first else { return false };
        self.workers[first].worker.wait().unwrap_or_else(|error| panic!("wait: {error}"));
        true
    }

    /// As [`Harness::pass`], but not beyond `limit`, which is something to wait for.
    fn pass_virtually(&self, limit: Option<Nanos>) -> bool {
        let now = self.virtual_now();
        let members = || self.workers.iter();
        let in_flight = members().any(|member| member.worker.in_flight() > 0);
        let timers = members().filter_map(|member| member.worker.next_timer());
        // A timer that is over waits for its worker's processor.
        let free = members().map(|member| member.free_at);
        let until = timers.chain(free).chain(limit).filter(|at| *at > now).min();
        if until.is_none() && !in_flight {
            return false;
        }
        let simulations = || self.all_devices().filter_map(|device| device.simulation());
        loop {
            let next = simulations().filter_map(|simulation| simulation.next_event()).chain(until).min();
            let Some(next) = next else { return false };
            // All of them pass, so that their clocks agree.
            let answered = simulations().filter(|simulation| simulation.pass(next)).count() > 0;
            if answered || until == Some(next) {
                break;
            }
        }
        if self.costs != CpuCosts::default() {
            let glance = Nanos(self.virtual_now().0.next_multiple_of(GLANCE_NS));
            let until = limit.map_or(glance, |limit| limit.min(glance));
            simulations().for_each(|simulation| while simulation.pass(until) {});
        }
        true
    }
}

#[cfg(test)]
mod tests;
