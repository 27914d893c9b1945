//! Many workers on one thread, the same every time.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::Arc;

use flashgrain_device::Nanos;

use super::steps::{Bounds, Step, Worker};
use crate::lane::Devices;
use crate::task::{Crew, JoinHandle, yield_now};

/// Steps workers in turn until none has anything to do; only then does time pass on simulated devices, until the next answer. For tests and
/// simulations: it panics where a real worker would try again.
pub(crate) struct Harness {
    workers: Vec<Member>,
    crew: Crew,
    devices: Devices,
    costs: CpuCosts,
}

/// A worker and its processor.
struct Member {
    worker: Worker,
    /// When its processor is done with what it did last, in virtual time.
    free_at: Nanos,
    /// What its processor has spent so far.
    spent: Nanos,
}

/// What tasks have said to [`spend`] in a step.
#[derive(Clone, Copy, Default)]
struct Spending {
    cpu: Nanos,
    /// Tasks that ran until they said so.
    ran: usize,
}

thread_local! {
    /// Of the present step; `None` while no worker with costs steps on this thread.
    static SPENDING: Cell<Option<Spending>> = const { Cell::new(None) };
}

/// Has what the calling task did since it began to run cost so much instead of [`CpuCosts::task_ns`], and goes on when its processor has done that. Nothing where processors cost nothing.
pub(crate) fn spend(cpu: Nanos) {
    if let Some(spending) = SPENDING.get() {
        SPENDING.set(Some(Spending { cpu: spending.cpu + cpu, ran: spending.ran + 1 }));
        yield_now();
    }
}

/// What a worker's processor spends, in virtual time; a processor without costs takes no time for anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCosts {
    /// For each time that a task runs until it waits or ends.
    pub task_ns: u64,
    /// For each request, submission and completion together.
    pub request_ns: u64,
}

/// Processors that have costs look for what there is to do this often: it would take long to step many of them at every single event.
const GLANCE_NS: u64 = 500;

impl CpuCosts {
    /// A step of a worker, and what it costs.
    fn step(self, worker: &mut Worker) -> (Step, Nanos) {
        SPENDING.set((self != Self::default()).then(Spending::default));
        let step = worker.step().unwrap_or_else(|error| panic!("step a worker: {error}"));
        let Spending { cpu, ran } = SPENDING.take().unwrap_or_default();
        let others = step.ran.saturating_sub(ran) as u64;
        (step, cpu + Nanos(others * self.task_ns + step.answered as u64 * self.request_ns))
    }
}

impl Harness {
    /// `workers` workers on the calling thread.
    #[cfg(test)]
    pub fn new(devices: &Devices, workers: usize) -> Self {
        Self::with_bounds(devices, workers, Bounds::default())
    }

    /// The same, each of which takes on so much.
    pub fn with_bounds(devices: &Devices, workers: usize, bounds: Bounds) -> Self {
        let crew = Crew::new((0..workers).map(|_| Arc::default()).collect());
        let worker = |index| {
            let worker = Worker::new(devices, &crew, index, bounds);
            Member {
                worker: worker.unwrap_or_else(|error| panic!("open a lane: {error}")),
                free_at: Nanos(0),
                spent: Nanos(0),
            }
        };
        let workers = (0..workers).map(worker).collect();
        Self { workers, crew, devices: devices.clone(), costs: CpuCosts::default() }
    }

    /// From now on, what workers do takes time on simulated devices. All that a step does happens at its beginning; its worker is busy until the costs have passed.
    pub fn set_costs(&mut self, costs: CpuCosts) {
        self.costs = costs;
    }

    /// The workers, for those who have background work.
    pub fn crew(&self) -> &Crew {
        &self.crew
    }

