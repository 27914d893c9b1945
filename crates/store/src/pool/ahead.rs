//! Loading pages ahead, by other tasks, before they are needed.
//!
//! All of it is optional: a page that has not been loaded is loaded by the task that needs it, which also
//! reports errors. Therefore the number of tasks under way for it is bounded. Without a bound, many of them
//! in a small cache would evict each other's pages for ever, and in the end the system would give no stacks
//! any more to the tasks that write pages and so make room.

use super::fault::Loader;
use super::table::PageLocation;
use super::{Access, Pool};
use crate::class::class_bytes;
use crate::header::PageId;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Weak};
use crate::task::Executor;

/// As many reads keep any drive busy.
const READ_AHEAD_TASKS_MAX: u64 = 1024;

/// At most one task runs for this number of pages of the smallest class that the budget has room for.
const PAGES_PER_READ_AHEAD_TASK: u64 = 16;

/// A task that loads something in advance. It counts as long as it lives.
struct ReadAheadTask(Arc<Pool>);

impl Drop for ReadAheadTask {
    fn drop(&mut self) {
        self.0.ahead.end();
    }
}

/// Tasks under way that load pages in advance.
pub(super) struct ReadAhead {
    executor: Executor,
    pool: Weak<Pool>,
    tasks: AtomicU64,
    tasks_max: u64,
}

impl ReadAhead {
    /// For `pool`, which has `budget_bytes` of memory.
    pub fn new(executor: Executor, pool: Weak<Pool>, budget_bytes: u64) -> Self {
        let tasks_max = (budget_bytes / class_bytes(0) / PAGES_PER_READ_AHEAD_TASK).min(READ_AHEAD_TASKS_MAX);
        Self { executor, pool, tasks: AtomicU64::new(0), tasks_max }
    }

    /// Counts one more task, if one more may run.
    fn begin(&self) -> Option<ReadAheadTask> {
        let pool = self.pool.upgrade()?;
        if self.tasks.fetch_add(1, Ordering::Relaxed) >= self.tasks_max {
            self.end();
            return None;
        }
        Some(ReadAheadTask(pool))
    }

    fn end(&self) {
        let before = self.tasks.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a task ends that never began");
    }
}

impl Pool {
    /// Has another task load what the caller will probably need. It does nothing if many tasks already load.
    pub fn send_out(&self, load: impl FnOnce(&Self) + Send + 'static) {
        if let Some(task) = self.ahead.begin() {
            self.ahead.executor.send_out(move || load(&task.0));
        }
    }

    /// Has another task load a page as a scan would, if it is not in memory and there is room for it. May do
    /// nothing.
    pub fn prefetch(&self, id: PageId) {
        if self.pages.is_only_on_device(id) {
            self.send_out(move |pool| pool.loader().load_ahead(id));
        }
    }

    /// Has other tasks load pages that the caller is about to read side by side: they wait for memory, as it
    /// would do itself.
    pub fn fetch_all(&self, ids: impl Iterator<Item = PageId>, access: Access) {
        for id in ids.filter(|id| self.pages.is_only_on_device(*id)) {
            self.send_out(move |pool| {
                // The caller is told of a failure.
                let _read = pool.read(id, access);
            });
        }
    }

    /// Has other tasks load pages as [`Pool::prefetch`] does, those that lie next to each other together.
    pub fn prefetch_all(&self, mut ids: &[PageId]) {
        while let Some((first, others)) = ids.split_first() {
            let near: Vec<PageId> = self.loader().side_by_side(ids).into_iter().map(|(id, _)| id).collect();
            let Some(last) = near.last().filter(|_| near.len() > 1) else {
                self.prefetch(*first);
                ids = others;
                continue;
            };
            let behind = others.iter().position(|id| id == last).map_or(0, |place| place + 1);
            ids = &others[behind..];
            self.send_out(move |pool| pool.loader().load_all_ahead(&near));
        }
    }
}

impl Loader<'_> {
    /// Waits for no memory: no page in use is to be evicted for one that may never be needed.
    fn load_ahead(self, id: PageId) {
        let Some(entry) = self.pages.table().entry(id) else { return };
        let PageLocation::Device(location) = entry.load().location() else { return };
        if location.is_segment() {
            return;
        }
        if let Some(frame) = self.pages.frames().spare(location.class()) {
            let _loaded = self.load_into(frame, id, entry, location, Access::Scan);
        }
    }

    /// Loads pages that lie next to each other, but for those that others have begun to load meanwhile.
    pub(super) fn load_all_ahead(self, ids: &[PageId]) {
        let left: Vec<PageId> = ids.iter().copied().filter(|id| self.pages.is_only_on_device(*id)).collect();
        match *left {
            [] => (),
            [one] => self.load_ahead(one),
            _ => self.load_together(&left, Access::Scan),
        }
    }
}
