//! Many records at a time, in steps that are commits: each is done as a whole or not at all, in key order, and none holds more than a little in memory, or many locks.
//!
//! The log keeps the order of commits, so that what a crash leaves is what the steps up to some moment did; only the end has to wait for the device.

use std::sync::Arc;

use super::core::Core;
use super::scan::TreeScan;
use super::source::Range;
use crate::catalog::Known;
use crate::index::Direction;
use crate::log::Timestamp;
use crate::txn::{Snapshot, Write, Written};
use crate::{Durability, Error};

/// Records of a step: as many locks of 8,192 may be taken.
const STEP_RECORDS: usize = 1024;

/// Bytes of the keys that a step removes; one may exceed it.
const STEP_KEY_BYTES: usize = 256 << 10;

/// What a key takes in a log record beside its bytes, at most.
const KEY_OVERHEAD_BYTES: u64 = 16;

/// A removal that has lost to others so often in a row keeps them out.
const LOST_MAX: u32 = 3;

/// The keys that a step removes, and as of when.
struct Step {
    keys: Vec<Vec<u8>>,
    seen_at: Timestamp,
    /// Whether there are no more.
    is_last: bool,
}

impl Core {
    /// Removes what is in `range`, in steps; how many records were found.
    ///
    /// # Errors
    /// As [`Core::write`](Core::write).
    pub(super) fn remove_range(self: &Arc<Self>, tree: &Arc<Known>, mut range: Range) -> Result<u64, Error> {
        let (mut removed, mut lost) = (0, 0);
        loop {
            let step = match self.remove_step(tree, &range, lost < LOST_MAX) {
                Err(Error::Conflict) => {
                    lost += 1;
                    continue;
                }
                result => result?,
            };
            lost = 0;
            removed += step.keys.len() as u64;
            if let Some(last) = step.keys.last() {
                range.take(Direction::Forward, last);
            }
            if step.is_last {
                break;
            }
        }
        if removed > 0 {
            self.wait(self.durability())?;
        }
        Ok(removed)
    }

    /// Removes the first records in `range`.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it `may_lose`, and one of them was written after they were looked at.
    fn remove_step(
        self: &Arc<Self>,
        tree: &Arc<Known>,
        range: &Range,
        may_lose: bool,
    ) -> Result<Step, Error> {
        let _writing = self.announce(tree)?;
        let transactions = self.engine().transactions();
        if !may_lose {
            let look = || self.look(tree, range);
            return transactions.remove_alone(&tree.tree, look, |step| &step.keys, Durability::None);
        }
        let step = self.look(tree, range)?;
        let written = |key| Written { tree: &tree.tree, key, write: Write::Remove };
        let writes: Vec<_> = step.keys.iter().map(|key| written(key.as_slice())).collect();
        transactions.commit(Some(step.seen_at), &[], &writes, Durability::None)?;
        Ok(step)
    }

    /// The first keys in `range`. The snapshot is given back before they are removed: nobody needs the old versions.
    fn look(self: &Arc<Self>, tree: &Arc<Known>, range: &Range) -> Result<Step, Error> {
        let at = self.pin()?;
        let mut scan = self.scan(tree, &at, range);
        let (mut keys, mut bytes) = (Vec::new(), 0);
        let seen_at = at.timestamp();
        while keys.len() < STEP_RECORDS && bytes < STEP_KEY_BYTES {
            let Some(key) = scan.next_key()? else { return Ok(Step { keys, seen_at, is_last: true }) };
            bytes += key.len();
            keys.push(key);
        }
        Ok(Step { keys, seen_at, is_last: false })
    }

    /// All keys in `range` that a snapshot sees.
    ///
    /// # Errors
    /// [`Error::BatchLength`] if they are more than fit into a commit.
    pub(super) fn keys_within(
        self: &Arc<Self>,
        tree: &Arc<Known>,
        at: &Arc<Snapshot>,
        range: &Range,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let mut scan = self.scan(tree, at, range);
        let limit = self.engine().parts().log.record_limit_bytes();
        let (mut keys, mut got) = (Vec::new(), 0);
        while let Some(key) = scan.next_key()? {
            got += key.len() as u64 + KEY_OVERHEAD_BYTES;
            if got > limit {
                return Err(Error::BatchLength { got, limit });
            }
            keys.push(key);
        }
        Ok(keys)
    }

    fn scan(self: &Arc<Self>, tree: &Arc<Known>, at: &Arc<Snapshot>, range: &Range) -> TreeScan {
        TreeScan::new(self, tree, at, Direction::Forward, &range.lower, range.upper.as_deref())
    }
}
