//! The executor: all workers of a store, and how work reaches them.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, PoisonError, Weak};

use super::Class;
use super::core::Core;
use super::join::{JoinHandle, joinable};
use super::mailbox::{Job, Mailbox, WhenPanicked};

/// Work that every worker does between its tasks, such as evicting pages when free frames run low. It must
/// not wait.
pub(crate) trait Upkeep: Send + Sync {
    /// Does a bounded amount of work, if any is due.
    fn step(&self);
}

/// The workers' mailboxes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Executor(Arc<Mailboxes>);

struct Mailboxes {
    mailboxes: Vec<Arc<Mailbox>>,
    next: AtomicUsize,
    upkeep: Mutex<Vec<Weak<dyn Upkeep>>>,
    /// How often upkeep was added.
    upkeep_version: AtomicU64,
}

/// A worker's view of the upkeep.
#[derive(Default)]
pub(crate) struct UpkeepCache {
    upkeep: Vec<Weak<dyn Upkeep>>,
    version: u64,
}

impl Executor {
    /// These workers, at least one.
    pub fn new(mailboxes: Vec<Arc<Mailbox>>) -> Self {
        assert!(!mailboxes.is_empty(), "an executor has workers");
        Self(Arc::new(Mailboxes {
            mailboxes,
            next: AtomicUsize::new(0),
            upkeep: Mutex::default(),
            upkeep_version: AtomicU64::new(0),
        }))
    }

    /// From now on, every worker does this, too, between its tasks, as long as `upkeep` lives.
    pub fn add_upkeep(&self, upkeep: Weak<dyn Upkeep>) {
        let mut all = self.0.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|upkeep| upkeep.strong_count() > 0);
        all.push(upkeep);
        self.0.upkeep_version.fetch_add(1, Ordering::Release);
    }

    /// From now on calls `tell` for panics in background tasks and in the upkeep, so that no caller waits for
    /// their work any longer.
    pub fn when_panicked(&self, tell: &WhenPanicked) {
        self.0.mailboxes.iter().for_each(|mailbox| mailbox.when_panicked(tell));
    }

    /// Shows everything that a worker does between its tasks.
    pub fn upkeep(&self, known: &mut UpkeepCache, mut see: impl FnMut(&dyn Upkeep)) {
        let version = self.0.upkeep_version.load(Ordering::Acquire);
        if version != known.version {
            let upkeep = self.0.upkeep.lock().unwrap_or_else(PoisonError::into_inner).clone();
            *known = UpkeepCache { upkeep, version };
        }
        known.upkeep.iter().filter_map(Weak::upgrade).for_each(|upkeep| see(&*upkeep));
    }

    /// The workers' mailboxes.
    pub fn mailboxes(&self) -> &[Arc<Mailbox>] {
        &self.0.mailboxes
    }

    /// Has `job` run as a background task: of the calling worker if it is one of these, else of the next in
    /// turn. It begins soon, whatever else is going on.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        self.send(Job { run: Box::new(job), class: Class::Background });
    }

    /// Runs `job` on behalf of the calling task, which will probably wait for it: as a background task if the
    /// caller is one, otherwise as a subtask.
    pub fn send_out(&self, job: impl FnOnce() + Send + 'static) {
        let class = match Core::current(|current| current.and_then(|(core, task)| core.class_of(task))) {
            Some(Class::Background) => Class::Background,
            _ => Class::Subtask,
        };
        self.send(Job { run: Box::new(job), class });
    }

    /// Runs `job` as [`Executor::send_out`] does, for its result.
    pub fn run_for<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let (job, handle) = joinable(job);
        self.send_out(job);
        handle
    }

    /// Has `job` run as a user's task. It may wait for its turn if very many are under way.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let (job, handle) = joinable(job);
        self.send(Job { run: Box::new(job), class: Class::Foreground });
        handle
    }

    fn send(&self, job: Job) {
        let unsent = Core::running(|running| match running {
            Some(core) if self.0.mailboxes.iter().any(|mailbox| Arc::ptr_eq(mailbox, &core.mailbox)) => {
                core.sent.borrow_mut().push(job);
                None
            }
            _ => Some(job),
        });
        if let Some(job) = unsent {
            self.0.mailboxes[self.0.next.fetch_add(1, Ordering::Relaxed) % self.0.mailboxes.len()].send(job);
        }
    }
}
