//! Implements the boundary of indexes for Bε-trees.

use std::borrow::Cow;
use std::task::Poll;

use flashgrain_settings::layout::Decision;

use super::scan::BeTreeScan;
use super::tree::BeTree;
use crate::Error;
use crate::buffered::{Retention, StagedMemtables, made_before};
use crate::header::PageId;
use crate::index::{
    BeTreeStats, Census, Clearing, Commit, Direction, Found, Index, Limits, May, Newest, Prior, Reapplied,
    RemovesRanges, SeeVersion, Staged, Steps, TreeOperations, Version, Write, Written, behind,
};
use crate::log::{LogRecord, Timestamp};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

/// A change makes about this part of a basement node dirty: many share one.
const DIRTIED_DIVISOR: u64 = 4;

impl Index for BeTree {
    fn read(
        &self,
        key: &[u8],
        at: Option<Timestamp>,
        may: May,
        into: &mut Vec<u8>,
    ) -> Result<Poll<Found>, Error> {
        let found = self.look_up(key, at.unwrap_or(Timestamp(u64::MAX)), may, into)?;
        if found.is_ready() {
            self.pages.counters.operations.look_up();
        }
        Ok(found)
    }

    fn newest_since(&self, key: &[u8], since: Timestamp, may: May) -> Result<Poll<Newest>, Error> {
        let found = self.newest(key, Timestamp(u64::MAX), may)?;
        Ok(found.map(|found| Newest::of(found.map(Version::timestamp), since)))
    }

