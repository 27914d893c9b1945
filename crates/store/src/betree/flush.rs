//! Flushes: messages go from memtables into the root's page, and from there on towards the leaves.
//!
//! A *step* moves messages one level down, or splits a node. A step of a node needs room in a child, which
//! steps of the child make: calls are as deep as there are levels, and a node is never flushed for its own
//! sake. The measure that decreases: for each message its level, for each removal of a range the level for
//! each basement node that it covers. A split leaves that as it is, and leaves fewer pivots in each node; a
//! node that must be split stops its own steps, and its parent, which always has room for one more pivot
//! unless it must be split itself, goes on. The root is raised. See [`Shape`](super::shape::Shape) for the
//! limits, and [`division`](super::division) for the messages that move if not all have room.

use std::cmp::Reverse;
use std::panic::resume_unwind;

use super::content::Group;
use super::division::{Taken, take};
use super::in_place::Changes;
use super::levels::LEVEL_MIN;
use super::merging::{Flushed, Merging};
use super::messages::Messages;
use super::part::Part;
use super::progress::Progress;
use super::tree::{BeTree, FlushPermits};
use crate::Error;
use crate::buffered::RangeTombstones;
use crate::header::PageId;
use crate::index::is_eager;
use crate::pool::{Access, OptimisticGuard};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::task::yield_now;
use crate::worker::spend_merged;

/// Room is made in at most `CHILDREN_AT_ONCE` children of a node in parallel, with this part of the cache.
const CHILDREN_AT_ONCE: u64 = 16;
const CACHE_DIVISOR: u64 = 4;

/// Parts of level 1 that are read ahead.
const READ_AHEAD: usize = 4;

/// The share of a part that is kept free by making room ahead.
const ROOM_DIVISOR: u64 = 4;
/// The same for tests with little data.
const EAGER_ROOM_DIVISOR: u64 = 2;

/// The result of a step of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Some of the part's messages are one level further down.
    Moved,
    /// The part has no messages.
    Empty,
    /// The node has to be split before anything more is flushed out of it.
    MustSplit,
}

impl BeTree {
    /// Flushes in the background.
    pub(super) fn send_flush(&self) {
        if self.is_flush_sent.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(own) = self.this.upgrade() else { return };
        let at_work = self.shared.segments.owned.at_work();
        self.shared.executor.spawn(move || {
            // Messages that could not be written stay in memory and in the log, and are tried again.
            let _tried = own.between_checkpoints(|permits| {
                own.is_flush_sent.store(false, Ordering::SeqCst);
                own.flush(permits)
            });
            drop(at_work);
        });
    }

    /// Does work in the background, and repeats it after each checkpoint as long as it finds the store full.
    pub(super) fn between_checkpoints(
        &self,
        work: impl Fn(&FlushPermits<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            let permits = self.acquire_flush();
            if self.is_cleared.load(Ordering::SeqCst) {
                return Ok(());
            }
            let done = work(&permits);
            drop(permits);
            let is_full = matches!(done, Err(Error::Full { .. }));
            if !is_full || !self.shared.segments.upkeep.wait_for_checkpoint()? {
                return done;
            }
        }
    }

    /// Brings the frozen memtables into pages, the oldest first.
    pub(super) fn flush(&self, _permits: &FlushPermits<'_>) -> Result<(), Error> {
        self.trouble.check_whole(self.pages.id)?;
        let flushed = self.flush_frozen();
        // All tasks that were started end before the permits go.
        let made = self.pages.ahead.wait_for_all_room();
        if self.is_cleared.load(Ordering::SeqCst) {
            // The rest is not needed any more.
            return Ok(());
        }
        let flushed = flushed.and(made);
        self.trouble.note(&flushed);
        flushed
    }

    fn flush_frozen(&self) -> Result<(), Error> {
        loop {
            let frozen = self.current_memtables().frozen;
            let Some(oldest) = frozen.last() else { return Ok(()) };
            if planted!(MemtableForgottenBeforeFlush) {
                self.memtables_mut().remove(oldest);
            }
            self.take_in(oldest)?;
            self.memtables_mut().remove(oldest);
            if !planted!(NextMemtableBegunWhereLastEnded) {
                *self.progress() = Progress::default();
            }
            self.pages.counters.memtables_flushed.fetch_add(1, Ordering::Relaxed);
            self.update_reservation();
        }
    }

    /// The changes of a part in place, if it has room for them.
    pub(super) fn changes_in_buffer(
        &self,
        merging: &mut Merging<'_>,
        flushed: &Flushed,
        guard: &OptimisticGuard<'_>,
    ) -> Option<Changes> {
        let changes = merging.changes(flushed, guard, false)?;
        let page_bytes = changes.page_bytes(Part::new(guard.page()));
        (page_bytes <= self.pages.filled_bytes()).then_some(changes)
    }

