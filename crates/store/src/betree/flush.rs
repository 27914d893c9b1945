//! Flushes: messages go from memtables into the root's page, and from there on towards the leaves.

use std::cmp::Reverse;
use std::panic::resume_unwind;

use super::content::{Content, Group, ranges_bytes};
use super::in_place::Changes;
use super::merging::{Flushed, Merging};
use super::messages::{Messages, message_bytes};
use super::part::{self, Part, SLOTS};
use super::progress::Progress;
use super::tree::{BeTree, FlushTurn, LEVEL_MIN};
use crate::Error;
use crate::buffered::{Cursor, Held, KeyVersions, Memtable, MemtableCursor, Merged, RangeTombstones};
use crate::header::PageId;
use crate::index::{Direction, behind};
use crate::pool::{Access, Denied, OptimisticGuard};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::task::yield_now;
use crate::worker::spend_merged;

/// Room is made in at most so many children of a node side by side, and with at most this part of the cache.
const CHILDREN_AT_ONCE: u64 = 16;
const CACHE_DIVISOR: u64 = 4;

/// Parts of level 1 that are read before it is their turn.
const READ_AHEAD: usize = 4;

impl BeTree {
    /// Flushes in the background.
    pub(super) fn send_flush(&self) {
        if self.is_flush_sent.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(own) = self.this.upgrade() else { return };
        let at_work = self.shared.segments.owned.at_work();
        self.shared.executor.spawn(move || {
            // What could not be written stays where it is, in memory and in the log, and is tried again.
            let _tried = own.between_checkpoints(|turn| {
                own.is_flush_sent.store(false, Ordering::SeqCst);
                own.flush(turn)
            });
            drop(at_work);
        });
    }

    /// Does work in the background, and once more behind each checkpoint during which it found no room.
    pub(super) fn between_checkpoints(
        &self,
        work: impl Fn(&FlushTurn<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            let turn = self.take_turn();
            if self.is_cleared.load(Ordering::SeqCst) {
                return Ok(());
            }
            let done = work(&turn);
            drop(turn);
            let is_full = matches!(done, Err(Error::Full { .. }));
            if !is_full || !self.shared.segments.upkeep.wait_for_checkpoint()? {
                return done;
            }
        }
    }

    /// Brings the frozen memtables into pages, the oldest first.
    pub(super) fn flush(&self, _turn: &FlushTurn<'_>) -> Result<(), Error> {
        let flushed = self.flush_frozen();
        // All that was sent out ends before the turn does.
        let made = self.wait_for_all_room();
        if self.is_cleared.load(Ordering::SeqCst) {
            // Nobody needs what is left.
            return Ok(());
        }
        flushed.and(made)
    }

    fn flush_frozen(&self) -> Result<(), Error> {
        loop {
            let frozen = self.memtables().frozen.clone();
            let Some(oldest) = frozen.last() else { return Ok(()) };
            if planted!(MemtableForgottenBeforeFlush) {
                self.memtables_mut().remove(oldest);
            }
            self.take_in(oldest)?;
            self.memtables_mut().remove(oldest);
            if !planted!(NextMemtableBegunWhereLastEnded) {
                *self.progress() = Progress::default();
            }
            self.counters.memtables_flushed.fetch_add(1, Ordering::Relaxed);
            self.update_claim();
        }
    }

    /// Brings what is left of a memtable into the root's page, and so further down: in the order of keys, the
    /// removals of ranges with the messages that they lie between, so that neither overtakes the other.
    fn take_in(&self, memtable: &Arc<Memtable>) -> Result<(), Error> {
        let ranges = self.bounded(&memtable.range_tombstones());
        let progress = self.progress().clone();
        let start = progress.start();
        let cursor: Box<dyn Cursor> = Box::new(MemtableCursor::new(memtable, Direction::Forward, start));
        let mut merged = Merged::new(vec![cursor], Direction::Forward);
        let portion_bytes = self.portion_bytes();
        let (mut portion, mut bytes, mut versions) = (Messages::default(), 0, KeyVersions::default());
        let mut merging = Merging::new(self);
        while merged.next_key(&mut versions)? {
            if versions.key() == progress.from {
                versions.all.retain(|held| !progress.has(&progress.from, held.version));
            }
            let gone_before = merging.gone.len();
            let removed = ranges.of(versions.key());
            merging.leave_out(&mut versions, removed, false);
            let of = |held: &Held| message_bytes(versions.key(), versions.value(held));
            let more_bytes: u64 = versions.all.iter().map(of).sum();
            if bytes + more_bytes > portion_bytes && !portion.is_empty() {
                let end = behind(portion.key(portion.len() - 1));
                self.enter(std::mem::take(&mut portion), &ranges, Some(&end))?;
                merging.give_up_first(gone_before);
                bytes = 0;
            }
            if more_bytes > portion_bytes {
                self.enter_one_by_one(&versions, &ranges)?;
                merging.give_up();
                continue;
            }
            for held in &versions.all {
                portion.push(versions.key(), held.version, versions.value(held));
            }
            bytes += more_bytes;
        }
        self.enter(portion, &ranges, None)?;
        merging.give_up();
        Ok(())
    }