    /// What they run over.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Has `job` run as a task of a worker, once the harness runs.
    pub fn spawn<T: Send + 'static>(
        &self,
        worker: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.workers[worker].worker.home().run(job)
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
        self.workers.iter().map(|member| member.worker.unfinished()).sum()
    }

    /// What the processors of all workers have spent so far.
    pub fn spent(&self) -> Nanos {
        self.workers.iter().fold(Nanos(0), |sum, member| sum + member.spent)
    }

    /// Steps every worker once whose processor is free, and lets time pass if that did nothing; `false` if nothing is going to happen any more.
    pub fn turn(&mut self) -> bool {
        self.step_all() || self.pass()
    }

    /// Runs until `until`, in virtual time, whether anything happens or not.
    pub fn run_until(&mut self, until: Nanos) {
        while self.virtual_now() < until {
            let _something_happened = self.step_all() || self.pass_virtually(Some(until));
        }
    }

    /// Steps every worker once whose processor is free. Whether that did anything.
    fn step_all(&mut self) -> bool {
        let now = self.virtual_now();
        let mut busy = false;
        for Member { worker, free_at, spent } in
            self.workers.iter_mut().filter(|member| member.free_at <= now)
        {
            let (step, cost) = self.costs.step(worker);
            (*free_at, *spent) = (now + cost, *spent + cost);
            busy |= step.ran > 0 || step.answered > 0 || (worker.has_ready() && *free_at == now);
        }
        busy
    }

    /// Zero if no time is simulated: then processors cost nothing.
    fn virtual_now(&self) -> Nanos {
        let simulations = self.devices.all().iter().filter_map(|device| device.simulation());
        simulations.map(|simulation| simulation.now()).max().unwrap_or(Nanos(0))
    }

    /// Lets time pass until something is answered, a timer has run down or a processor is free; `false` if there is nothing to wait for.
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
        let simulations = || self.devices.all().iter().filter_map(|device| device.simulation());
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
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use flashgrain_device::{Device, MemoryDevice};
    use flashgrain_ssdsim::{SimConfig, SimDevice};

    use super::*;
    use crate::lane::{Block, Role, now, sleep_until};
    use crate::task::{Upkeep, park, waker, yield_now};

    fn sim() -> Arc<SimDevice> {
        Arc::new(SimDevice::new(&SimConfig::named("905p").unwrap(), "sim:905p", 1).unwrap())
    }

    fn memory() -> Devices {
        Devices::new(Arc::new(MemoryDevice::new(1 << 20, 0).unwrap()), None)
    }

    fn read(devices: &Devices, role: Role, place: u64) {
        Block::new(512).unwrap().read(devices, role, place * 512).unwrap();
    }

    /// Random reads on data and log device by tasks of three workers: the times at which each was done.
    fn trace() -> Vec<(u64, u64)> {
        let devices = Devices::new(sim(), Some(sim()));
        let mut harness = Harness::new(&devices, 3);
        let log = Arc::new(Mutex::new(Vec::new()));
        for task in 0..30 {
            let (devices, log) = (devices.clone(), Arc::clone(&log));
            drop(harness.spawn(task % 3, move || {
                for round in 0..20 {
                    let role = if (task + round) % 4 == 0 { Role::Log } else { Role::Data };
                    read(&devices, role, (task * 7919 + round * 104_729) as u64 % 10_000);
                    log.lock().unwrap().push((task as u64, now(&devices).0));
                }
            }));
        }
        harness.run_until_idle();
        assert_eq!(harness.unfinished(), 0);
        let log = log.lock().unwrap().clone();
        assert_eq!(log.len(), 600);
        log
    }

    #[test]
    fn it_runs_the_same_every_time_on_one_clock() {
        let first = trace();
        assert!(first.is_sorted_by_key(|(_, time)| *time), "time runs backwards between workers");
        assert_eq!(first, trace());
    }

    #[test]
    fn every_completion_is_seen_at_its_own_time_by_whichever_worker() {
        // The second worker's read is the first on the drive; the first worker's, of a megabyte, takes far longer.
        let devices = Devices::new(sim(), None);
        let mut harness = Harness::new(&devices, 2);
        let times = Arc::new(Mutex::new([0; 2]));
        for (worker, length) in [(0, 1 << 20), (1, 4096)] {
            let (devices, times) = (devices.clone(), Arc::clone(&times));
            drop(harness.spawn(worker, move || {
                (worker..1).for_each(|_| yield_now());
                let place = worker as u64 * (64 << 20);
                Block::new(length).unwrap().read(&devices, Role::Data, place).unwrap();
                times.lock().unwrap()[worker] = now(&devices).0;
            }));
        }
        harness.run_until_idle();
        let [large, small] = *times.lock().unwrap();
        assert!(small > 0 && small * 3 < large, "small {small} ns, large {large} ns");
    }

    #[test]
    fn timers_let_virtual_time_pass_exactly() {
        let devices = Devices::new(sim(), None);
        let mut harness = Harness::new(&devices, 2);
        let other = {
            let devices = devices.clone();
            harness.spawn(1, move || {
                sleep_until(&devices, Nanos(7_000)).unwrap();
                now(&devices).0
            })
        };
        let slept = {
            let devices = devices.clone();
            harness.run(move || {
                sleep_until(&devices, Nanos(5_000_000)).unwrap();
                now(&devices).0
            })
        };
        assert_eq!((other.join().unwrap(), slept), (7_000, 5_000_000));
    }

    #[test]
    fn a_panic_is_its_joiners_and_the_worker_goes_on() {
        let mut harness = Harness::new(&memory(), 1);
        let crew = harness.crew().clone();
        let text = harness.run(move || {
            let unlucky = crew.run(|| panic!("on purpose"));
            *unlucky.join().unwrap_err().downcast::<&str>().unwrap()
        });
        assert_eq!(text, "on purpose");
        assert_eq!(harness.run(|| 5), 5);
    }

    #[test]
    fn few_tasks_are_under_way_at_a_time_and_those_who_join_make_room() {
        let devices = memory();
        let mut harness = Harness::with_bounds(&devices, 1, Bounds { tasks_max: 3, depth: 8 });
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..20 {
            let (crew, running, most) = (harness.crew().clone(), Arc::clone(&running), Arc::clone(&most));
            drop(harness.spawn(0, move || {
                most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                yield_now();
                running.fetch_sub(1, Ordering::Relaxed);
                // All of them wait for tasks that have not begun: they would never begin if the waiting kept their places.
                crew.run(yield_now).join().unwrap();
            }));
        }
        harness.run_until_idle();
        assert_eq!((harness.unfinished(), most.load(Ordering::Relaxed)), (0, 3));
    }

    #[test]
    fn background_work_begins_beside_any_number_of_users_tasks() {
        let mut harness = Harness::with_bounds(&memory(), 1, Bounds { tasks_max: 2, depth: 8 });
        let crew = harness.crew().clone();
        for _ in 0..10 {
            let crew = crew.clone();
            drop(harness.spawn(0, move || {
                let done = Arc::new(AtomicUsize::new(0));
                let (seen, waker) = (Arc::clone(&done), waker());
                crew.spawn(move || {
                    done.store(1, Ordering::Relaxed);
                    waker.wake();
                });
                while seen.load(Ordering::Relaxed) == 0 {
                    park();
                }
            }));
        }
        harness.run_until_idle();
        assert_eq!(harness.unfinished(), 0);
    }

    #[test]
    fn neither_class_starves_the_other() {
        let mut harness = Harness::new(&memory(), 1);
        let crew = harness.crew().clone();
        let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let end = Arc::new(AtomicUsize::new(0));
        for task in 0..400 {
            let class = task % 2;
            let (counts, end) = (Arc::clone(&counts), Arc::clone(&end));
            let endless = move || {
                while end.load(Ordering::Relaxed) == 0 {
                    counts[class].fetch_add(1, Ordering::Relaxed);
                    yield_now();
                }
            };
            if class == 0 {
                drop(crew.run(endless));
            } else {
                crew.spawn(endless);
            }
        }
        for _ in 0..1000 {
            harness.turn();
        }
        end.store(1, Ordering::Relaxed);
        harness.run_until_idle();
        let [foreground, background] = [0, 1].map(|class: usize| counts[class].load(Ordering::Relaxed));
        assert!(foreground >= 60_000 && background >= 15_000, "{foreground} {background}");
    }

    struct Counter(AtomicUsize);

    impl Upkeep for Counter {
        fn step(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn upkeep_is_done_between_tasks_as_long_as_it_lives() {
        let mut harness = Harness::new(&memory(), 2);
        let (first, second) = (Arc::new(Counter(0.into())), Arc::new(Counter(0.into())));
        let mut counts = |upkeep: Option<&Arc<Counter>>| {
            if let Some(upkeep) = upkeep {
                harness.crew().set_upkeep(Arc::downgrade(upkeep) as _);
            }
            harness.run(|| (0..5).for_each(|_| yield_now()));
            [&first, &second].map(|upkeep| upkeep.0.load(Ordering::Relaxed))
        };
        assert_eq!(counts(Some(&first)), [6, 0]);
        assert_eq!(counts(Some(&second)), [6, 6]);
        assert_eq!(counts(None), [6, 12]);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 1));
    }

    #[test]
    fn processors_take_their_time_side_by_side() {
        for workers in [1, 4] {
            let devices = Devices::new(sim(), None);
            let mut harness = Harness::new(&devices, workers);
            harness.set_costs(CpuCosts { task_ns: 1_000, request_ns: 0 });
            for task in 0..400 {
                drop(harness.spawn(task % workers, || (0..9).for_each(|_| yield_now())));
            }
            harness.run_until_idle();
            // 400 tasks run ten times each.
            assert_eq!(now(&devices), Nanos(4_000_000 / workers as u64));
        }
    }

    #[test]
    fn requests_cost_too_and_more_workers_go_further() {
        let span = |workers: usize| {
            let devices = Devices::new(sim(), None);
            let mut harness = Harness::new(&devices, workers);
            harness.set_costs(CpuCosts { task_ns: 5_000, request_ns: 20_000 });
            for task in 0..64 {
                let devices = devices.clone();
                drop(harness.spawn(task % workers, move || {
                    (0..20).for_each(|round| read(&devices, Role::Data, task as u64 * 20 + round));
                }));
            }
            harness.run_until_idle();
            assert_eq!(harness.unfinished(), 0);
            now(&devices).0
        };
        let (one, four) = (span(1), span(4));
        // 1280 requests, each with a run of its task before it, and a last run of each task.
        let cpu = 1280 * 25_000 + 64 * 5_000;
        assert!((cpu..cpu + cpu / 20).contains(&one), "{one} ns for {cpu} ns of work");
        assert!((cpu / 4..cpu / 3).contains(&four), "{four} ns with four");
    }

    #[test]
    fn a_full_queue_holds_tasks_up_and_loses_none() {
        let device = sim();
        let devices = Devices::new(Arc::clone(&device) as Arc<dyn Device>, None);
        let mut harness = Harness::with_bounds(&devices, 1, Bounds { tasks_max: 1000, depth: 4 });
        for task in 0..200 {
            let devices = devices.clone();
            drop(harness.spawn(0, move || {
                for round in 0..5 {
                    read(&devices, Role::Data, task * 5 + round);
                }
            }));
        }
        harness.run_until_idle();
        assert_eq!(harness.unfinished(), 0);
        assert_eq!(device.statistics().counters.reads, 1000);
    }
}
