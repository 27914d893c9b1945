//! State of a scheduler that running tasks reach: the queues of ready tasks, and the way back to the
//! scheduler.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use corosensei::{Coroutine, Yielder};

use super::Class;
use super::id::TaskId;
use super::mailbox::{Job, Mailbox};
use super::schedule::Schedule;
use super::stack::TaskStack;

/// Times that a task that never waits goes on at once, before its worker looks for others, for completions
/// and for upkeep.
const STEPS_MAX: u32 = 256;

/// The same where the order of tasks is drawn, to find errors that need a switch in between: some number up
/// to this.
const DRAWN_STEPS_MAX: usize = 3;

/// Why a coroutine gave way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// Its task goes on later.
    Task,
    /// Its task has ended; it can begin another.
    Ended,
}

/// Runs one job after the other: the current slot's.
pub(super) type TaskCoroutine = Coroutine<(), Pause, (), TaskStack>;
type TaskYielder = Yielder<(), Pause>;

/// State of a task's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskState {
    Free,
    /// In the queue, or running.
    Ready,
    /// As ready, and woken since it last parked: its next park returns at once.
    Woken,
    Parked,
}

/// Slot of a task. Slots and their coroutines are reused.
pub(super) struct TaskSlot {
    pub generation: Cell<u32>,
    pub state: Cell<TaskState>,
    pub class: Cell<Class>,
    /// The task's job, until the task begins.
    pub job: Cell<Option<Job>>,
    /// Address of the end of its stack.
    #[cfg(any(test, feature = "testing"))]
    pub stack_limit: usize,
    /// Borrowed while it runs.
    pub coroutine: RefCell<TaskCoroutine>,
}

/// See the module.
pub(super) struct Core {
    pub mailbox: Arc<Mailbox>,
    pub slots: RefCell<Vec<Rc<TaskSlot>>>,
    /// Tasks that are ready, by the class that they run as.
    ready: [RefCell<VecDeque<u32>>; 2],
    /// Foreground tasks that the processor fetches memory for; first come, first to go on.
    pub fetching: RefCell<VecDeque<u32>>,
    /// Jobs that tasks of this scheduler have sent.
    pub sent: RefCell<Vec<Job>>,
    /// Foreground tasks that count towards the bound.
    pub taken_on: Cell<usize>,
    pub current: Cell<Option<TaskId>>,
    /// Whether foreground tasks run, which may take turns while the processor fetches memory for the others.
    pub interleaves: Cell<bool>,
    /// How often tasks may go on at once before one gives way for that reason.
    remaining_steps: Cell<u32>,
    pub schedule: Schedule,
    yielder: Cell<*const TaskYielder>,
}

