//! The versions of one key.

use std::ops::Range;

use crate::index::Version;

/// A version of a key, and where its value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub version: Version,
    value: Range<usize>,
}

/// The versions of one key in the order of a scan. It is used again and again, so that keys take no memory of
/// their own.
#[derive(Default)]
pub(crate) struct KeyVersions {
    key: Vec<u8>,
    pub all: Vec<Held>,
    values: Vec<u8>,
}

impl KeyVersions {
    /// Begins with another key, without versions yet.
    pub fn begin(&mut self, key: &[u8]) {
        key.clone_into(&mut self.key);
        self.all.clear();
        self.values.clear();
    }

    /// Appends a version.
    pub fn push(&mut self, version: Version, value: &[u8]) {
        let start = self.values.len();
        self.values.extend_from_slice(value);
        self.all.push(Held { version, value: start..self.values.len() });
    }

    /// Bytes of the key and the values.
    pub fn bytes(&self) -> usize {
        self.key.len() + self.values.len()
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn value(&self, held: &Held) -> &[u8] {
        self.values.get(held.value.clone()).unwrap_or_default()
    }
}
