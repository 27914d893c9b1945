//! Which configurations make a drive.

use super::SimConfig;
use crate::error::Error;

impl SimConfig {
    /// Refuses what makes no drive.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field, its value and what is allowed.
    pub fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}
