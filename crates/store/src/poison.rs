//! The first failed write or flush ends all promises of durability.

use crate::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::Error;

/// Shared by everything that writes.
#[derive(Clone, Default)]
pub(crate) struct Poison(Arc<PoisonState>);

#[derive(Default)]
struct PoisonState {
    first: OnceLock<String>,
    listeners: Mutex<Vec<Box<dyn Fn() + Send + Sync>>>,
}

/// See [`Poison::guard`].
pub(crate) struct Guard<'a> {
    poison: &'a Poison,
    doing: &'static str,
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.poison.note(format!("a panic while {}", self.doing));
        }
    }
}

impl Poison {
    /// Notes a failure to write or flush, and returns it. The first one wakes all waiting threads.
    pub fn by(&self, error: Error) -> Error {
        self.note(error.to_string());
        error
    }

    /// Notes another reason why nothing more can be promised.
    pub fn note(&self, reason: String) {
        if self.0.first.set(reason).is_ok() {
            let listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.iter().for_each(|tell| tell());
        }
    }

    /// To be held during work that others wait for: a panic that drops the guard is noted as a failure.
    pub fn guard(&self, doing: &'static str) -> Guard<'_> {
        Guard { poison: self, doing }
    }

    /// From now on calls `tell` at the first failure, on the thread that notes it. It must not wait.
    pub fn when_failed(&self, tell: impl Fn() + Send + Sync + 'static) {
        self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(tell));
        if self.check().is_err() {
            let listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.last().into_iter().for_each(|tell| tell());
        }
    }

    /// [`Error::Poisoned`] after a failure.
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        self.meet_trouble();
        self.look()
    }

    /// Lets planned trouble happen before [`Poison::look`]. It is separate from it because noting a failure
    /// calls the listeners, and callers of `look` may hold latches or locks that listeners take.
    #[inline]
    pub fn meet_trouble(&self) {
        if trouble!(Poison) {
            self.note("a write that was to fail".to_owned());
        }
    }

    /// As [`Poison::check`], and no more.
    #[inline]
    pub fn look(&self) -> Result<(), Error> {
        match self.0.first.get() {
            Some(first) => Err(Error::Poisoned { first: first.clone() }),
            None => Ok(()),
        }
    }
}