    /// Bytes of messages that enter the root's page at a time: it has room for them when it has no others,
    /// however many pivots it has.
    fn portion_bytes(&self) -> u64 {
        self.shape.filled_bytes() - self.shape.pivots_bytes_max() - u64::from(SLOTS)
    }

    /// The versions of a key enter, of which there are many: the older ones first.
    fn enter_one_by_one(&self, versions: &KeyVersions, ranges: &RangeTombstones) -> Result<(), Error> {
        let key = versions.key();
        self.enter(Messages::default(), ranges, Some(key))?;
        for held in versions.all.iter().rev() {
            let mut one = Messages::default();
            one.push(key, held.version, versions.value(held));
            self.enter_flushed(&Flushed::all(one, RangeTombstones::default()))?;
            *self.progress() = Progress::within(key, held.version);
        }
        self.enter(Messages::default(), ranges, Some(&behind(key)))
    }

    /// The same removals, with ends that are not longer than keys may be, but for a zero behind.
    fn bounded(&self, ranges: &RangeTombstones) -> RangeTombstones {
        let longest = self.shape.key_bytes_max();
        let shortened = |key: &[u8]| match key.get(..longest) {
            // All keys that lie before it are this one and smaller ones.
            Some(first) if key.len() > longest => behind(first),
            _ => key.to_vec(),
        };
        let mut bounded = RangeTombstones::default();
        for fragment in ranges.fragments() {
            for removed_at in &fragment.removed_at {
                bounded.add(&shortened(&fragment.lower), &shortened(&fragment.upper), *removed_at);
            }
        }
        bounded
    }

    /// Messages of a memtable enter the root's page, with the removals of ranges from where the last ones
    /// ended up to, and without, this key, or to the end.
    fn enter(&self, portion: Messages, ranges: &RangeTombstones, end: Option<&[u8]>) -> Result<(), Error> {
        let from = self.progress().from.clone();
        if end.is_some_and(|end| end <= from.as_slice()) {
            return Ok(());
        }
        self.enter_in_parts(Flushed::all(portion, ranges.between(&from, end)))?;
        if let Some(end) = end {
            *self.progress() = Progress::at(end);
        }
        Ok(())
    }

    /// The same, in as many parts as there are too many removals of ranges for one.
    fn enter_in_parts(&self, mut flushed: Flushed) -> Result<(), Error> {
        while ranges_bytes(&flushed.ranges) > self.portion_bytes() {
            let fragments = flushed.ranges.fragments();
            let Some(middle) = fragments.get(fragments.len() / 2).filter(|_| fragments.len() > 1) else {
                break;
            };
            let middle = middle.lower.clone();
            let mut first = flushed.clone();
            flushed.ranges = first.ranges.split_off(&middle);
            flushed.range.start = flushed.messages.first_from(&middle);
            first.range.end = flushed.range.start;
            self.enter_in_parts(first)?;
            *self.progress() = Progress::at(&middle);
        }
        if flushed.range.is_empty() && flushed.ranges.is_empty() {
            return Ok(());
        }
        self.enter_flushed(&flushed)
    }

    fn enter_flushed(&self, flushed: &Flushed) -> Result<(), Error> {
        let needed_bytes = flushed.bytes();
        loop {
            self.check_goes_on()?;
            let level = self.root_level()?;
            if self.summary(self.root, level)?.page_bytes + needed_bytes > self.shape.filled_bytes() {
                self.make_room(self.root, level, needed_bytes)?;
                self.balance_root()?;
                continue;
            }
            let mut merging = Merging::new(self);
            let guard = self.fresh(&[self.root])?[0];
            let changes = self.changes_in_buffer(&mut merging, flushed, &guard);
            let (changed, page_bytes) = if let Some(changes) = changes {
                (self.change_one(&guard, &changes), changes.page_bytes(Part::new(guard.page())))
            } else {
                let (guard, content) = self.load(self.root, level, Access::Normal)?;
                merging = Merging::new(self);
                let content = merging.buffer_with(flushed, content);
                (self.write_one(&guard, &content), content.page_bytes())
            };
            match changed {
                Ok(()) => {
                    merging.give_up();
                    self.counters.flushed(level, needed_bytes, page_bytes);
                    self.pause(needed_bytes);
                    return Ok(());
                }
                Err(denied) => self.shared.pool.images.recover(denied)?,
            }
        }
    }

