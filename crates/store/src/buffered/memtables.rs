//! The memtables of a tree: the *active* one, which commits change, and those that are *frozen*: full,
//! complete, and waiting to be flushed.

use super::memtable::{Full, Memtable};
use crate::index::is_full_early;
use crate::log::LogRecord;
use crate::sync::Arc;

/// Writers are stopped at this number of frozen memtables.
const FROZEN_MAX: f64 = 3.0;

/// See the module.
#[derive(Clone)]
pub(crate) struct Memtables {
    pub active: Arc<Memtable>,
    /// The newest first.
    pub frozen: Vec<Arc<Memtable>>,
}

impl Memtables {
    /// An empty memtable that takes nothing.
    pub fn none() -> Self {
        Self { active: Arc::new(Memtable::none()), frozen: Vec::new() }
    }

    /// All memtables, the newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }

    /// The first commit that is in one of them.
    pub fn first(&self) -> Option<LogRecord> {
        self.iter().filter_map(|memtable| memtable.first()).min()
    }

    /// The number of memtables that are not empty.
    pub fn filled(&self) -> u64 {
        self.iter().filter(|memtable| memtable.first().is_some()).count() as u64
    }

    /// Bytes of room that the tree reserves for each of them from now on, the newest first; `most_bytes` at
    /// most.
    pub fn reserve(&self, most_bytes: u64) -> Vec<u64> {
        let active = self.active.reserve(false);
        let frozen = self.frozen.iter().map(|memtable| memtable.reserve(true));
        std::iter::once(active).chain(frozen).map(|bytes| bytes.min(most_bytes)).collect()
    }

    /// Bytes that are in use.
    pub fn used_bytes(&self) -> u64 {
        self.iter().map(|memtable| memtable.used_bytes()).sum()
    }

    /// Whether both are the same memtables.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.active, &other.active) && self.frozen.len() == other.frozen.len()
    }

    /// Another memtable becomes active, and the active one is frozen if it has anything in it.
    pub fn freeze(&mut self, next: Memtable) {
        let active = std::mem::replace(&mut self.active, Arc::new(next));
        if active.first().is_some() {
            self.frozen.insert(0, active);
        }
    }

    /// The same for a full memtable, unless another thread has frozen it.
    pub fn freeze_full(&mut self, full: &Arc<Memtable>, next: Memtable) {
        if Arc::ptr_eq(&self.active, full) {
            self.freeze(next);
        }
    }

    /// Changes the active memtable.
    ///
    /// # Errors
    /// It is full, and nothing has changed.
    pub fn change(&self, change: impl Fn(&Memtable) -> Result<(), Full>) -> Result<(), Arc<Memtable>> {
        if self.active.first().is_some() && is_full_early() {
            return Err(Arc::clone(&self.active));
        }
        change(&self.active).map_err(|Full| Arc::clone(&self.active))
    }

    /// A memtable was flushed.
    pub fn remove(&mut self, flushed: &Arc<Memtable>) {
        self.frozen.retain(|memtable| !Arc::ptr_eq(memtable, flushed));
    }

    /// The frozen memtables beyond `per_flush`, the number that a flush waits for, as a part of those that
    /// may be frozen: above 0 writers are slowed down.
    pub fn debt(&self, per_flush: usize) -> f64 {
        (self.frozen.len() as f64 - per_flush as f64) / (FROZEN_MAX - 1.0)
    }
}
