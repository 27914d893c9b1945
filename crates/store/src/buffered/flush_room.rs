//! Room for the pages that one flush changes at a time: the most that any tree needs.

use std::collections::BTreeMap;

use crate::index::TreeId;
use crate::segment::Reservation;
use crate::sync::{Mutex, PoisonError};

/// See the module.
pub(crate) struct FlushRoom {
    reservation: Reservation,
    /// Bytes by tree, without those that need none.
    needed: Mutex<BTreeMap<TreeId, u64>>,
}

impl FlushRoom {
    pub fn new(reservation: Reservation) -> Self {
        Self { reservation, needed: Mutex::default() }
    }

    /// Sets the bytes that flushes of this tree need from now on.
    pub fn set(&self, tree: TreeId, bytes: impl FnOnce() -> u64) {
        self.reservation.set(|| {
            let mut needed = self.needed.lock().unwrap_or_else(PoisonError::into_inner);
            match bytes() {
                0 => needed.remove(&tree),
                bytes => needed.insert(tree, bytes),
            };
            needed.values().copied().max().unwrap_or(0)
        });
    }
}