    /// What changes in a part where it is, if it has room for that.
    fn changes_in_buffer(
        &self,
        merging: &mut Merging<'_>,
        flushed: &Flushed,
        guard: &OptimisticGuard<'_>,
    ) -> Option<Changes> {
        let changes = merging.changes(flushed, guard, false)?;
        let page_bytes = changes.page_bytes(Part::new(guard.page()));
        (page_bytes <= self.shape.filled_bytes()).then_some(changes)
    }

    fn change_one(&self, guard: &OptimisticGuard<'_>, changes: &Changes) -> Result<(), Denied> {
        let section = self.shared.pool.section();
        changes.make(section.lock(guard)?.page());
        Ok(())
    }

    fn write_one(&self, guard: &OptimisticGuard<'_>, content: &Content) -> Result<(), Denied> {
        let section = self.shared.pool.section();
        let locked = section.lock(guard)?;
        part::write(locked.page(), content);
        Ok(())
    }

    /// A page has this content from now on.
    pub(super) fn rewrite(&self, id: PageId, content: &Content) -> Result<(), Error> {
        loop {
            match self.write_one(&self.fresh(&[id])?[0], content) {
                Ok(()) => return Ok(()),
                Err(denied) => self.shared.pool.images.recover(denied)?,
            }
        }
    }

