//! Waiting and waking, for tasks and ordinary threads alike.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

use super::home::Home;
use super::scheduler::{Core, TaskId};

/// Ends the wait of whoever made it, once.
#[derive(Clone)]
pub(crate) struct Waker(Sleeper);

#[derive(Clone)]
enum Sleeper {
    Task { home: Arc<Home>, id: TaskId },
    Thread { thread: Thread, woken: Arc<AtomicBool> },
}

thread_local! {
    /// Whether the thread was woken since it last parked.
    static WOKEN: Arc<AtomicBool> = Arc::new(AtomicBool::new(false));
}

/// Whether the caller is a task.
pub(crate) fn in_task() -> bool {
    Core::current().is_some()
}

/// What wakes the caller from [`park`].
pub(crate) fn waker() -> Waker {
    Waker(match Core::current() {
        Some((core, id)) => Sleeper::Task { home: Arc::clone(&core.home), id },
        None => Sleeper::Thread { thread: std::thread::current(), woken: WOKEN.with(Arc::clone) },
    })
}

/// Waits until a [`waker`] of the caller is used; returns at once if one was since the last park. May return for no reason: look at what
/// was waited for.
pub(crate) fn park() {
    if let Some((core, id)) = Core::current() {
        return core.park(id);
    }
    let woken = WOKEN.with(Arc::clone);
    while !woken.swap(false, Ordering::AcqRel) {
        std::thread::park();
    }
}

/// Lets others go on that are ready.
pub(crate) fn yield_now() {
    match Core::current() {
        Some((core, id)) => core.yield_now(id),
        None => std::thread::yield_now(),
    }
}

impl Waker {
    /// Wakes.
    pub fn wake(&self) {
        match &self.0 {
            Sleeper::Task { home, id } => match Core::is_at(home) {
                Some(core) => core.wake(*id),
                None => home.wake(*id),
            },
            Sleeper::Thread { thread, woken } => {
                woken.store(true, Ordering::Release);
                thread.unpark();
            }
        }
    }
}