    /// Lets other tasks run.
    pub(super) fn pause(&self, moved_bytes: u64) {
        spend_merged(moved_bytes);
        yield_now();
    }

    /// Waits until there is room for the next pages that change. Fails if the tree was cleared.
    pub(super) fn check_goes_on(&self) -> Result<(), Error> {
        if self.is_cleared.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        // Once nothing is written any more, memory is soon so full that pages evict each other for ever.
        self.shared.segments.upkeep.wait_to_change(self.least_flush_bytes())
    }

    /// Flushes messages of a part until it has room for `needed_bytes`, or its node has to be split first.
    pub(super) fn make_room(&self, id: PageId, level: u16, needed_bytes: u64) -> Result<(), Error> {
        loop {
            let summary = self.pages.summary(id, level)?;
            let wanted_bytes = summary.page_bytes.saturating_add(needed_bytes);
            let missing_bytes = wanted_bytes.saturating_sub(self.pages.filled_bytes());
            if missing_bytes == 0 || self.flush_some(id, level, missing_bytes)? != Step::Moved {
                return Ok(());
            }
        }
    }

    /// Flushes messages of a part with at least `wanted_bytes`, or as many as are easily flushed together.
    pub(super) fn flush_some(&self, id: PageId, level: u16, wanted_bytes: u64) -> Result<Step, Error> {
        match level {
            LEVEL_MIN => self.flush_into_leaf(id, wanted_bytes),
            _ => self.flush_into_child(id, level),
        }
    }

    /// Flushes messages to "the fullest child", the one that has the most of them. Each round splits the
    /// child, makes room in it by flushes of lower levels, or ends.
    fn flush_into_child(&self, id: PageId, level: u16) -> Result<Step, Error> {
        loop {
            self.check_goes_on()?;
            let own = self.pages.summary(id, level)?;
            if !own.has_messages || self.pages.must_split(level, &own) {
                return Ok(if own.has_messages { Step::MustSplit } else { Step::Empty });
            }
            let (_, groups) = self.pages.look((id, level), Access::Normal, |part| part.groups())?;
            let is_in_place = groups.is_some();
            let mut groups = match groups {
                Some(groups) => groups,
                None => self.pages.load(id, level, Access::Normal)?.1.groups(),
            };
            let first = groups.first().cloned();
            groups.sort_by_key(|group| Reverse(group.bytes));
            let Some(place) = self.pages.ahead.fullest_idle(level - 1, &groups) else {
                return Ok(Step::Empty);
            };
            groups.swap(0, place);
            let fullest = &groups[0];
            let has_waited = self.pages.ahead.wait_for_room(fullest.child, level - 1)?;
            let below = self.pages.summary(fullest.child, level - 1)?;
            if has_waited || self.pages.must_split(level - 1, &below) {
                self.pages.balance(id, level, fullest.child)?;
                continue;
            }
            if level - 1 == LEVEL_MIN {
                let soon = groups.iter().take(READ_AHEAD).map(|group| group.child);
                self.shared.pool.fetch_all(soon, Access::Normal);
            }
            let room_bytes = self.pages.filled_bytes().saturating_sub(below.page_bytes);
            if fullest.bytes > room_bytes && below.has_messages {
                self.make_room_in_children((id, level), &groups)?;
                continue;
            }
            let moves_in_place = is_in_place && fullest.bytes <= room_bytes;
            if moves_in_place && self.move_in_place((id, level), fullest)? {
                return Ok(Step::Moved);
            }
            if let Some(step) = self.move_where_it_fits((id, level), fullest, first.as_ref())? {
                return Ok(step);
            }
        }
    }

    /// Moves some messages to the fullest child. If that would leave more pieces of ranges than the part has
    /// room for, it moves the first child's, which never leave more. `None` if there is more room below now.
    fn move_where_it_fits(
        &self,
        (id, level): (PageId, u16),
        fullest: &Group,
        first: Option<&Group>,
    ) -> Result<Option<Step>, Error> {
        if self.move_some((id, level), fullest)? {
            return Ok(Some(Step::Moved));
        }
        let below = level - 1;
        for group in [Some(fullest), first.filter(|first| first.pivot != fullest.pivot)].into_iter().flatten()
        {
            self.pages.ahead.wait_for_room(group.child, below)?;
            if group.pivot != fullest.pivot && self.move_some((id, level), group)? {
                return Ok(Some(Step::Moved));
            }
            match self.flush_some(group.child, below, 1)? {
                Step::Moved => return Ok(None),
                Step::MustSplit => return self.pages.balance(id, level, group.child).map(|()| None),
                Step::Empty => {}
            }
        }
        Err(self.pages.no_room("messages and removals of ranges", fullest.bytes))
    }

