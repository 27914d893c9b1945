//! Freeing values in the background, by a few tasks for any number of values at once: a task takes a stack,
//! and a process has room for tens of thousands of these.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, PoisonError};
use std::collections::VecDeque;

use crate::task::Executor;

/// Values that are freed at the same time, at most.
const TASKS_MAX: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(super) struct Freeing(Arc<FreeingQueue>);

struct FreeingQueue {
    executor: Executor,
    jobs: Mutex<VecDeque<Job>>,
    tasks: AtomicUsize,
    /// Values that are not freed yet.
    pending: Arc<AtomicUsize>,
}

/// Counts a value that is not freed yet. Its drop ends that on every path, panics included, so that closing
/// the store never waits forever.
pub(super) struct Pending(Arc<AtomicUsize>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Freeing {
    pub fn new(executor: &Executor) -> Self {
        Self(Arc::new(FreeingQueue {
            executor: executor.clone(),
            jobs: Mutex::default(),
            tasks: AtomicUsize::new(0),
            pending: Arc::default(),
        }))
    }

    /// Counts a value as pending from now on.
    pub fn begin(&self) -> Pending {
        self.0.pending.fetch_add(1, Ordering::SeqCst);
        Pending(Arc::clone(&self.0.pending))
    }

    /// Whether any value is pending.
    pub fn is_any_pending(&self) -> bool {
        self.0.pending.load(Ordering::SeqCst) > 0
    }

    /// Runs `free` in the background. It returns at once. `free` must not own the owner of this queue, as
    /// neither would ever be dropped.
    pub fn free(&self, pending: Pending, free: impl FnOnce() + Send + 'static) {
        let job = Box::new(move || {
            let _ended = pending;
            free();
        });
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner).push_back(job);
        FreeingQueue::spawn_task(&self.0);
    }
}

impl FreeingQueue {
    fn spawn_task(this: &Arc<Self>) {
        let more = |tasks| (tasks < TASKS_MAX).then_some(tasks + 1);
        if this.tasks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok() {
            let mut task = FreeingTask { shared: Arc::clone(this), has_begun: false };
            this.executor.spawn(move || task.work());
        }
    }

    fn is_idle(&self) -> bool {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// A task that frees.
struct FreeingTask {
    shared: Arc<FreeingQueue>,
    /// An executor that ends drops tasks that have not begun.
    has_begun: bool,
}

impl FreeingTask {
    fn work(&mut self) {
        self.has_begun = true;
        loop {
            let job = self.shared.jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(job) = job else { return };
            job();
        }
    }
}

impl Drop for FreeingTask {
    fn drop(&mut self) {
        self.shared.tasks.fetch_sub(1, Ordering::SeqCst);
        // Jobs that came after the last look rely on this task, as do those that a panic leaves.
        if self.has_begun && !self.shared.is_idle() {
            FreeingQueue::spawn_task(&self.shared);
        }
    }
}
