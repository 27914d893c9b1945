//! The tasks of one worker: which are ready, and the switch to them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::home::{Home, Job, Mail};
use super::stacks::Stacks;

/// A task of a scheduler: its place, and which of the tasks that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskId {
    index: u32,
    generation: u32,
}

type TaskYielder = Yielder<(), ()>;
type TaskCoroutine = Coroutine<(), (), (), corosensei::stack::DefaultStack>;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// In the queue, or running.
    Ready,
    /// As ready, and woken since: its next park returns at once.
    Woken,
    Parked,
}

struct Slot {
    generation: u32,
    state: State,
    coroutine: Option<TaskCoroutine>,
}

/// What tasks reach while they run.
pub(super) struct Core {
    pub home: Arc<Home>,
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u32>>,
    ready: RefCell<VecDeque<u32>>,
    current: Cell<Option<TaskId>>,
    yielder: Cell<*const TaskYielder>,
}

thread_local! {
    /// The scheduler whose task runs on this thread.
    static RUNNING: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// Tasks of one worker. Used from one thread at a time; several may take turns on one thread.
pub(crate) struct Scheduler {
    core: Rc<Core>,
    stacks: Stacks,
    mail: Mail,
    alive: usize,
}

impl Scheduler {
    pub fn new(home: Arc<Home>) -> Self {
        let core = Core {
            home,
            slots: RefCell::default(),
            free: RefCell::default(),
            ready: RefCell::default(),
            current: Cell::new(None),
            yielder: Cell::new(std::ptr::null()),
        };
        Self { core: Rc::new(core), stacks: Stacks::default(), mail: Mail::default(), alive: 0 }
    }

    /// Tasks that have not ended.
    pub fn alive(&self) -> usize {
        self.alive
    }

    /// Whether a task could run now.
    pub fn has_ready(&self) -> bool {
        !self.core.ready.borrow().is_empty() || self.core.home.has_mail()
    }

    /// Takes in what other threads sent and runs the tasks that are ready now, each once, at most `limit`. Returns how many ran.
    ///
    /// # Errors
    /// The system's, if there is no memory for a stack; the jobs that found none are kept for the next call.
    pub fn run(&mut self, limit: usize) -> std::io::Result<usize> {
        let begun = self.take_mail();
        let count = self.core.ready.borrow().len().min(limit);
        let outer = RUNNING.replace(Some(Rc::clone(&self.core)));
        for _ in 0..count {
            let next = self.core.ready.borrow_mut().pop_front();
            let Some(index) = next else { break };
            self.resume(index);
        }
        RUNNING.replace(outer);
        begun.map(|()| count)
    }

    fn take_mail(&mut self) -> std::io::Result<()> {
        self.core.home.collect(&mut self.mail);
        for task in self.mail.woken.drain(..) {
            self.core.wake(task);
        }
        while let Some(job) = self.mail.jobs.pop() {
            match self.stacks.take() {
                Ok(stack) => self.begin(job, stack),
                Err(error) => {
                    self.mail.jobs.push(job);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, job: Job, stack: corosensei::stack::DefaultStack) {
        let core = Rc::clone(&self.core);
        let coroutine = Coroutine::with_stack(stack, move |yielder: &TaskYielder, ()| {
            core.yielder.set(yielder);
            job();
        });
        let mut slots = self.core.slots.borrow_mut();
        let index = self.core.free.borrow_mut().pop().unwrap_or_else(|| {
            slots.push(Slot { generation: 0, state: State::Free, coroutine: None });
            (slots.len() - 1) as u32
        });
        let slot = &mut slots[index as usize];
        (slot.state, slot.coroutine) = (State::Ready, Some(coroutine));
        self.core.ready.borrow_mut().push_back(index);
        self.alive += 1;
    }

    fn resume(&mut self, index: u32) {
        let (id, coroutine) = {
            let mut slots = self.core.slots.borrow_mut();
            let slot = &mut slots[index as usize];
            (TaskId { index, generation: slot.generation }, slot.coroutine.take())
        };
        let Some(mut coroutine) = coroutine else { return };
        self.core.current.set(Some(id));
        let result = coroutine.resume(());
        self.core.current.set(None);
        let mut slots = self.core.slots.borrow_mut();
        let slot = &mut slots[index as usize];
        match result {
            CoroutineResult::Yield(()) => slot.coroutine = Some(coroutine),
            CoroutineResult::Return(()) => {
                slot.generation = slot.generation.wrapping_add(1);
                slot.state = State::Free;
                self.core.free.borrow_mut().push(index);
                self.stacks.give_back(coroutine.into_stack());
                self.alive -= 1;
            }
        }
    }
}

impl Drop for Scheduler {
    /// Unfinished tasks are unwound: what they own is dropped on their own stacks.
    fn drop(&mut self) {
        let unfinished: Vec<_> =
            self.core.slots.borrow_mut().iter_mut().filter_map(|slot| slot.coroutine.take()).collect();
        drop(unfinished);
    }
}

impl Core {
    /// The scheduler whose task calls, and the task.
    pub fn current() -> Option<(Rc<Self>, TaskId)> {
        RUNNING.with_borrow(|running| {
            let core = running.as_ref()?;
            Some((Rc::clone(core), core.current.get()?))
        })
    }

    /// Whether the calling thread is running tasks of `home`.
    pub fn is_at(home: &Arc<Home>) -> Option<Rc<Self>> {
        RUNNING.with_borrow(|running| running.as_ref().filter(|core| Arc::ptr_eq(&core.home, home)).cloned())
    }

    /// Makes a task ready; one that runs or is ready already will not park the next time.
    pub fn wake(&self, task: TaskId) {
        let mut slots = self.slots.borrow_mut();
        let Some(slot) = slots.get_mut(task.index as usize) else { return };
        if slot.generation != task.generation {
            return;
        }
        match slot.state {
            State::Parked => {
                slot.state = State::Ready;
                self.ready.borrow_mut().push_back(task.index);
            }
            State::Ready => slot.state = State::Woken,
            State::Free | State::Woken => {}
        }
    }

    /// Puts the current task `id` aside until it is woken, or returns at once if it was woken before.
    pub fn park(&self, id: TaskId) {
        {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[id.index as usize];
            if slot.state == State::Woken {
                slot.state = State::Ready;
                return;
            }
            slot.state = State::Parked;
        }
        self.switch();
    }

    /// Lets the other ready tasks run before the current task `id`.
    pub fn yield_now(&self, id: TaskId) {
        self.ready.borrow_mut().push_back(id.index);
        self.switch();
    }

    fn switch(&self) {
        let yielder = self.yielder.get();
        // SAFETY: the yielder belongs to the coroutine that runs now, which set it when it last began to run, here or in `begin`; it lives on that
        // coroutine's stack, which stays until the coroutine has ended.
        unsafe { &*yielder }.suspend(());
        self.yielder.set(yielder);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::{Bell, Home, park, waker, yield_now};
    use super::*;

    struct Silent;
    impl Bell for Silent {
        fn ring(&self) {}
    }

    fn scheduler() -> (Arc<Home>, Scheduler) {
        let home = Arc::new(Home::new(Box::new(Silent)));
        let scheduler = Scheduler::new(Arc::clone(&home));
        (home, scheduler)
    }

    #[test]
    fn tasks_take_turns_where_they_yield() {
        let (home, mut scheduler) = scheduler();
        let log = Arc::new(Mutex::new(String::new()));
        for name in ['a', 'b'] {
            let log = Arc::clone(&log);
            home.spawn(move || {
                for _ in 0..3 {
                    log.lock().unwrap().push(name);
                    yield_now();
                }
            });
        }
        while scheduler.alive() > 0 || scheduler.has_ready() {
            scheduler.run(usize::MAX).unwrap();
        }
        let log = log.lock().unwrap();
        assert!(*log == "ababab" || *log == "bababa", "{log}");
    }

    #[test]
    fn a_wake_before_the_park_is_not_lost_and_one_after_the_end_harms_nobody() {
        let (home, mut scheduler) = scheduler();
        let mailbox = Arc::new(Mutex::new(None));
        let sender = Arc::clone(&mailbox);
        home.spawn(move || {
            let own = waker();
            *sender.lock().unwrap() = Some(own.clone());
            own.wake();
            park();
            // This one waits for the other thread.
            park();
        });
        scheduler.run(usize::MAX).unwrap();
        assert_eq!(scheduler.alive(), 1);
        let waker = mailbox.lock().unwrap().clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
        });
        assert!(scheduler.has_ready());
        scheduler.run(usize::MAX).unwrap();
        assert_eq!(scheduler.alive(), 0);
        // Its place may belong to another task by now.
        home.spawn(|| {
            park();
        });
        scheduler.run(usize::MAX).unwrap();
        waker.wake();
        scheduler.run(usize::MAX).unwrap();
        assert_eq!(scheduler.alive(), 1);
    }

    #[test]
    fn thousands_of_tasks_live_at_once_and_unfinished_ones_are_dropped() {
        let (home, mut scheduler) = scheduler();
        let alive = Arc::new(());
        for _ in 0..5000 {
            let alive = Arc::clone(&alive);
            home.spawn(move || {
                let _kept = alive;
                park();
            });
        }
        scheduler.run(usize::MAX).unwrap();
        assert_eq!((scheduler.alive(), Arc::strong_count(&alive)), (5000, 5001));
        drop(scheduler);
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
