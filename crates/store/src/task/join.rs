//! Waiting for a task's result.

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use super::core::catch;
use super::park::{Waker, park, stand_aside, waker};

/// The result of a task, when it has one: [`JoinHandle::join`] waits for it, in a task or on any thread, and
/// so does `.await` in any async runtime. A task whose handle is dropped goes on.
#[must_use = "a task goes on without its handle, but then its result or panic is lost"]
pub struct JoinHandle<T> {
    shared: Arc<JoinState<T>>,
}

/// State shared by a task and its handle.
struct JoinState<T>(Mutex<Stage<T>>);

enum Stage<T> {
    Running(Option<Joiner>),
    Ended(thread::Result<T>),
    Taken,
}

/// Wakes the holder of the handle when the task ends.
enum Joiner {
    Blocked(Waker),
    Future(std::task::Waker),
}

/// The task's half. If it is dropped before there is a result, the task has been given up.
struct Promise<T> {
    shared: Arc<JoinState<T>>,
}

/// The job that does `work`, and the handle to its result.
pub(super) fn joinable<T, F>(work: F) -> (impl FnOnce() + Send + 'static, JoinHandle<T>)
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let shared = Arc::new(JoinState(Mutex::new(Stage::Running(None))));
    let promise = Promise { shared: Arc::clone(&shared) };
    let job = move || {
        let result = catch(work);
        promise.shared.end(result);
    };
    (job, JoinHandle { shared })
}

impl<T: Send + 'static> JoinHandle<T> {
    /// Of a task that will not begin: joining it fails at once.
    pub(crate) fn given_up(work: impl FnOnce() -> T + Send + 'static) -> Self {
        let (job, handle) = joinable(work);
        drop(job);
        handle
    }
}

impl<T> JoinState<T> {
    fn lock(&self) -> MutexGuard<'_, Stage<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the result, unless there is one, and wakes the joiner.
    fn end(&self, result: thread::Result<T>) {
        let mut stage = self.lock();
        let Stage::Running(joiner) = &mut *stage else { return };
        let joiner = joiner.take();
        *stage = Stage::Ended(result);
        drop(stage);
        match joiner {
            Some(Joiner::Blocked(waker)) => waker.wake(),
            Some(Joiner::Future(waker)) => waker.wake(),
            None => {}
        }
    }

    /// The result, if there is one; else `joiner` will be told.
    fn take(&self, joiner: impl FnOnce() -> Joiner) -> Option<thread::Result<T>> {
        let mut stage = self.lock();
        if let Stage::Running(waiting) = &mut *stage {
            *waiting = Some(joiner());
            return None;
        }
        match std::mem::replace(&mut *stage, Stage::Taken) {
            Stage::Ended(result) => Some(result),
            _ => Some(Err(Box::new("the result of this task was taken before"))),
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.shared.end(Err(Box::new("the store was closed before this task had ended")));
    }
}

impl<T> JoinHandle<T> {
    /// Waits for the task to end, and returns its result, or the payload of its panic. A task whose store is
    /// closed before counts as panicked, too.
    ///
    /// # Errors
    /// The panic's payload, as of [`std::thread::JoinHandle::join`].
    pub fn join(self) -> thread::Result<T> {
        if let Some(result) = self.shared.take(|| Joiner::Blocked(waker())) {
            return result;
        }
        let mut result = None;
        stand_aside(|| {
            while result.is_none() {
                park();
                result = self.shared.take(|| Joiner::Blocked(waker()));
            }
        });
        result.unwrap_or_else(|| Err(Box::new("unreachable: the loop ends with a result")))
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        !matches!(*self.shared.lock(), Stage::Running(_))
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = thread::Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.shared.take(|| Joiner::Future(context.waker().clone())) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }
}

impl<T> std::fmt::Debug for JoinHandle<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("JoinHandle").field("finished", &self.is_finished()).finish()
    }
}