thread_local! {
    /// The scheduler whose tasks run on this thread, null outside of `Core::enter`.
    static RUNNING: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

/// Restores the core that ran before.
struct Outer(*const Core);

impl Drop for Outer {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}

impl Core {
    pub fn new(mailbox: Arc<Mailbox>) -> Self {
        Self {
            mailbox,
            slots: RefCell::default(),
            ready: Default::default(),
            fetching: RefCell::default(),
            sent: RefCell::default(),
            taken_on: Cell::new(0),
            current: Cell::new(None),
            interleaves: Cell::new(false),
            remaining_steps: Cell::new(STEPS_MAX),
            schedule: Schedule::default(),
            yielder: Cell::new(ptr::null()),
        }
    }

    /// Calls `act`, within which this is the scheduler that runs on this thread.
    pub fn enter<T>(&self, act: impl FnOnce() -> T) -> T {
        let _outer = Outer(RUNNING.replace(self));
        act()
    }

    /// Calls `act`, within which no scheduler runs on this thread.
    pub fn leave<T>(act: impl FnOnce() -> T) -> T {
        let _outer = Outer(RUNNING.replace(ptr::null()));
        act()
    }

    /// The scheduler that runs on this thread, if any.
    #[inline]
    pub fn running<T>(act: impl FnOnce(Option<&Self>) -> T) -> T {
        let running = RUNNING.get();
        // SAFETY: not null only during `enter`, which borrows the core; the code that asks runs within that
        // call, be it on a coroutine's stack. A coroutine that is left suspended inside `act` goes on within
        // a later `enter` of the same core, or is unwound while the core still lives.
        act(unsafe { running.as_ref() })
    }

    /// The scheduler whose task calls, and the task; `None` on an ordinary thread.
    #[inline]
    pub fn current<T>(act: impl FnOnce(Option<(&Self, TaskId)>) -> T) -> T {
        Self::running(|running| act(running.and_then(|core| Some((core, core.current.get()?)))))
    }

    pub fn class_of(&self, task: TaskId) -> Option<Class> {
        self.slot(task, |slot| slot.class.get())
    }

    fn slot<T>(&self, task: TaskId, act: impl FnOnce(&TaskSlot) -> T) -> Option<T> {
        let slots = self.slots.borrow();
        let slot = slots.get(task.index as usize)?;
        (slot.generation.get() == task.generation).then(|| act(slot))
    }

    pub fn ready(&self, class: Class) -> &RefCell<VecDeque<u32>> {
        &self.ready[class.runs_as() as usize]
    }

    /// Makes a task ready; one that runs or is ready already will not park the next time.
    #[inline]
    pub fn wake(&self, task: TaskId) {
        self.slot(task, |slot| match slot.state.get() {
            TaskState::Parked => {
                slot.state.set(TaskState::Ready);
                self.ready(slot.class.get()).borrow_mut().push_back(task.index);
            }
            TaskState::Ready => slot.state.set(TaskState::Woken),
            TaskState::Free | TaskState::Woken => {}
        });
    }

    /// Puts the current task aside until it is woken, or returns at once if it was woken before.
    #[inline]
    pub fn park(&self, current: TaskId) {
        let parked = self.slot(current, |slot| {
            let woken = slot.state.get() == TaskState::Woken;
            slot.state.set(if woken { TaskState::Ready } else { TaskState::Parked });
            !woken
        });
        if parked == Some(true) {
            self.switch();
        }
    }

    /// Lets the other ready tasks run before the current task.
    pub fn yield_now(&self, current: TaskId) {
        if let Some(class) = self.class_of(current) {
            self.ready(class).borrow_mut().push_back(current.index);
            self.switch();
        }
    }

    /// Lets other foreground tasks go on, if any could, while the processor fetches what the current one has
    /// prefetched.
    #[inline]
    pub fn overlap(&self, current: TaskId) {
        let others = !self.fetching.borrow().is_empty() || !self.ready(Class::Foreground).borrow().is_empty();
        if !others || !self.interleaves.get() {
            return self.go_on(current);
        }
        self.fetching.borrow_mut().push_back(current.index);
        self.switch();
    }

    /// Returns at once, but for one time in many: then the others run before.
    #[inline]
    pub fn go_on(&self, current: TaskId) {
        let remaining = self.remaining_steps.get().saturating_sub(1);
        self.remaining_steps.set(remaining);
        if remaining == 0 {
            self.remaining_steps.set(match self.schedule.is_random() {
                true => self.schedule.draw(DRAWN_STEPS_MAX) as u32 + 1,
                false => STEPS_MAX,
            });
            self.yield_now(current);
        }
    }

    /// Calls `wait`, during which the current task does not count towards the bound on tasks: those that it
    /// waits for may need its place.
    pub fn stand_aside(&self, current: TaskId, wait: impl FnOnce()) {
        let counts = self.class_of(current) == Some(Class::Foreground);
        if counts {
            self.taken_on.set(self.taken_on.get() - 1);
        }
        wait();
        if counts {
            self.taken_on.set(self.taken_on.get() + 1);
        }
    }

    #[inline]
    fn switch(&self) {
        let yielder = self.yielder.get();
        // SAFETY: the yielder belongs to the coroutine that runs now, which set it when it last began to run,
        // here or in `serve`; it lives on that coroutine's stack, which stays until the coroutine has ended.
        unsafe { &*yielder }.suspend(Pause::Task);
        self.yielder.set(yielder);
    }
}

/// Calls `work` and catches its panic. A coroutine that is dropped is unwound by a panic, too; that one is
/// passed on.
pub(super) fn catch<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    match result {
        Err(panic) if Core::running(|running| running.is_none()) => std::panic::resume_unwind(panic),
        result => result,
    }
}

/// The body of a coroutine: runs the jobs that it is given.
pub(super) fn serve(core: &Rc<Core>, yielder: &TaskYielder) {
    let next = || core.slot(core.current.get()?, |slot| slot.job.take()).flatten();
    while let Some(job) = next() {
        core.yielder.set(yielder);
        // A user's task catches its panic for the caller that joins it; no caller waits for the result of the
        // others. The worker goes on.
        if let Err(panic) = catch(job.run) {
            core.mailbox.note_panic(&*panic);
        }
        yielder.suspend(Pause::Ended);
    }
}
