//! A worker's mailbox: the part of its scheduler that other threads use.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::any::Any;

use super::Class;
use super::id::TaskId;
use super::join::{JoinHandle, joinable};

/// Wakes a sleeping worker.
pub(crate) trait WakeUp: Send + Sync {
    /// Ends its sleep, or the next one if it does not sleep yet.
    fn wake_up(&self);
}

/// A closure for a task to run.
pub(super) struct Job {
    pub run: Box<dyn FnOnce() + Send>,
    pub class: Class,
}

/// The part of a scheduler that other threads see.
///
/// No wake-up is lost between a sender and a worker that is about to sleep. The sender first leaves its mail
/// and then looks whether the worker sleeps; the worker first says that it sleeps and then looks for mail.
/// All four accesses are sequentially consistent, so at least one of the two sees the other.
#[derive(Default)]
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    /// Whether there is mail: looked at without the lock.
    waiting: AtomicBool,
    /// Whether the worker sleeps, or is about to.
    asleep: AtomicBool,
    wake_up: OnceLock<Box<dyn WakeUp>>,
    stopped: AtomicBool,
    when_panicked: Mutex<Vec<WhenPanicked>>,
}

/// Called with the text of a panic that is not reported otherwise.
pub(crate) type WhenPanicked = Arc<dyn Fn(&str) + Send + Sync>;

/// Jobs and wake-ups that came in since the scheduler last emptied the mailbox.
#[derive(Default)]
pub(super) struct Mail {
    pub jobs: Vec<Job>,
    pub woken: Vec<TaskId>,
    /// The scheduler has ended and takes no more mail.
    is_closed: bool,
}

impl Mailbox {
    /// From now on, `wake_up` wakes the worker. Only the first call counts.
    pub fn set_wake_up(&self, wake_up: Box<dyn WakeUp>) {
        drop(self.wake_up.set(wake_up));
    }

    /// Has `job` run as a task.
    pub fn spawn(&self, class: Class, job: impl FnOnce() + Send + 'static) {
        self.send(Job { run: Box::new(job), class });
    }

    /// Has `job` run as a user's task of this worker.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let (job, handle) = joinable(job);
        self.spawn(Class::Foreground, job);
        handle
    }

    /// A job that comes when the worker has ended is given up like one that has not begun by then: kept, it
    /// would keep everything that it owns, perhaps all of the store and this mailbox itself.
    pub(super) fn send(&self, job: Job) {
        let mut given_up = None;
        self.post(|mail| match mail.is_closed {
            false => mail.jobs.push(job),
            true => given_up = Some(job),
        });
    }

    pub(super) fn wake(&self, task: TaskId) {
        self.post(|mail| mail.woken.push(task));
    }

    fn post(&self, put: impl FnOnce(&mut Mail)) {
        put(&mut self.mail.lock().unwrap_or_else(PoisonError::into_inner));
        self.waiting.store(true, Ordering::SeqCst);
        self.wake_worker();
    }

    /// Wakes the worker, if it sleeps.
    pub fn wake_worker(&self) {
        if self.asleep.load(Ordering::SeqCst)
            && self.asleep.swap(false, Ordering::AcqRel)
            && let Some(wake_up) = self.wake_up.get()
        {
            wake_up.wake_up();
        }
    }

    /// Has the worker end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.post(|_| ());
    }

    /// Whether the worker is to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether jobs or wake-ups came in.
    pub fn has_mail(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// To be called before the worker sleeps. Returns whether it may. From then on, new mail wakes the
    /// worker.
    pub fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        // A worker may have taken in the mail of its end without having looked whether it ends.
        let may = !self.waiting.load(Ordering::SeqCst) && !self.is_stopped();
        if !may {
            self.awake();
        }
        may
    }

    /// The worker sleeps no longer.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::Release);
    }

    pub(super) fn when_panicked(&self, tell: &WhenPanicked) {
        self.when_panicked.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(tell));
    }

    /// Reports the panic of a task of the store, whose work will not be done.
    pub(super) fn note_panic(&self, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let tell = self.when_panicked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for tell in tell {
            tell(text.unwrap_or("a panic without text"));
        }
    }

    /// The worker has ended: jobs that it has not taken in are given up, and so are those that come.
    pub(super) fn close(&self) {
        let closed = Mail { is_closed: true, ..Mail::default() };
        let left = std::mem::replace(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner), closed);
        drop(left);
    }

    /// Exchanges the mail for an empty one, whose vectors are used again.
    pub(super) fn collect(&self, empty: &mut Mail) {
        if self.has_mail() {
            self.waiting.store(false, Ordering::Release);
            std::mem::swap(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner), empty);
        }
    }
}