    /// Moves all messages for a child to it, if both have room for changes in place: `false` if they have to
    /// be written anew.
    fn move_in_place(&self, (id, level): (PageId, u16), group: &Group) -> Result<bool, Error> {
        let guards = self.pages.fresh(&[id, group.child])?;
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
        match self.pages.change_both((&guards[0], &gone), (&guards[1], &come)) {
            Ok(()) => {
                merging.give_up();
                self.pages.counters.flushed(level - 1, group.bytes, page_bytes);
                self.make_room_ahead(group.child, level - 1, page_bytes);
            }
            Err(denied) => self.shared.pool.images.recover(denied)?,
        }
        self.pause(group.bytes);
        Ok(true)
    }

    /// Moves as many messages to a child as both have room for; `false` if they have room for none.
    fn move_some(&self, (id, level): (PageId, u16), group: &Group) -> Result<bool, Error> {
        let (guard, mut content) = self.pages.load(id, level, Access::Normal)?;
        let Some(group) = content.groups().into_iter().find(|own| own.pivot == group.pivot) else {
            return Ok(false);
        };
        let (below_guard, below) = self.pages.load(group.child, level - 1, Access::Normal)?;
        let messages = Arc::new(std::mem::take(&mut content.messages));
        let mut room_bytes = self.pages.filled_bytes().saturating_sub(below.page_bytes());
        loop {
            let Taken { flushed, rest } = take(&content, &messages, &group, room_bytes, &Messages::default());
            let moved_bytes = flushed.bytes();
            let mut merging = Merging::new(self);
            let below = merging.buffer_with(&flushed, below.clone());
            let fitting = below.fit(self.pages.filled_bytes()).zip(rest.fit(self.pages.shape.part_bytes()));
            let Some((below, rest)) = fitting else {
                if moved_bytes > room_bytes {
                    return Ok(false);
                }
                room_bytes = moved_bytes / 2;
                continue;
            };
            let guards = self.pages.fresh(&[guard.id(), below_guard.id()])?;
            match self.pages.write_both((&guards[0], &rest), (&guards[1], &below)) {
                Ok(()) => {
                    merging.give_up();
                    self.pages.counters.flushed(level - 1, moved_bytes, below.page_bytes());
                }
                Err(denied) => self.shared.pool.images.recover(denied)?,
            }
            self.pause(moved_bytes);
            return Ok(true);
        }
    }

    /// Starts to make room in a part that has `page_bytes` in use, if it will soon be full, and if there is
    /// memory for that. The caller may change the part.
    pub(super) fn make_room_ahead(&self, id: PageId, level: u16, page_bytes: u64) {
        let divisor = if is_eager() { EAGER_ROOM_DIVISOR } else { ROOM_DIVISOR };
        let wanted_bytes = self.pages.shape.part_bytes() / divisor;
        if level < LEVEL_MIN || page_bytes + wanted_bytes <= self.pages.filled_bytes() {
            return;
        }
        let Some(own) = self.this.upgrade() else { return };
        let make_room = move || own.make_room(id, level, wanted_bytes);
        self.pages.ahead.send_out(&self.shared.executor, (level, id), self.children_with_room(), make_room);
    }

    /// Makes room in several of the fullest children in parallel: different children have no pages in common.
    fn make_room_in_children(&self, (id, level): (PageId, u16), groups: &[Group]) -> Result<(), Error> {
        let below = level - 1;
        let least_bytes = groups.first().map_or(0, |group| group.bytes / 2);
        let large = groups.iter().filter(|group| group.bytes >= least_bytes);
        let large: Vec<&Group> = large.take(self.children_with_room()).collect();
        for group in &large {
            self.pages.ahead.wait_for_room(group.child, below)?;
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
        // All tasks end before any error is returned.
        for other in others {
            made = made.and(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        made?;
        large.into_iter().try_for_each(|group| self.pages.balance(id, level, group.child))
    }

    /// The number of children that make room in parallel: each has memory for its leaf's pages.
    pub(super) fn children_at_once(&self) -> usize {
        // The dirty pages of flushes take room from records: on a small device fewer run at a time.
        let budget_bytes = self.shared.pool.pages.budget_bytes().min(self.shared.room.device_bytes / 4);
        (budget_bytes / CACHE_DIVISOR / self.child_flush_bytes()).clamp(1, CHILDREN_AT_ONCE) as usize
    }

    /// The number of them that the device has room for at present: one at a time if it is nearly full.
    pub(super) fn children_with_room(&self) -> usize {
        let room_bytes = self.shared.segments.upkeep.room_to_change();
        let more = room_bytes.saturating_sub(self.least_flush_bytes()) / (2 * self.child_flush_bytes());
        self.children_at_once().min(usize::try_from(more).unwrap_or(usize::MAX).saturating_add(1))
    }

    /// About the bytes of the pages that are changed while room is made in a child.
    pub(super) fn child_flush_bytes(&self) -> u64 {
        2 * self.pages.shape.part_bytes() + self.leaf_batch_bytes()
    }
}
