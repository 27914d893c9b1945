//! Tables that have left the levels: their segments are given back once they have no reader.

use super::table::Table;
use super::tree::Lsm;
use crate::Error;
use crate::sync::Arc;

impl Lsm {
    /// Gives back the segments of tables that have left the levels and have no reader any more.
    pub(super) fn sweep(&self) {
        // The store may be closed meanwhile. A table whose segments are being given back must not be listed
        // for the next opening.
        let _permits = self.sweeps.acquire_all();
        // They stay listed until they are given back, so that a walk knows them.
        let unread: Vec<Arc<Table>> = {
            let left = self.left();
            let is_unread =
                |table: &&Arc<Table>| Arc::strong_count(table) == 1 || planted!(TableSweptWhileRead);
            left.iter().filter(is_unread).cloned().collect()
        };
        let mut pages = unread.iter().flat_map(|table| &table.pages);
        // After an error nothing refers to the pages that remain.
        let _given_back = pages.try_for_each(|page| self.shared.pool.free_unread(*page));
        self.left().retain(|table| !unread.iter().any(|swept| Arc::ptr_eq(table, swept)));
    }

    /// Has the next opening give back the segments of tables that still have readers. The manifest lists them
    /// as a load without a commit: else nothing would refer to the segments.
    ///
    /// # Errors
    /// As `Manifest::store`; the segments then stay allocated, as after a crash.
    pub(super) fn leave_to_next_opening(&self) -> Result<(), Error> {
        // In this order: a sweep may wait for a checkpoint, which changes the levels.
        let _no_sweep = self.sweeps.acquire_all();
        let _permits = self.changes.acquire_all();
        let left = self.left().clone();
        if left.is_empty() {
            return Ok(());
        }
        let before = Arc::clone(&self.parts().levels);
        let levels = self.manifest.store(&[], |_| before.with_load(left.clone()))?;
        self.parts_mut().levels = Arc::new(levels);
        self.left().clear();
        Ok(())
    }
}
