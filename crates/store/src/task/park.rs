//! Waiting and waking, for tasks and ordinary threads alike.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread::{self, Thread};

use super::core::Core;
use super::id::TaskId;
use super::mailbox::Mailbox;
use super::unwaiting::Unwaiting;

/// Wakes the task or thread that made it from [`park`].
#[derive(Clone)]
pub(crate) struct Waker(Sleeper);

#[derive(Clone)]
enum Sleeper {
    Task { mailbox: Arc<Mailbox>, id: TaskId },
    Thread(Arc<Parked>),
}

/// An ordinary thread that may park.
struct Parked {
    thread: Thread,
    /// Whether it was woken since it last parked.
    woken: AtomicBool,
}

crate::sync::per_thread! {
    static OWN: Arc<Parked> = Arc::new(Parked { thread: thread::current(), woken: AtomicBool::new(false) });
}

/// Whether the caller is a task.
pub(crate) fn in_task() -> bool {
    current_task().is_some()
}

/// The task that calls, if one does.
#[inline]
pub(crate) fn current_task() -> Option<TaskId> {
    Core::current(|current| Some(current?.1))
}

/// Tells the tasks of this thread apart; `None` if the caller is none.
#[cfg(feature = "testing")]
pub(crate) fn task_key() -> Option<(usize, TaskId)> {
    Core::current(|current| current.map(|(core, id)| (Arc::as_ptr(&core.mailbox) as usize, id)))
}

/// A handle that wakes the caller from [`park`].
pub(crate) fn waker() -> Waker {
    Waker(Core::current(|current| match current {
        Some((core, id)) => Sleeper::Task { mailbox: Arc::clone(&core.mailbox), id },
        None => Sleeper::Thread(OWN.with(Arc::clone)),
    }))
}

/// Waits until a [`waker`] of the caller is used; returns at once if one was used since the last park.
/// Spurious wake-ups happen, so the caller checks its condition in a loop.
#[inline]
pub(crate) fn park() {
    Unwaiting::assert_none();
    Core::current(|current| match current {
        Some((core, id)) => core.park(id),
        None => OWN.with(|own| {
            while !own.woken.swap(false, Ordering::AcqRel) {
                thread::park();
            }
        }),
    });
}

/// Lets others go on that are ready.
pub(crate) fn yield_now() {
    Unwaiting::assert_none();
    Core::current(|current| match current {
        Some((core, id)) => core.yield_now(id),
        None => thread::yield_now(),
    });
}

/// To be called between prefetching and using memory that is probably not in the processor's cache: other
/// tasks go on meanwhile, if any could. It does nothing on an ordinary thread.
#[inline]
pub(crate) fn overlap() {
    Unwaiting::assert_none();
    Core::current(|current| {
        if let Some((core, id)) = current {
            core.overlap(id);
        }
    });
}

/// To be called once per operation that may not wait for anything: now and then the others run before. It
/// does nothing on an ordinary thread.
#[inline]
pub(crate) fn go_on() {
    Unwaiting::assert_none();
    Core::current(|current| {
        if let Some((core, id)) = current {
            core.go_on(id);
        }
    });
}

/// Calls `wait`, which waits for other tasks: a task gives up its place among those taken on until then.
pub(super) fn stand_aside(wait: impl FnOnce()) {
    Core::current(|current| match current {
        Some((core, id)) => core.stand_aside(id, wait),
        None => wait(),
    });
}

impl Waker {
    /// Wakes.
    pub fn wake(&self) {
        match &self.0 {
            Sleeper::Task { mailbox, id } => Core::running(|running| match running {
                Some(core) if Arc::ptr_eq(&core.mailbox, mailbox) => core.wake(*id),
                _ => mailbox.wake(*id),
            }),
            Sleeper::Thread(parked) => {
                parked.woken.store(true, Ordering::Release);
                parked.thread.unpark();
            }
        }
    }
}
