//! An engine in one of its versions.

use super::EngineName;
use crate::Error;

/// An engine in a version whose names and defaults are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineVersion {
    /// The engine.
    pub engine: EngineName,
    pub(super) version: &'static str,
}

impl EngineVersion {
    /// Such as RocksDB's `11`, `11.8` or `11.8.1`, all of which are 11.8.
    ///
    /// # Errors
    /// [`Error::EngineVersion`] of a version whose settings are not known.
    pub fn of(engine: EngineName, given: &str) -> Result<Self, Error> {
        let begins = |text: &str, part: &str| {
            text.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let is_same = |known: &str| !given.is_empty() && (begins(known, given) || begins(given, known));
        let version = engine.versions().iter().find(|known| is_same(known)).copied();
        version.map(|version| Self { engine, version }).ok_or_else(|| Error::EngineVersion {
            engine: engine.describe(),
            got: given.to_owned(),
            allowed: engine.versions().join(", "),
        })
    }
}

/// The usual version.
impl From<EngineName> for EngineVersion {
    fn from(engine: EngineName) -> Self {
        Self { engine, version: engine.versions().first().copied().unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_by_their_first_numbers_and_others_refused() {
        let of = |given| EngineVersion::of(EngineName::Rocksdb, given).map(|found| found.version);
        for (given, version) in [("11", "11.8"), ("11.8", "11.8"), ("11.8.1", "11.8"), ("7.8.3", "7.8")] {
            assert_eq!(of(given), Ok(version));
        }
        for given in ["", "1", "11.7", "11.80", "9", "seven"] {
            let said = of(given).unwrap_err().to_string();
            assert!(said.contains("RocksDB") && said.contains("7.8, 11.8"), "{said}");
        }
    }

    #[test]
    fn the_usual_version_is_the_first() {
        for engine in EngineName::ALL {
            assert_eq!(EngineVersion::of(engine, engine.versions()[0]), Ok(engine.into()));
        }
    }
}
