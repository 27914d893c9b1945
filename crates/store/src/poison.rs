//! The first failed write or flush ends all promises of durability.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::Error;

/// Shared by everything that writes.
#[derive(Clone, Default)]
pub(crate) struct Poison(Arc<Shared>);

#[derive(Default)]
struct Shared {
    first: OnceLock<String>,
    listeners: Mutex<Vec<Box<dyn Fn() + Send + Sync>>>,
}

impl Poison {
    /// Notes a failure to write or flush, and gives it back. The first time, everybody who waits is told.
    pub fn by(&self, error: Error) -> Error {
        if self.0.first.set(error.to_string()).is_ok() {
            let listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.iter().for_each(|tell| tell());
        }
        error
    }

    /// Has `tell` called at the first failure, by whoever fails. It must not wait.
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
        match self.0.first.get() {
            Some(first) => Err(Error::Poisoned { first: first.clone() }),
            None => Ok(()),
        }
    }
}
