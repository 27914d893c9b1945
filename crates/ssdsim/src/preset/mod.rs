//! Drives of the papers, as far as their numbers are published.

use crate::config::SimConfig;
use crate::error::Error;

/// Names of all presets.
pub fn names() -> Vec<&'static str> {
    Vec::new()
}

/// The preset `name`.
///
/// # Errors
/// [`Error::UnknownPreset`].
pub fn find(name: &str) -> Result<SimConfig, Error> {
    Err(Error::UnknownPreset { name: name.to_owned(), known: names().join(", ") })
}
