//! The result of a compaction.

use serde::Serialize;

/// The length of the store's data device, or of all its members together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compacted {
    /// When the compaction began.
    pub before_bytes: u64,
    /// Now.
    pub after_bytes: u64,
}
