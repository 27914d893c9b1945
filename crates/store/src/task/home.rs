//! Where a worker's tasks can be reached from other threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::scheduler::TaskId;

/// How a worker that sleeps is woken.
pub(crate) trait Bell: Send + Sync {
    /// Ends its sleep, or the next one if it does not sleep yet.
    fn ring(&self);
}

/// What is to be run.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// The part of a scheduler that other threads see.
pub(crate) struct Home {
    mail: Mutex<Mail>,
    /// Whether there is mail: looked at without the lock.
    waiting: AtomicBool,
    bell: Box<dyn Bell>,
}

/// What came in since the scheduler last looked.
#[derive(Default)]
pub(super) struct Mail {
    pub jobs: Vec<Job>,
    pub woken: Vec<TaskId>,
}

impl Home {
    pub fn new(bell: Box<dyn Bell>) -> Self {
        Self { mail: Mutex::default(), waiting: AtomicBool::new(false), bell }
    }

    /// Has `job` run as a task.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        self.post(|mail| mail.jobs.push(Box::new(job)));
    }

    pub(super) fn wake(&self, task: TaskId) {
        self.post(|mail| mail.woken.push(task));
    }

    fn post(&self, put: impl FnOnce(&mut Mail)) {
        put(&mut self.mail.lock().unwrap_or_else(PoisonError::into_inner));
        if !self.waiting.swap(true, Ordering::AcqRel) {
            self.bell.ring();
        }
    }

    /// Whether something came in.
    pub fn has_mail(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Exchanges the mail for an empty one, whose vectors are used again.
    pub(super) fn collect(&self, empty: &mut Mail) {
        if self.has_mail() {
            self.waiting.store(false, Ordering::Release);
            std::mem::swap(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner), empty);
        }
    }
}
