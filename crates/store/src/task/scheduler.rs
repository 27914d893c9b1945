//! The tasks of one worker: which begin, which go on, and for how long.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use corosensei::CoroutineResult;
#[cfg(any(test, feature = "testing"))]
use corosensei::stack::Stack as _;

use super::Class;
use super::core::{Core, Pause, TaskCoroutine, TaskSlot, TaskState, catch, serve};
use super::id::TaskId;
use super::mailbox::{Job, Mail, Mailbox};
use super::schedule::Schedule;
use super::stack::TaskStack;

/// Times that a round goes on with a task that the processor has fetched memory for.
const FETCHING_TURNS: usize = 512;

/// The most tasks of a class that run in a round, where their order is drawn: the fewer, the more finely
/// workers interleave.
const DRAWN_ROUND_MAX: usize = 6;

/// Tasks of one worker. Used from one thread at a time; several may take turns on one thread.
pub(crate) struct Scheduler {
    core: Rc<Core>,
    mail: Mail,
    /// Jobs that have not begun, by the class that they begin as.
    queued: [VecDeque<Job>; 2],
    free: Vec<u32>,
    alive: usize,
    /// The most foreground tasks at a time.
    foreground_max: usize,
}

impl Scheduler {
    /// A scheduler that takes on at most `foreground_max` foreground tasks at a time; the others wait.
    pub fn new(mailbox: Arc<Mailbox>, foreground_max: usize) -> Self {
        Self {
            core: Rc::new(Core::new(mailbox)),
            mail: Mail::default(),
            queued: Default::default(),
            free: Vec::new(),
            alive: 0,
            foreground_max,
        }
    }

    /// The mailbox that other threads reach this scheduler by.
    pub fn mailbox(&self) -> &Arc<Mailbox> {
        &self.core.mailbox
    }

    /// From now on draws the next task among the ready ones by `schedule`, instead of taking the oldest.
    pub fn set_schedule(&mut self, schedule: &Schedule) {
        self.core.schedule.set(schedule);
    }

    /// Tasks that have begun and not ended.
    pub fn alive(&self) -> usize {
        self.alive
    }

    /// Jobs that wait for their turn to begin.
    pub fn queued(&self) -> usize {
        self.queued.iter().map(VecDeque::len).sum()
    }

    /// Whether a task could run now.
    pub fn has_ready(&self) -> bool {
        let ready = |class| !self.core.ready(class).borrow().is_empty();
        let sent = !self.core.sent.borrow().is_empty();
        let may_begin = !self.queued[Class::Background as usize].is_empty()
            || (!self.queued[Class::Foreground as usize].is_empty() && self.may_take_on());
        ready(Class::Foreground)
            || ready(Class::Background)
            || may_begin
            || sent
            || self.core.mailbox.has_mail()
    }

    /// Makes a task ready.
    #[inline]
    pub fn wake(&self, task: TaskId) {
        self.core.wake(task);
    }

    /// Calls `act` outside of any task; background work that it starts is this worker's. Its panic is
    /// reported like that of a background task.
    pub fn enter(&self, act: impl FnOnce()) {
        if let Err(panic) = self.core.enter(|| catch(act)) {
            self.core.mailbox.note_panic(&*panic);
        }
    }

    /// Takes in the mailbox's jobs and wake-ups, and runs tasks that are ready now: at most `foreground` and
    /// `background` of these classes, each until it waits or gives way; those that overlap take several
    /// turns. While foreground tasks use up their share, background tasks get a quarter of it. It returns how
    /// many ran.
    ///
    /// # Errors
    /// The system's, if there is no memory for a stack; the jobs that found none are kept for a later call.
    /// All others have run.
    pub fn run(&mut self, foreground: usize, background: usize) -> std::io::Result<usize> {
        let begun = self.begin_jobs();
        let core = Rc::clone(&self.core);
        let is_full = core.ready(Class::Foreground).borrow().len() >= foreground;
        let background = if is_full { foreground.div_ceil(4) } else { background };
        let share = |most: usize| match core.schedule.is_random() {
            true => most.min(core.schedule.draw(DRAWN_ROUND_MAX) + 1),
            false => most,
        };
        let (background, foreground) = (share(background), share(foreground));
        let count = core.enter(|| self.run_background(background) + self.run_foreground(foreground));
        begun.map(|()| count)
    }

