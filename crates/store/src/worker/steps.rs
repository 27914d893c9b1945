//! The loop body of a worker.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread::{self, Thread};

use flashgrain_device::{ChannelWaker, Nanos};

use crate::Error;
use crate::io_context::{Devices, IoContext, enter};
use crate::task::{Executor, Mailbox, Schedule, Scheduler, UpkeepCache, WakeUp};

/// Foreground tasks that a step lets run, each until it waits. Their memory accesses overlap: there are as
/// many as hide its latency. More would delay their requests, which are submitted when all of them wait: with
/// 64, a drive that 64 look-ups kept busy did a quarter less (decision 16).
const FOREGROUND_RUNS_MIN: usize = 4;

/// A busy drive does not need new requests at once, so a step may run longer: one task for each four requests
/// in flight, if that is more than [`FOREGROUND_RUNS_MIN`].
const IN_FLIGHT_PER_TASK: usize = 4;

/// Background tasks that a step lets run at most, unless foreground tasks use up their share.
const BACKGROUND_RUNS_MAX: usize = 16;

/// Bounds on the work that a worker takes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Foreground tasks that are under way at a time; others wait their turn.
    pub tasks_max: usize,
    /// Requests in flight on each device.
    pub depth: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { tasks_max: 1024, depth: 1024 }
    }
}

/// See the module. It stays on the thread that made it.
pub(crate) struct Worker {
    /// First, so that nothing is in flight any longer when the tasks are unwound.
    context: RefCell<IoContext>,
    scheduler: Scheduler,
    executor: Executor,
    upkeep: UpkeepCache,
    /// Whether time passes only while a worker waits for it.
    simulated: bool,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// Tasks that ran.
    pub ran: usize,
    /// Requests that were answered.
    pub answered: usize,
}

/// Wakes a worker that waits for its I/O context.
struct IoWakeUp(Vec<ChannelWaker>);

/// Wakes a worker whose I/O context has nothing to wait for.
struct ThreadWakeUp(Thread);

impl WakeUp for IoWakeUp {
    fn wake_up(&self) {
        self.0.iter().for_each(ChannelWaker::wake);
    }
}

impl WakeUp for ThreadWakeUp {
    fn wake_up(&self) {
        self.0.unpark();
    }
}

impl Worker {
    /// The worker of the calling thread that is reached at the `index`-th mailbox of the executor.
    ///
    /// # Errors
    /// [`Error::Device`] if a device refuses a channel.
    pub fn new(devices: &Devices, executor: &Executor, index: usize, bounds: Bounds) -> Result<Self, Error> {
        let mut context = IoContext::open(devices, bounds.depth)?;
        let mailbox = Arc::clone(&executor.mailboxes()[index]);
        let wakers = context.wakers();
        let simulated = wakers.is_empty();
        mailbox.set_wake_up(if simulated {
            Box::new(ThreadWakeUp(thread::current()))
        } else {
            Box::new(IoWakeUp(wakers))
        });
        let scheduler = Scheduler::new(mailbox, bounds.tasks_max);
        Ok(Self {
            context: RefCell::new(context),
            scheduler,
            executor: executor.clone(),
            upkeep: UpkeepCache::default(),
            simulated,
        })
    }

    /// The mailbox through which other threads reach this worker.
    pub fn mailbox(&self) -> &Arc<Mailbox> {
        self.scheduler.mailbox()
    }

    /// Draws the next task among the ready ones by `schedule` from now on, instead of taking the oldest.
    pub fn set_schedule(&mut self, schedule: &Schedule) {
        self.scheduler.set_schedule(schedule);
    }

    /// Lets ready tasks run, does its share of the upkeep, hands requests over, and takes in their
    /// completions. It does not wait.
    ///
    /// # Errors
    /// [`Error::Device`] if a queue itself fails; nothing is lost, and another step may succeed.
    pub fn step(&mut self) -> Result<Step, Error> {
        let scheduler = &mut self.scheduler;
        // Without memory for more stacks, jobs wait until other tasks have ended.
        let share = FOREGROUND_RUNS_MIN.max(self.context.borrow().in_flight() / IN_FLIGHT_PER_TASK);
        let ran = enter(&self.context, || scheduler.run(share, BACKGROUND_RUNS_MAX)).unwrap_or(0);
        if ran > 0 {
            self.executor.upkeep(&mut self.upkeep, |upkeep| self.scheduler.enter(|| upkeep.step()));
        }
        let answered = self.context.borrow_mut().poll(|task| self.scheduler.wake(task))?;
        Ok(Step { ran, answered })
    }

    /// Whether a step would do something.
    pub fn has_ready(&self) -> bool {
        self.scheduler.has_ready()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.context.borrow().in_flight()
    }

    /// The devices of other stores that its tasks use.
    pub fn guests(&self) -> Vec<Devices> {
        self.context.borrow().guests().collect()
    }

    /// When a task is to go on that waits for a point in time.
    pub fn next_timer(&self) -> Option<Nanos> {
        self.context.borrow().next_timer()
    }

    /// Tasks that have not ended, and jobs that have not begun.
    pub fn unfinished(&self) -> usize {
        self.scheduler.alive() + self.scheduler.queued()
    }

    /// Waits for an answer or a timer. It returns at once if there is neither.
    ///
    /// # Errors
    /// As [`Worker::step`].
    pub fn wait(&mut self) -> Result<usize, Error> {
        let until = self.next_timer();
        self.wait_until(until)
    }

    /// Sleeps, unless something is to be done, until an answer, a timer or mail comes.
    ///
    /// # Errors
    /// As [`Worker::step`].
    pub fn sleep(&mut self) -> Result<(), Error> {
        if self.has_ready() || !self.mailbox().fall_asleep() {
            return Ok(());
        }
        let until = self.next_timer();
        let result = if !self.simulated {
            self.wait_until(Some(until.unwrap_or(Nanos(u64::MAX))))
        } else if until.is_some() || self.in_flight() > 0 {
            self.wait_until(until)
        } else {
            thread::park();
            Ok(0)
        };
        self.mailbox().awake();
        result.map(drop)
    }

    fn wait_until(&mut self, until: Option<Nanos>) -> Result<usize, Error> {
        Ok(self.context.borrow_mut().wait(until, |task| self.scheduler.wake(task))?)
    }
}
