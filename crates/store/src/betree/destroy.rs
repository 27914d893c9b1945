//! Giving up a tree, and emptying its buffers.

use super::content::Content;
use super::flush::Step;
use super::levels::LEVEL_MIN;
use super::messages::Messages;
use super::progress::Progress;
use super::tree::{BeTree, FlushPermits};
use crate::Error;
use crate::buffered::{Cursor, MemtableCursor, RangeTombstones};
use crate::header::PageId;
use crate::index::{Clearing, Direction, behind};
use crate::pool::{Access, OptimisticGuard};
use crate::task::yield_now;

impl BeTree {
    /// Frees all pages but the root's, the largest keys first, and the overflow values of each once nothing
    /// refers to it. The tree is not in use any more.
    pub(super) fn clear_pages(
        &self,
        _permits: &FlushPermits<'_>,
        clearing: &Clearing<'_>,
    ) -> Result<(), Error> {
        self.clear_memtables(clearing)?;
        loop {
            (clearing.go_on)()?;
            // Once nothing is written any more, memory is soon so full that pages evict each other for ever.
            self.shared.pool.images.check()?;
            let level = self.pages.root_level()?;
            let (guard, mut root) = self.pages.load(self.pages.root, level, Access::Normal)?;
            if root.pivots.is_empty() && root.buffered_bytes() == 0 {
                return Ok(());
            }
            if root.buffered_bytes() > 0 {
                let references = overflow_values(&root.messages);
                (root.messages, root.ranges) = (Messages::default(), RangeTombstones::default());
                self.pages.rewrite(self.pages.root, &self.pages.fit(&root)?)?;
                clearing.free_all(references)?;
                continue;
            }
            self.clear_last(guard, root, clearing)?;
            yield_now();
        }
    }

    fn clear_memtables(&self, clearing: &Clearing<'_>) -> Result<(), Error> {
        let mut progress = std::mem::take(&mut *self.progress());
        self.freeze();
        let mut frozen = std::mem::take(&mut self.memtables_mut().frozen);
        let mut references = Vec::new();
        // The oldest one first: a part of it may be in pages.
        while let Some(memtable) = frozen.pop() {
            let mut cursor = MemtableCursor::new(&memtable, Direction::Forward, progress.start());
            while let Some((key, version, value)) = cursor.get() {
                if version.is_overflow() && !progress.has(key, version) && !planted!(DroppedBufferLeaks) {
                    references.push(value.to_vec());
                }
                cursor.advance()?;
            }
            progress = Progress::default();
        }
        clearing.free_all(references)
    }

    /// Frees the last page without children.
    fn clear_last(
        &self,
        guard: OptimisticGuard<'_>,
        content: Content,
        clearing: &Clearing<'_>,
    ) -> Result<(), Error> {
        let (mut above, mut upper) = (guard, content);
        loop {
            let Some(last) = upper.pivots.last() else { return Ok(()) };
            let (below, child) = self.pages.load(last.child, upper.level - 1, Access::Scan)?;
            if child.level >= LEVEL_MIN && !child.pivots.is_empty() {
                (above, upper) = (below, child);
                continue;
            }
            upper.pivots.pop();
            let guards = self.pages.fresh(&[above.id(), below.id()])?;
            match self.pages.write_and_free((&guards[0], &self.pages.fit(&upper)?), &guards[1]) {
                Ok(()) => return clearing.free_all(overflow_values(&child.messages)),
                Err(denied) => return self.shared.pool.images.recover(denied),
            }
        }
    }

    /// Flushes all messages of memory and buffers into leaves, where removals make room.
    pub(super) fn win_room(&self) -> Result<(), Error> {
        self.between_checkpoints(|permits| {
            self.freeze();
            self.flush(permits)?;
            let emptied = self.empty_all();
            let made = self.pages.ahead.wait_for_all_room();
            emptied.and(made)
        })
    }

    fn empty_all(&self) -> Result<(), Error> {
        loop {
            let level = self.pages.root_level()?;
            self.empty(self.pages.root, level)?;
            self.pages.balance_root()?;
            let (_, root) = self.pages.load(self.pages.root, self.pages.root_level()?, Access::Normal)?;
            if root.buffered_bytes() == 0 {
                return Ok(());
            }
        }
    }

    /// Flushes all messages of a part and the parts below it, unless its node has to be split first.
    fn empty(&self, id: PageId, level: u16) -> Result<(), Error> {
        loop {
            match self.flush_some(id, level, u64::MAX)? {
                Step::Moved => {}
                Step::Empty => break,
                Step::MustSplit => return Ok(()),
            }
        }
        let mut from = Some(Vec::new());
        while let Some(key) = from.filter(|_| level > LEVEL_MIN) {
            let (_, content) = self.pages.load(id, level, Access::Normal)?;
            let place = content.pivots.partition_point(|pivot| pivot.key < key);
            let Some(pivot) = content.pivots.get(place) else { break };
            self.pages.ahead.wait_for_room(pivot.child, level - 1)?;
            self.empty(pivot.child, level - 1)?;
            self.pages.balance(id, level, pivot.child)?;
            from = Some(behind(&pivot.key));
        }
        Ok(())
    }
}

/// The references of the overflow values among messages.
fn overflow_values(messages: &Messages) -> Vec<Vec<u8>> {
    let all = messages.iter(0..messages.len());
    all.filter(|(_, version, _)| version.is_overflow()).map(|(.., value)| value.to_vec()).collect()
}
