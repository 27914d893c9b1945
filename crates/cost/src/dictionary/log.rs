//! The log in front of a design that would otherwise lose changes.

use serde::{Deserialize, Serialize};

use super::{Operation, Situation, Transfer};
use crate::Access;

/// The moment at which a change counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// There is no log.
    NoLog,
    /// Changes are logged, but no client waits for the log.
    Buffered,
    /// Every change waits until the log is on the drive; changes that wait at the same time share a write.
    Synced {
        /// Changes that share a write of the log, at least 1. In a closed loop of changes alone these are all
        /// clients.
        changes_per_write: f64,
    },
}

/// Bytes that a log record has in addition to key and value: length, checksum, timestamp, tree.
const RECORD_OVERHEAD_BYTES: f64 = 24.0;
/// The log is written in whole blocks of this size.
const BLOCK_BYTES: f64 = 4096.0;
/// Size of the log's writes while no client waits for it.
const BUFFERED_WRITE_BYTES: f64 = 65_536.0;

/// The write of the log that an operation has a part in; `None` for queries and without a log.
///
/// A log has one write at a time, whatever the number of clients. A synced write starts anew after the flush
/// of the one before, so that it costs a setup although it continues where that ended.
pub fn log_write(operation: Operation, situation: &Situation) -> Option<Transfer> {
    let changed = operation.changed_bytes(&situation.records);
    if !operation.is_change() {
        return None;
    }
    let bytes = changed + RECORD_OVERHEAD_BYTES;
    match situation.durability {
        Durability::NoLog => None,
        Durability::Buffered => Some(Transfer {
            access: Access::Write,
            requests: bytes / BUFFERED_WRITE_BYTES,
            bytes_each: BUFFERED_WRITE_BYTES,
            random_share: 0.0,
            concurrency: 1.0,
            awaited: false,
        }),
        Durability::Synced { changes_per_write } => {
            let changes = changes_per_write.max(1.0);
            Some(Transfer {
                access: Access::Write,
                requests: changes.recip(),
                bytes_each: (changes * bytes / BLOCK_BYTES).ceil() * BLOCK_BYTES,
                random_share: 1.0,
                concurrency: 1.0,
                awaited: true,
            })
        }
    }
}