    fn apply(
        &self,
        writes: &[Written<'_>],
        _priors: &[Prior],
        _values: &[u8],
        commit: &Commit<'_>,
    ) -> Result<(), Error> {
        self.pages.counters.operations.writes(writes.len());
        for written in writes {
            self.put(written.key, written.write, commit.record);
            preempt!();
        }
        Ok(())
    }

    fn stage<'a>(&'a self, writes: &[Written<'_>]) -> Option<Box<dyn Staged + 'a>> {
        let bytes = (self.pages.shape.memtable_bytes, self.pages.shape.record_bytes_max());
        let memtables = StagedMemtables::of(writes, &self.shared.pool, bytes)?;
        Some(Box::new(StagedWrites { tree: self, memtables, count: writes.len() }))
    }

    fn admit(&self) -> Result<(), Error> {
        self.trouble.check(self.pages.id).inspect_err(|_| self.send_flush())
    }

    fn takes_operands(&self) -> bool {
        true
    }

    fn removes_ranges(&self) -> Option<&dyn RemovesRanges> {
        Some(self)
    }

    fn reapply(&self, key: &[u8], write: Write<'_>, record: LogRecord) -> Result<Reapplied, Error> {
        let newest_at = |at| {
            let found = self.newest(key, at, May::Wait)?;
            Ok(if let Poll::Ready(found) = found { found.map(Version::timestamp) } else { None })
        };
        let looked = self.trouble.replayed(record, || made_before(record, newest_at))?;
        if let Some(reapplied) = looked {
            return Ok(reapplied);
        }
        self.put(key, write, record);
        Ok(Reapplied::default())
    }

    fn scan(
        self: Arc<Self>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        ahead: u32,
        at: Timestamp,
    ) -> Box<dyn Steps> {
        self.pages.counters.operations.scan();
        let (lower, upper) = (lower.to_vec(), upper.map(<[u8]>::to_vec));
        Box::new(BeTreeScan::new(self, direction, (lower, upper), (ahead, at)))
    }

    fn scan_unmerged(self: Arc<Self>, ahead: u32, at: Timestamp) -> Box<dyn Steps> {
        Box::new(BeTreeScan::new(self, Direction::Forward, (Vec::new(), None), (ahead, at)).unmerged())
    }

    fn limits(&self) -> Limits {
        Limits {
            key_bytes: self.pages.shape.key_bytes_max(),
            value_bytes: self.pages.shape.value_bytes_max(),
            node_bytes: self.pages.shape.basement_bytes() as usize,
        }
    }

    fn dirtied_bytes(&self) -> u64 {
        self.pages.shape.basement_bytes() / DIRTIED_DIVISOR
    }

    fn replay_from(&self) -> Option<LogRecord> {
        let memtables = self.memtables();
        if !memtables.frozen.is_empty() && planted!(FrozenBufferNotReplayed) {
            return memtables.active.first();
        }
        memtables.first().into_iter().chain(self.trouble.lacks_from()).min()
    }

    fn before_cut(&self, may: May) -> Result<(), Error> {
        let permits = match (self.try_acquire_flush(), may) {
            (Some(permits), _) => permits,
            (None, May::Wait) => self.acquire_flush(),
            // A flush that is under way may wait for this checkpoint. Messages that are not flushed stay in
            // the log.
            (None, May::NotWait) => return Ok(()),
        };
        if self.is_cleared.load(Ordering::SeqCst) {
            return Ok(());
        }
        // A memtable that has hardly begun to fill stays in the log, but not for two checkpoints.
        let first = self.memtables().active.first();
        let is_old = self.cuts.pass(first, &self.shared);
        if is_old || may == May::Wait {
            self.freeze();
        }
        let flushed = self.flush(&permits);
        if matches!(flushed, Err(Error::Full { .. })) {
            // After this checkpoint there may be room.
            self.send_flush();
        }
        flushed
    }

    fn make_room(&self) {
        let Some(own) = self.this.upgrade() else { return };
        if self.is_making_room.swap(true, Ordering::Relaxed) {
            return;
        }
        let at_work = self.shared.segments.owned.at_work();
        self.shared.executor.spawn(move || {
            // After an error, the next call tries again.
            let _tried = own.win_room();
            own.is_making_room.store(false, Ordering::Relaxed);
            drop(at_work);
        });
    }

    fn withdraw(&self, _end_bytes: u64) -> Result<(), Error> {
        // Removals in buffers free space once they reach leaves.
        self.win_room()
    }

    fn stop(&self) -> Result<(), Error> {
        let permits = self.acquire_flush();
        if self.is_cleared.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.freeze();
        self.flush(&permits)
    }

    fn in_memory_bytes(&self) -> u64 {
        self.memtables().used_bytes()
    }

    fn debt(&self) -> f64 {
        // A tree that takes no writes slows no others down.
        if self.trouble.is_there() { 0.0 } else { self.memtables().debt(1) }
    }

    fn decisions(&self) -> Vec<Decision> {
        self.decided.decisions(&self.pages.shape, self.shared.room)
    }

    fn operations(&self) -> TreeOperations {
        self.pages.counters.operations.all()
    }

    fn be_tree_stats(&self) -> Option<BeTreeStats> {
        let memtables = self.memtables().filled();
        let permits = self.page_changes.acquire_all();
        let fills = self.pages.fills(&permits).ok()?;
        Some(self.pages.counters.stats(&fills, memtables))
    }

    fn walk(&self, page: &mut dyn FnMut(PageId), record: SeeVersion<'_>) -> Result<Census, Error> {
        self.trouble.check_whole(self.pages.id)?;
        let permits = self.page_changes.acquire_all();
        self.check(&permits, page, record)
    }

    fn clear(&self, clearing: &Clearing<'_>) -> Result<(), Error> {
        // From then on nothing else puts into pages the references that are in memory.
        (clearing.go_on)()?;
        self.is_cleared.store(true, Ordering::SeqCst);
        // No flush runs any more.
        let permits = self.acquire_flush();
        self.update_reservation();
        self.clear_pages(&permits, clearing)
    }

    fn destroy(&self) -> Result<(), Error> {
        self.shared.pool.free_unread(self.pages.root)
    }
}

impl BeTree {
    /// A bound that divides the existing keys in the same way, and is at most one zero byte longer than the
    /// longest of them.
    fn bounded<'b>(&self, bound: &'b [u8]) -> Cow<'b, [u8]> {
        match bound.split_at_checked(self.pages.shape.bound_bytes_max()) {
            // All keys that lie before the bound are this one and smaller ones.
            Some((first, [_, ..])) => behind(first).into(),
            _ => bound.into(),
        }
    }
}

/// Writes of a commit that are in memtables of their own.
struct StagedWrites<'a> {
    tree: &'a BeTree,
    memtables: StagedMemtables,
    count: usize,
}

impl Staged for StagedWrites<'_> {
    fn apply(self: Box<Self>, record: LogRecord) {
        let Self { tree, memtables, count } = *self;
        tree.pages.counters.operations.writes(count);
        memtables.stamp(record);
        memtables.freeze(&mut tree.memtables_mut());
        tree.dead.all_written();
        tree.update_reservation();
        tree.send_flush();
    }
}

impl RemovesRanges for BeTree {
    fn remove_range(&self, lower: &[u8], upper: &[u8], record: LogRecord) {
        let (lower, upper) = (self.bounded(lower), self.bounded(upper));
        let horizon = self.shared.horizon();
        let retention = horizon.as_deref().map(Retention::new);
        self.change(|memtable| memtable.remove_range(&lower, &upper, record, retention.as_ref()));
    }

    fn reapply_range(&self, lower: &[u8], upper: &[u8], record: LogRecord) -> Result<(), Error> {
        // It hides nothing that is newer, wherever that lies.
        self.remove_range(lower, upper, record);
        Ok(())
    }
}
