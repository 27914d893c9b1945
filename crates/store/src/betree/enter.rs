//! Messages of a memtable enter the root's page, in portions, in the order of keys.

use super::division::middle_key;
use super::flush::Step;
use super::merging::{Flushed, Merging};
use super::messages::{Messages, message_bytes};
use super::part::Part;
use super::progress::Progress;
use super::tree::BeTree;
use crate::Error;
use crate::buffered::{Cursor, Held, KeyVersions, Memtable, MemtableCursor, Merged, RangeTombstones};
use crate::index::{Direction, behind};
use crate::pool::Access;
use crate::sync::Arc;

impl BeTree {
    /// Moves the rest of a memtable into the root's page, and so further down: in the order of keys, the
    /// removals of ranges with the messages that they lie between, so that neither overtakes the other.
    pub(super) fn take_in(&self, memtable: &Arc<Memtable>) -> Result<(), Error> {
        let mut merging = Merging::new(self);
        let taken = self.take_in_by(memtable, &mut merging);
        match taken {
            Ok(()) => merging.give_up(),
            // The next flush goes on after the messages that have entered, and does not see the versions that
            // were left out of them.
            Err(_) => merging.give_up_entered(&self.progress().clone()),
        }
        taken
    }

    fn take_in_by(&self, memtable: &Arc<Memtable>, merging: &mut Merging<'_>) -> Result<(), Error> {
        let progress = self.progress().clone();
        let start = progress.start();
        let cursor: Box<dyn Cursor> = Box::new(MemtableCursor::new(memtable, Direction::Forward, start));
        let mut merged = Merged::new(vec![cursor], Direction::Forward);
        let (mut portion, mut bytes, mut versions) = (Messages::default(), 0, KeyVersions::default());
        let ranges = merging.needed(memtable.range_tombstones());
        self.pages.learn_longest_key()?;
        self.pages.note_bounds(&ranges)?;
        while merged.next_key(&mut versions)? {
            if versions.key() == progress.from {
                versions.all.retain(|held| !progress.has(&progress.from, held.version));
            }
            let removed = ranges.of(versions.key());
            merging.leave_out(&mut versions, removed, false);
            self.pages.note_key(versions.key())?;
            let portion_bytes = self.pages.portion_bytes();
            let of = |held: &Held| message_bytes(versions.key(), versions.value(held));
            let more_bytes: u64 = versions.all.iter().map(of).sum();
            if bytes + more_bytes > portion_bytes && !portion.is_empty() {
                let end = behind(portion.key(portion.len() - 1));
                self.enter(std::mem::take(&mut portion), &ranges, Some(&end))?;
                merging.give_up_entered(&self.progress().clone());
                bytes = 0;
            }
            if more_bytes > portion_bytes {
                self.enter_one_by_one(&versions, &ranges)?;
                merging.give_up_entered(&self.progress().clone());
                continue;
            }
            for held in &versions.all {
                portion.push(versions.key(), held.version, versions.value(held));
            }
            bytes += more_bytes;
        }
        self.enter(portion, &ranges, None)
    }

    /// Many versions of one key enter: the older ones first, each with the removals of ranges before it.
    fn enter_one_by_one(&self, versions: &KeyVersions, ranges: &RangeTombstones) -> Result<(), Error> {
        let key = versions.key();
        self.enter(Messages::default(), ranges, Some(key))?;
        let removed = ranges.between(key, Some(&behind(key)));
        for held in versions.all.iter().rev() {
            let mut one = Messages::default();
            one.push(key, held.version, versions.value(held));
            let mut before = removed.clone();
            before.take_newer_than(Some(held.version.timestamp()));
            self.enter_piece(&Flushed::all(one, before))?;
            *self.progress() = Progress::within(key, held.version);
        }
        self.enter(Messages::default(), ranges, Some(&behind(key)))
    }

    /// Messages of a memtable enter the root's page, with the removals of ranges from where the last ones
    /// ended up to, and without, this key, or to the end.
    fn enter(&self, portion: Messages, ranges: &RangeTombstones, end: Option<&[u8]>) -> Result<(), Error> {
        let from = self.progress().from.clone();
        if end.is_some_and(|end| end <= from.as_slice()) {
            return Ok(());
        }
        let mut rest = vec![Flushed::all(portion, ranges.between(&from, end))];
        let no_keys = Messages::default();
        // The first keys are last.
        while let Some(mut flushed) = rest.pop() {
            if flushed.bytes() > self.pages.portion_bytes()
                && let Some(middle) = middle_key(&flushed, &no_keys)
            {
                let behind = flushed.take_from(&middle);
                rest.extend([behind, flushed]);
                continue;
            }
            if !flushed.is_empty() {
                self.enter_piece(&flushed)?;
            }
            if let Some(next) = rest.last() {
                *self.progress() = Progress::at(next.first_key());
            }
        }
        if let Some(end) = end {
            *self.progress() = Progress::at(end);
        }
        preempt!();
        Ok(())
    }

    /// A piece enters that an otherwise empty root has room for. Each round either makes the root's buffer
    /// smaller, or splits a node.
    fn enter_piece(&self, flushed: &Flushed) -> Result<(), Error> {
        let needed_bytes = flushed.bytes();
        loop {
            preempt!();
            self.check_goes_on()?;
            let level = self.pages.root_level()?;
            let summary = self.pages.summary(self.pages.root, level)?;
            let filled_bytes = self.pages.filled_bytes();
            let missing_bytes = (summary.page_bytes + needed_bytes).saturating_sub(filled_bytes);
            if missing_bytes == 0 && self.put_into_root(flushed, level)? {
                return Ok(());
            }
            match self.flush_some(self.pages.root, level, missing_bytes.max(1))? {
                Step::Moved => {}
                Step::MustSplit => self.pages.balance_root()?,
                // Only pivots are left: they go to another node.
                Step::Empty if summary.pivots > 1 => self.pages.raise_root()?,
                Step::Empty => return Err(self.pages.no_room("removals of a range", needed_bytes)),
            }
        }
    }

    /// Puts a piece into the root's page; `false` if that has no room for it.
    fn put_into_root(&self, flushed: &Flushed, level: u16) -> Result<bool, Error> {
        loop {
            let mut merging = Merging::new(self);
            let guard = self.pages.fresh(&[self.pages.root])?[0];
            let (changed, page_bytes) =
                if let Some(changes) = self.changes_in_buffer(&mut merging, flushed, &guard) {
                    (self.pages.change_one(&guard, &changes), changes.page_bytes(Part::new(guard.page())))
                } else {
                    let (guard, content) = self.pages.load(self.pages.root, level, Access::Normal)?;
                    merging = Merging::new(self);
                    let content = merging.buffer_with(flushed, content);
                    let Some(fitting) = content.fit(self.pages.filled_bytes()) else { return Ok(false) };
                    (self.pages.write_one(&guard, &fitting), fitting.page_bytes())
                };
            match changed {
                Ok(()) => {
                    merging.give_up();
                    self.pages.counters.flushed(level, flushed.bytes(), page_bytes);
                    self.pause(flushed.bytes());
                    return Ok(true);
                }
                Err(denied) => self.shared.pool.images.recover(denied)?,
            }
        }
    }
}
