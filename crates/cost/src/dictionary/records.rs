//! The stored records.

use serde::{Deserialize, Serialize};

/// The records of a dictionary: N of them, all of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// N.
    pub count: f64,
    /// Bytes of a key.
    pub key_bytes: f64,
    /// Bytes of a value.
    pub value_bytes: f64,
}

impl Records {
    /// Bytes of a key and its value.
    pub fn record_bytes(&self) -> f64 {
        self.key_bytes + self.value_bytes
    }

    /// Bytes of all keys and values.
    pub fn total_bytes(&self) -> f64 {
        self.count * self.record_bytes()
    }
}