    /// A part gets what it has from now on, and the page below it is free.
    pub(super) fn write_and_free(
        &self,
        (upper, content): (&OptimisticGuard<'_>, &Content),
        below: &OptimisticGuard<'_>,
    ) -> Result<(), Denied> {
        let section = self.shared.pool.section();
        let locked = section.lock(upper)?;
        let (locked, lower) = section.lock_below(locked, below)?;
        part::write(locked.page(), content);
        section.free(lower);
        Ok(())
    }

    /// Others may go on.
    pub(super) fn pause(&self, moved_bytes: u64) {
        spend_merged(moved_bytes);
        yield_now();
    }

    /// Waits until there is room for the next pages that change. Ends work that nobody needs any more.
    pub(super) fn check_goes_on(&self) -> Result<(), Error> {
        if self.is_cleared.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        // Where nothing is written any more, memory is soon so full that pages evict each other for ever.
        self.shared.segments.upkeep.wait_to_change(self.flush_bytes())
    }

    /// The level of the root's page.
    pub(super) fn root_level(&self) -> Result<u16, Error> {
        loop {
            let guard = self.shared.pool.read(self.root, Access::Normal)?;
            let level = Part::new(guard.page()).level();
            if guard.is_valid() {
                return Ok(level.max(LEVEL_MIN));
            }
        }
    }

    /// Flushes messages of a part until it has room for so many bytes, or its node has to be rebuilt first.
    pub(super) fn make_room(&self, id: PageId, level: u16, needed_bytes: u64) -> Result<(), Error> {
        loop {
            self.check_goes_on()?;
            let summary = self.summary(id, level)?;
            let has_room = summary.page_bytes + needed_bytes <= self.shape.filled_bytes();
            if has_room || !summary.has_messages || self.shape.is_out_of_balance(level, &summary) {
                return Ok(());
            }
            let missing_bytes = (summary.page_bytes + needed_bytes).saturating_sub(self.shape.filled_bytes());
            self.flush_some(id, level, missing_bytes)?;
        }
    }

    /// Flushes messages of a part that take so many bytes, or more, or as many as are easily flushed
    /// together.
    pub(super) fn flush_some(&self, id: PageId, level: u16, wanted_bytes: u64) -> Result<(), Error> {
        match level {
            LEVEL_MIN => self.flush_into_leaf(id, wanted_bytes),
            _ => self.flush_into_child(id, level),
        }
    }

    /// Flushes what is on its way to the child to which most is: "the fullest child".
    fn flush_into_child(&self, id: PageId, level: u16) -> Result<(), Error> {
        let (_, groups) = self.look((id, level), Access::Normal, |part| part.groups())?;
        let is_in_place = groups.is_some();
        let mut groups = match groups {
            Some(groups) => groups,
            None => self.load(id, level, Access::Normal)?.1.groups(),
        };
        groups.sort_by_key(|group| Reverse(group.bytes));
        let Some(fullest) = self.fullest_idle(level - 1, &groups) else { return Ok(()) };
        if self.wait_for_room(fullest.child, level - 1)? {
            return self.balance(id, level, fullest.child);
        }
        if level - 1 == LEVEL_MIN {
            let soon = groups.iter().take(READ_AHEAD).map(|group| group.child);
            self.shared.pool.fetch_all(soon, Access::Normal);
        }
        let below = self.summary(fullest.child, level - 1)?;
        let room_bytes = self.shape.filled_bytes().saturating_sub(below.page_bytes);
        let is_out_of_balance = self.shape.is_out_of_balance(level - 1, &below);
        if fullest.bytes > room_bytes && (below.has_messages || is_out_of_balance) {
            return self.make_room_in_children((id, level), &groups);
        }
        if is_in_place && fullest.bytes <= room_bytes && self.move_in_place((id, level), fullest)? {
            return Ok(());
        }
        self.move_some((id, level), fullest, room_bytes)
    }

    /// Moves all that is on its way to a child to it, where both have room for changes in place: `false` if
    /// they have to be written anew.
    fn move_in_place(&self, (id, level): (PageId, u16), group: &Group) -> Result<bool, Error> {
        let guards = self.fresh(&[id, group.child])?;
        let upper = Part::new(guards[0].page());
        let (Some(messages), Some(gone)) =
            (upper.copied(group.numbers()), Changes::without(upper, std::slice::from_ref(group)))
        else {
            return Ok(false);
        };
        if !guards[0].is_valid() {
            return Ok(false);
        }
        let mut merging = Merging::new(self);
        let flushed = Flushed::all(messages, RangeTombstones::default());
        let Some(come) = self.changes_in_buffer(&mut merging, &flushed, &guards[1]) else {
            return Ok(false);
        };
        let page_bytes = come.page_bytes(Part::new(guards[1].page()));
        match self.change_both((&guards[0], &gone), (&guards[1], &come)) {
            Ok(()) => {
                merging.give_up();
                self.counters.flushed(level - 1, group.bytes, page_bytes);
                self.make_room_ahead(group.child, level - 1, page_bytes);
            }
            Err(denied) => self.shared.pool.images.recover(denied)?,
        }
        self.pause(group.bytes);
        Ok(true)
    }

    /// Moves as much of what is on its way to a child as that has room for.
    fn move_some(&self, (id, level): (PageId, u16), group: &Group, room_bytes: u64) -> Result<(), Error> {
        let (guard, content) = self.load(id, level, Access::Normal)?;
        let Some(group) = content.groups().into_iter().find(|own| own.pivot == group.pivot) else {
            return Ok(());
        };
        let (below_guard, below) = self.load(group.child, level - 1, Access::Normal)?;
        let (flushed, rest) = take(content, &group, room_bytes);
        let moved_bytes = flushed.bytes();
        let mut merging = Merging::new(self);
        let below = merging.buffer_with(&flushed, below);
        let guards = self.fresh(&[guard.id(), below_guard.id()])?;
        match self.write_both((&guards[0], &rest), (&guards[1], &below)) {
            Ok(()) => {
                merging.give_up();
                self.counters.flushed(level - 1, moved_bytes, below.page_bytes());
            }
            Err(denied) => self.shared.pool.images.recover(denied)?,
        }
        self.pause(moved_bytes);
        Ok(())
    }

    /// Makes room for what is on its way to the fullest children, in several of them side by side: below
    /// different children nothing is common.
    fn make_room_in_children(&self, (id, level): (PageId, u16), groups: &[Group]) -> Result<(), Error> {
        let below = level - 1;
        let least_bytes = groups.first().map_or(0, |group| group.bytes / 2);
        let large = groups.iter().filter(|group| group.bytes >= least_bytes);
        let large: Vec<&Group> = large.take(self.children_at_once()).collect();
        for group in &large {
            self.wait_for_room(group.child, below)?;
        }
        let mut others = Vec::new();
        for (number, group) in large.iter().enumerate() {
            let (child, wanted_bytes) = (group.child, group.bytes);
            // The first one is the caller's, as soon as the others are under way.
            if let Some(own) = self.this.upgrade().filter(|_| number > 0) {
                let make_room = move || own.make_room(child, below, wanted_bytes);
                others.push(self.shared.executor.run_for(make_room));
            }
        }
        let first = groups.first().map(|group| (group.child, group.bytes));
        let mut made = first.map_or(Ok(()), |(child, bytes)| self.make_room(child, below, bytes));
        // All of them end before any error is returned.
        for other in others {
            made = made.and(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        made?;
        large.into_iter().try_for_each(|group| self.balance(id, level, group.child))
    }

    /// Children in which room is made side by side: each has memory for its leaf's pages.
    pub(super) fn children_at_once(&self) -> usize {
        let budget_bytes = self.shared.pool.pages.budget_bytes();
        (budget_bytes / CACHE_DIVISOR / self.child_flush_bytes()).clamp(1, CHILDREN_AT_ONCE) as usize
    }

    /// Bytes of the pages that are changed while room is made in a child, more or less.
    pub(super) fn child_flush_bytes(&self) -> u64 {
        2 * self.shape.part_bytes() + self.leaf_batch_bytes()
    }

    /// Messages move from a part to the one of its child, as one change for a checkpoint.
    fn change_both(
        &self,
        (upper, gone): (&OptimisticGuard<'_>, &Changes),
        (lower, come): (&OptimisticGuard<'_>, &Changes),
    ) -> Result<(), Denied> {
        if planted!(FlushedInTwoSections) {
            self.change_one(upper, gone)?;
            yield_now();
            return self.change_one(lower, come);
        }
        let section = self.shared.pool.section();
        let upper = section.lock(upper)?;
        let (upper, lower) = section.lock_below(upper, lower)?;
        come.make(lower.page());
        gone.make(upper.page());
        Ok(())
    }

    /// A part and one of its child get what they have from now on: a checkpoint has both or neither.
    fn write_both(
        &self,
        (upper, rest): (&OptimisticGuard<'_>, &Content),
        (lower, below): (&OptimisticGuard<'_>, &Content),
    ) -> Result<(), Denied> {
        if planted!(FlushedInTwoSections) {
            self.write_one(upper, rest)?;
            yield_now();
            return self.write_one(lower, below);
        }
        let section = self.shared.pool.section();
        let upper = section.lock(upper)?;
        let (upper, lower) = section.lock_below(upper, lower)?;
        part::write(lower.page(), below);
        part::write(upper.page(), rest);
        Ok(())
    }
}

/// Takes a group out of a part, or as much of it as has room in so many bytes; what goes, and what stays.
fn take(mut content: Content, group: &Group, room_bytes: u64) -> (Flushed, Content) {
    let messages = Arc::new(std::mem::take(&mut content.messages));
    let (lower, upper) = {
        let (lower, upper) = content.interval(group.pivot);
        (lower.to_vec(), upper.map(<[u8]>::to_vec))
    };
    let mut flushed = Flushed {
        messages: Arc::clone(&messages),
        range: group.messages.clone(),
        ranges: content.ranges_of(group.pivot),
    };
    let mut up_to = upper;
    while flushed.bytes() > room_bytes {
        let Some(middle) = middle_key(&flushed) else { break };
        flushed.range.end = messages.first_from(&middle);
        flushed.ranges.split_off(&middle);
        up_to = Some(middle);
    }
    if flushed.bytes() > room_bytes && flushed.range.len() > 1 {
        // One key has more versions than there is room for. The older ones go first, and no removals of
        // ranges before them.
        let mut first = flushed.range.end;
        let mut bytes = 0;
        while first > flushed.range.start {
            bytes += messages.page_bytes(first - 1..first);
            if bytes > room_bytes && first < flushed.range.end {
                break;
            }
            first -= 1;
        }
        flushed.range.start = first;
        flushed.ranges = RangeTombstones::default();
    } else {
        content.ranges.remove_between(&lower, up_to.as_deref());
    }
    let mut rest = Messages::default();
    let stays = usize::from(flushed.range.len() > 1 && planted!(MessageStaysAbove));
    rest.extend(&messages, 0..flushed.range.start + stays);
    rest.extend(&messages, flushed.range.end..messages.len());
    content.messages = rest;
    (flushed, content)
}

/// A key that has some of what comes before it, and some not; `None` if all of that is one key's.
fn middle_key(flushed: &Flushed) -> Option<Vec<u8>> {
    let Flushed { messages, range, ranges } = flushed;
    let first = messages.key(range.start);
    let middle = messages.key(range.start + range.len() / 2);
    if range.len() > 1 && middle > first {
        return Some(middle.to_vec());
    }
    let behind_first = range.clone().map(|number| messages.key(number)).find(|key| *key > first);
    if let Some(key) = behind_first.filter(|_| !range.is_empty()) {
        return Some(key.to_vec());
    }
    let fragments = ranges.fragments();
    (fragments.len() > 1).then(|| fragments[fragments.len() / 2].lower.clone())
}