    fn run_background(&mut self, limit: usize) -> usize {
        let count = self.core.ready(Class::Background).borrow().len().min(limit);
        for _ in 0..count {
            let next = self.core.schedule.take_from(&mut self.core.ready(Class::Background).borrow_mut());
            let Some(index) = next else { break };
            self.resume(index);
        }
        count
    }

    /// Runs ready tasks, a few of them in turns while the processor fetches memory for the others
    /// (interleaved execution: Psaropoulos et al., VLDB 2018).
    fn run_foreground(&mut self, limit: usize) -> usize {
        let core = Rc::clone(&self.core);
        let mut ready = core.ready(Class::Foreground).borrow().len().min(limit);
        let (mut count, mut turns) = (0, FETCHING_TURNS);
        core.interleaves.set(true);
        loop {
            let fetched_first = turns > 0 && !core.fetching.borrow().is_empty() && core.schedule.draw(2) > 0;
            let next = if ready > 0 && !fetched_first {
                ready -= 1;
                count += 1;
                core.schedule.take_from(&mut core.ready(Class::Foreground).borrow_mut())
            } else if turns > 0 {
                turns -= 1;
                core.schedule.take_from(&mut core.fetching.borrow_mut())
            } else {
                None
            };
            let Some(index) = next else { break };
            self.resume(index);
        }
        core.interleaves.set(false);
        // The next round begins with others.
        core.ready(Class::Foreground).borrow_mut().extend(core.fetching.borrow_mut().drain(..));
        count
    }

    fn may_take_on(&self) -> bool {
        self.core.taken_on.get() < self.foreground_max
    }

    fn begin_jobs(&mut self) -> std::io::Result<()> {
        self.core.mailbox.collect(&mut self.mail);
        for task in self.mail.woken.drain(..) {
            self.core.wake(task);
        }
        for job in self.mail.jobs.drain(..).chain(self.core.sent.borrow_mut().drain(..)) {
            self.queued[job.class.begins_as() as usize].push_back(job);
        }
        while let Some(job) = self.queued[Class::Background as usize].pop_front() {
            self.begin(job)?;
        }
        while self.may_take_on()
            && let Some(job) = self.queued[Class::Foreground as usize].pop_front()
        {
            self.begin(job)?;
            self.core.taken_on.set(self.core.taken_on.get() + 1);
        }
        Ok(())
    }

    fn begin(&mut self, job: Job) -> std::io::Result<()> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => match self.new_slot() {
                Ok(index) => index,
                Err(error) => {
                    self.queued[job.class.begins_as() as usize].push_front(job);
                    return Err(error);
                }
            },
        };
        let slot = &self.core.slots.borrow()[index as usize];
        slot.state.set(TaskState::Ready);
        slot.class.set(job.class);
        self.core.ready(job.class).borrow_mut().push_back(index);
        slot.job.set(Some(job));
        self.alive += 1;
        Ok(())
    }

    /// A place with a stack. Both are used again when their task has ended.
    fn new_slot(&mut self) -> std::io::Result<u32> {
        let core = Rc::clone(&self.core);
        let stack = TaskStack::new(core.slots.borrow().len())?;
        #[cfg(any(test, feature = "testing"))]
        let stack_limit = stack.limit().get();
        let coroutine = TaskCoroutine::with_stack(stack, move |yielder, ()| serve(&core, yielder));
        let mut slots = self.core.slots.borrow_mut();
        slots.push(Rc::new(TaskSlot {
            generation: Cell::new(0),
            state: Cell::new(TaskState::Free),
            class: Cell::new(Class::Foreground),
            job: Cell::new(None),
            #[cfg(any(test, feature = "testing"))]
            stack_limit,
            coroutine: RefCell::new(coroutine),
        }));
        Ok((slots.len() - 1) as u32)
    }

    #[inline]
    fn resume(&mut self, index: u32) {
        let slot = Rc::clone(&self.core.slots.borrow()[index as usize]);
        self.core.current.set(Some(TaskId { index, generation: slot.generation.get() }));
        #[cfg(any(test, feature = "testing"))]
        super::progress::begin(slot.stack_limit);
        let result = slot.coroutine.borrow_mut().resume(());
        #[cfg(any(test, feature = "testing"))]
        super::progress::begin(0);
        self.core.current.set(None);
        if !matches!(result, CoroutineResult::Yield(Pause::Task)) {
            slot.generation.set(slot.generation.get().wrapping_add(1));
            slot.state.set(TaskState::Free);
            if slot.class.get() == Class::Foreground {
                self.core.taken_on.set(self.core.taken_on.get() - 1);
            }
            self.free.push(index);
            self.alive -= 1;
        }
    }
}

