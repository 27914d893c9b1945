//! The first failed write or flush ends all promises of durability.

use std::sync::{Arc, OnceLock};

use crate::Error;

/// Shared by everything that writes.
#[derive(Clone, Default)]
pub(crate) struct Poison(Arc<OnceLock<String>>);

impl Poison {
    /// Notes a failure to write or flush, and gives it back.
    pub fn by(&self, error: Error) -> Error {
        let _first_stays = self.0.set(error.to_string());
        error
    }

    /// [`Error::Poisoned`] after a failure.
    pub fn check(&self) -> Result<(), Error> {
        match self.0.get() {
            Some(first) => Err(Error::Poisoned { first: first.clone() }),
            None => Ok(()),
        }
    }
}
