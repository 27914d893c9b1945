//! The operations of a dictionary's clients.

use serde::{Deserialize, Serialize};

use super::Records;

/// An operation of a dictionary, on a key drawn by the [`Skew`](super::Skew) of the situation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A point query of a key that is there.
    PointHit,
    /// A point query of a key that is not there.
    PointMiss,
    /// A new record.
    Insert,
    /// A new value for a key that is there.
    Update,
    /// The removal of a record.
    Delete,
    /// A range query.
    Range {
        /// Bytes of keys and values that it returns.
        bytes: f64,
    },
}

impl Operation {
    /// Bytes of the dictionary that the operation changes: the denominator of write amplification
    /// (dictionaries paper, Definition 3). Zero for queries.
    pub fn changed_bytes(&self, records: &Records) -> f64 {
        match self {
            Self::Insert | Self::Update => records.record_bytes(),
            Self::Delete => records.key_bytes,
            Self::PointHit | Self::PointMiss | Self::Range { .. } => 0.0,
        }
    }

    /// Bytes that the client receives: the denominator of read amplification. Zero for changes and misses.
    pub fn returned_bytes(&self, records: &Records) -> f64 {
        match self {
            Self::PointHit => records.record_bytes(),
            Self::Range { bytes } => *bytes,
            Self::PointMiss | Self::Insert | Self::Update | Self::Delete => 0.0,
        }
    }

    /// Whether the operation changes the dictionary.
    pub fn is_change(&self) -> bool {
        matches!(self, Self::Insert | Self::Update | Self::Delete)
    }
}