impl Drop for Scheduler {
    /// Unfinished tasks are unwound: their values are dropped on their own stacks. Their memory must not be
    /// in use by a device any longer. Jobs that have not begun are given up.
    fn drop(&mut self) {
        let slots = self.core.slots.take();
        Core::leave(|| {
            drop(slots);
            self.core.mailbox.close();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::{Executor, go_on, overlap, park, waker, yield_now};
    use super::*;

    fn scheduler() -> (Arc<Mailbox>, Scheduler) {
        let mailbox = Arc::new(Mailbox::default());
        let scheduler = Scheduler::new(Arc::clone(&mailbox), usize::MAX);
        (mailbox, scheduler)
    }

    impl Scheduler {
        fn run_all(&mut self) {
            self.run(usize::MAX, usize::MAX).unwrap();
        }
    }

    #[test]
    fn tasks_take_turns_where_they_yield() {
        let (mailbox, mut scheduler) = scheduler();
        let log = Arc::new(Mutex::new(String::new()));
        for name in ['a', 'b'] {
            let log = Arc::clone(&log);
            mailbox.spawn(Class::Foreground, move || {
                for _ in 0..3 {
                    log.lock().unwrap().push(name);
                    yield_now();
                }
            });
        }
        while scheduler.alive() > 0 || scheduler.has_ready() {
            scheduler.run_all();
        }
        assert_eq!(*log.lock().unwrap(), "ababab");
    }

    #[test]
    fn tasks_overlap_in_small_groups_and_all_get_their_turn() {
        const GROUP: usize = 8;
        let (mailbox, mut scheduler) = scheduler();
        let log = Arc::new(Mutex::new(Vec::new()));
        for number in 0..20 {
            let log = Arc::clone(&log);
            mailbox.spawn(Class::Foreground, move || {
                for _ in 0..FETCHING_TURNS {
                    log.lock().unwrap().push(number);
                    overlap();
                }
            });
        }
        scheduler.run(GROUP, GROUP).unwrap();
        let first = std::mem::take(&mut *log.lock().unwrap());
        let group: Vec<usize> = (0..GROUP).collect();
        assert_eq!(first[..2 * GROUP], [group.clone(), group].concat());
        scheduler.run(GROUP, GROUP).unwrap();
        assert_eq!(log.lock().unwrap()[..3], [8, 9, 10], "the next round begins with others");
        while scheduler.alive() > 0 {
            scheduler.run_all();
        }
        assert_eq!(first.len() + log.lock().unwrap().len(), 20 * FETCHING_TURNS);
    }

    #[test]
    fn what_a_task_sends_out_runs_as_it_does() {
        for (class, subtask_runs) in [(Class::Foreground, true), (Class::Background, false)] {
            let (mailbox, mut scheduler) = scheduler();
            let executor = Executor::new(vec![Arc::clone(&mailbox)]);
            let done = Arc::new(Mutex::new(false));
            let flag = Arc::clone(&done);
            mailbox.spawn(class, move || executor.send_out(move || *flag.lock().unwrap() = true));
            scheduler.run(8, 1).unwrap();
            scheduler.run(8, 0).unwrap();
            assert_eq!(*done.lock().unwrap(), subtask_runs, "{class:?}");
            scheduler.run(8, 1).unwrap();
            assert!(*done.lock().unwrap(), "{class:?}");
        }
    }

    #[test]
    fn a_task_that_never_waits_gives_way_now_and_then() {
        for give_way in [overlap, go_on] {
            let (mailbox, mut scheduler) = scheduler();
            let stop = Arc::new(Mutex::new(false));
            let flag = Arc::clone(&stop);
            mailbox.spawn(Class::Foreground, move || {
                while !*flag.lock().unwrap() {
                    give_way();
                }
            });
            scheduler.run_all();
            mailbox.spawn(Class::Foreground, move || *stop.lock().unwrap() = true);
            while scheduler.alive() > 0 {
                scheduler.run_all();
            }
        }
    }

    #[test]
    fn a_wake_before_the_park_is_not_lost_and_one_after_the_end_harms_nobody() {
        let (mailbox, mut scheduler) = scheduler();
        let handed_over = Arc::new(Mutex::new(None));
        let sender = Arc::clone(&handed_over);
        mailbox.spawn(Class::Foreground, move || {
            let own = waker();
            *sender.lock().unwrap() = Some(own.clone());
            own.wake();
            park();
            // This one waits for the other thread.
            park();
        });
        scheduler.run_all();
        assert_eq!(scheduler.alive(), 1);
        let waker = handed_over.lock().unwrap().clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
        });
        assert!(scheduler.has_ready());
        scheduler.run_all();
        assert_eq!(scheduler.alive(), 0);
        // Its place may belong to another task by now.
        mailbox.spawn(Class::Foreground, || {
            park();
        });
        scheduler.run_all();
        waker.wake();
        scheduler.run_all();
        assert_eq!(scheduler.alive(), 1);
    }

    #[test]
    fn thousands_of_tasks_live_at_once_and_unfinished_ones_are_dropped() {
        let (mailbox, mut scheduler) = scheduler();
        let alive = Arc::new(());
        for _ in 0..5000 {
            let alive = Arc::clone(&alive);
            mailbox.spawn(Class::Foreground, move || {
                let _kept = alive;
                park();
            });
        }
        scheduler.run_all();
        assert_eq!((scheduler.alive(), Arc::strong_count(&alive)), (5000, 5001));
        drop(scheduler);
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    /// A store could not be opened again: jobs sent to a worker in its last moments kept the store's files.
    #[test]
    fn regression_what_has_not_begun_when_the_worker_ends_is_given_up() {
        let (mailbox, mut scheduler) = scheduler();
        let alive = Arc::new(());
        let job = |alive: Arc<()>, mailbox: Arc<Mailbox>| {
            move || {
                let _kept = (&alive, &mailbox);
                park();
            }
        };
        // It sends another one when it is unwound.
        struct Sends(Option<Job>, Arc<Mailbox>);
        impl Drop for Sends {
            fn drop(&mut self) {
                self.1.send(self.0.take().unwrap());
            }
        }
        let last =
            Job { run: Box::new(job(Arc::clone(&alive), Arc::clone(&mailbox))), class: Class::Background };
        let sends = Sends(Some(last), Arc::clone(&mailbox));
        mailbox.spawn(Class::Foreground, move || {
            let _sends = sends;
            park();
        });
        scheduler.run_all();
        let before = mailbox.run(job(Arc::clone(&alive), Arc::clone(&mailbox)));
        drop(scheduler);
        let after = mailbox.run(job(Arc::clone(&alive), Arc::clone(&mailbox)));
        assert_eq!(Arc::strong_count(&alive), 1);
        assert!(before.join().is_err() && after.join().is_err());
    }
}
