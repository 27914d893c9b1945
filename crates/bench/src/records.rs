//! The number and the size of records.

use serde::{Deserialize, Serialize};

/// How many records there are, and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// How many there are at the beginning.
    pub count: u64,
    /// Bytes of a key, at least 8.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
}

impl Records {
    /// Bytes of one record.
    pub fn record_bytes(&self) -> u64 {
        (self.key_bytes + self.value_bytes) as u64
    }

    /// Bytes of all records.
    pub fn bytes(&self) -> u64 {
        self.count * self.record_bytes()
    }
}

impl From<Records> for flashgrain_cost::dictionary::Records {
    fn from(records: Records) -> Self {
        Self {
            count: records.count as f64,
            key_bytes: records.key_bytes as f64,
            value_bytes: records.value_bytes as f64,
        }
    }
}
