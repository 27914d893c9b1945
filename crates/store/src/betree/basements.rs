//! Flushes of messages into a leaf: the records of its basement nodes change.
//!
//! The basement nodes of a leaf that have the most buffered messages are rewritten, some at a time, and are
//! read in parallel. A full one is split; an empty one is freed.

use std::cmp::Reverse;
use std::ops::Range;

use super::content::{Content, Group, Pivot};
use super::division::{Taken, take};
use super::flush::Step;
use super::in_place::Changes;
use super::levels::LEVEL_MIN;
use super::merging::{Flushed, Merging};
use super::messages::Messages;
use super::part::{self, Part};
use super::part_format::SLOTS;
use super::tree::BeTree;
use crate::Error;
use crate::buffered::RangeTombstones;
use crate::class::class_bytes;
use crate::header::{Header, PageId, PageKind};
use crate::index::{behind, separator};
use crate::pool::{Access, Denied, OptimisticGuard, Reserved};
use crate::sync::Arc;

/// Basement nodes that are changed in one section, at most.
const BASEMENTS_PER_SECTION: u64 = 32;
/// They have at most this part of the cache.
const CACHE_DIVISOR: u64 = 32;
/// A new basement node is filled up to this part, unless keys come in order.
const FILLED_TENTHS: u64 = 9;

/// The nodes that replace a basement node.
struct Rewritten<'a> {
    pivot: usize,
    guard: OptimisticGuard<'a>,
    /// The first one stays on its page if that has the right class.
    pieces: Vec<Piece>,
    reserved: Vec<Reserved<'a>>,
}

/// The changes of a basement node in place.
struct Changed<'a> {
    group: Group,
    merging: Merging<'a>,
    changes: Changes,
    /// Bytes that it takes then.
    page_bytes: u64,
}

/// Records of a basement node.
struct Piece {
    class: usize,
    messages: Messages,
}

impl BeTree {
    /// Flushes the messages for the basement nodes that have the most of them: as many nodes as are needed
    /// for `wanted_bytes`, or a part of the messages for one.
    pub(super) fn flush_into_leaf(&self, id: PageId, wanted_bytes: u64) -> Result<Step, Error> {
        self.check_goes_on()?;
        let own = self.pages.summary(id, LEVEL_MIN)?;
        if !own.has_messages || self.pages.must_split(LEVEL_MIN, &own) {
            return Ok(if own.has_messages { Step::MustSplit } else { Step::Empty });
        }
        let mut at_once = (self.leaf_batch_bytes() / self.pages.shape.basement_bytes()) as usize;
        while !self.flush_fullest(id, at_once, wanted_bytes)? {
            if at_once == 1 {
                return self.flush_piece(id);
            }
            at_once /= 2;
        }
        Ok(Step::Moved)
    }

    /// Bytes of the basement nodes that are changed in one section, at most.
    pub(super) fn leaf_batch_bytes(&self) -> u64 {
        let budget_bytes = self.shared.pool.pages.budget_bytes();
        let most = budget_bytes / CACHE_DIVISOR / self.pages.shape.basement_bytes();
        most.clamp(1, BASEMENTS_PER_SECTION) * self.pages.shape.basement_bytes()
    }

    /// Flushes the messages for some basement nodes. `false` if the part has no room for the new pivots, or
    /// memory has none for the nodes.
    fn flush_fullest(&self, id: PageId, at_once: usize, wanted_bytes: u64) -> Result<bool, Error> {
        let (_, groups) = self.pages.look((id, LEVEL_MIN), Access::Normal, |part| part.groups())?;
        if let Some(groups) = groups {
            let groups = fullest(groups, at_once, wanted_bytes);
            self.read_ahead(&groups);
            if let Some(has_flushed) = self.flush_in_place(id, &groups)? {
                return Ok(has_flushed);
            }
        }
        let (_, mut content) = self.pages.load(id, LEVEL_MIN, Access::Normal)?;
        let groups = fullest(content.groups(), at_once, wanted_bytes);
        self.read_ahead(&groups);
        let messages = Arc::new(std::mem::take(&mut content.messages));
        let mut merging = Merging::new(self);
        let mut all = Vec::with_capacity(groups.len());
        for group in &groups {
            let flushed = Flushed {
                messages: Arc::clone(&messages),
                range: group.messages.clone(),
                ranges: content.ranges_of(group.pivot),
            };
            let child = content.pivots[group.pivot].child;
            all.push(self.rewritten((child, group.pivot), &flushed, &mut merging, false)?);
        }
        for group in &groups {
            let (lower, upper) = content.interval(group.pivot);
            let (lower, upper) = (lower.to_vec(), upper.map(<[u8]>::to_vec));
            content.ranges.remove_between(&lower, upper.as_deref());
        }
        content.messages = without(&messages, &groups);
        let moved_bytes = groups.iter().map(|group| group.bytes).sum();
        self.write_flushed((id, content), all, merging, moved_bytes)
    }

    /// Flushes as many messages as have room, for the basement node that has the most, or else for the first
    /// one: that one never leaves more pieces of ranges than before.
    fn flush_piece(&self, id: PageId) -> Result<Step, Error> {
        let (_, mut content) = self.pages.load(id, LEVEL_MIN, Access::Normal)?;
        let groups = content.groups();
        let messages = Arc::new(std::mem::take(&mut content.messages));
        let fullest = groups.iter().max_by_key(|group| group.bytes);
        for group in [fullest, groups.first()].into_iter().flatten() {
            let (_, below) = self.pages.load(group.child, 0, Access::Scan)?;
            let mut room_bytes = group.bytes / 2;
            loop {
                let Taken { flushed, rest } = take(&content, &messages, group, room_bytes, &below.messages);
                let moved_bytes = flushed.bytes();
                let is_least = moved_bytes > room_bytes;
                // A longer page takes the least piece even if the part has no room for more pivots.
                for as_one in [false, true].into_iter().take(1 + usize::from(is_least)) {
                    let mut merging = Merging::new(self);
                    let child = (group.child, group.pivot);
                    let one = self.rewritten(child, &flushed, &mut merging, as_one)?;
                    if self.write_flushed((id, rest.clone()), vec![one], merging, moved_bytes)? {
                        return Ok(Step::Moved);
                    }
                }
                if is_least {
                    break;
                }
                room_bytes = moved_bytes / 2;
            }
        }
        Err(self.pages.no_room("versions of a record", content.pivots_bytes()))
    }

    /// Writes basement nodes, and the part that leads to them: `content` without the messages that were
    /// flushed. `false` as with [`BeTree::flush_fullest`].
    fn write_flushed<'a>(
        &'a self,
        (id, mut content): (PageId, Content),
        mut all: Vec<Rewritten<'a>>,
        mut merging: Merging<'_>,
        moved_bytes: u64,
    ) -> Result<bool, Error> {
        content.pivots = new_pivots(&content, &all);
        if content.fit(self.pages.shape.part_bytes()).is_none() {
            return Ok(false);
        }
        let rewritten_bytes = all.iter().flat_map(|one| &one.pieces).map(Piece::page_bytes).sum();
        let ids: Vec<PageId> = std::iter::once(id).chain(all.iter().map(|one| one.guard.id())).collect();
        let guards = self.pages.fresh(&ids)?;
        all.iter_mut().zip(guards.iter().skip(1)).for_each(|(one, guard)| one.guard = *guard);
        match self.write_leaf(&guards[0], content, all) {
            Ok(()) => {
                merging.give_up();
                self.pages.counters.flushed(0, moved_bytes, rewritten_bytes);
            }
            // Memory may be too small for this number of nodes at a time.
            Err(Denied::Changed) => return Ok(false),
            Err(denied) => self.shared.pool.images.recover(denied)?,
        }
        self.pause(moved_bytes);
        Ok(true)
    }

    /// Begins to read the basement nodes that are rewritten next, in parallel.
    fn read_ahead(&self, groups: &[Group]) {
        self.shared.pool.fetch_all(groups.iter().map(|group| group.child), Access::Scan);
    }

    /// Flushes the messages for those basement nodes that have room for them in place. `None` if no node has;
    /// `false` as with [`BeTree::flush_fullest`].
    fn flush_in_place(&self, id: PageId, groups: &[Group]) -> Result<Option<bool>, Error> {
        let mut all = Vec::with_capacity(groups.len());
        for group in groups {
            let copied = |part: Part<'_>| part.copied(group.numbers());
            let (_, messages) = self.pages.look((id, LEVEL_MIN), Access::Normal, copied)?;
            let Some(messages) = messages else { return Ok(None) };
            let (guard, _) = self.pages.look((group.child, 0), Access::Scan, |_| ())?;
            let mut merging = Merging::new(self);
            let flushed = Flushed::all(messages, RangeTombstones::default());
            let Some(changes) = merging.changes(&flushed, &guard, true) else { continue };
            let basement = Part::new(guard.page());
            let page_bytes = changes.page_bytes(basement);
            if changes.count(basement) > 0 && page_bytes <= basement.len_bytes() && guard.is_valid() {
                all.push(Changed { group: group.clone(), merging, changes, page_bytes });
            }
        }
        if all.is_empty() {
            return Ok(None);
        }
        let groups: Vec<Group> = all.iter().map(|one| one.group.clone()).collect();
        let without = |part: Part<'_>| Changes::without(part, &groups);
        let Some(gone) = self.pages.look((id, LEVEL_MIN), Access::Normal, without)?.1 else {
            return Ok(None);
        };
        let ids: Vec<PageId> = std::iter::once(id).chain(groups.iter().map(|group| group.child)).collect();
        match self.change_leaf(&self.pages.fresh(&ids)?, &gone, &all) {
            Ok(()) => {
                let moved_bytes = all.iter().map(|one| one.group.bytes).sum();
                let changed_bytes = all.iter().map(|one| one.page_bytes).sum();
                all.iter_mut().for_each(|one| one.merging.give_up());
                self.pages.counters.flushed(0, moved_bytes, changed_bytes);
                self.pause(moved_bytes);
            }
            // Memory may be too small for this number of nodes at a time.
            Err(Denied::Changed) => return Ok(Some(false)),
            Err(denied) => self.shared.pool.images.recover(denied)?,
        }
        Ok(Some(true))
    }

    /// Changes basement nodes and the part that leads to them, in one section.
    fn change_leaf(
        &self,
        guards: &[OptimisticGuard<'_>],
        gone: &Changes,
        all: &[Changed<'_>],
    ) -> Result<(), Denied> {
        let Some((guard, below)) = guards.split_first() else { return Ok(()) };
        let section = self.shared.pool.section();
        let upper = section.lock(guard)?;
        let mut locked = Vec::with_capacity(all.len());
        for one in below {
            locked.push(section.lock(one)?);
        }
        all.iter().zip(&locked).for_each(|(one, page)| one.changes.make(page.page()));
        gone.make(upper.page());
        Ok(())
    }

    /// A basement node with the messages that are flushed into it. It is not split if `as_one`. Parks.
    fn rewritten<'a>(
        &'a self,
        (child, pivot): (PageId, usize),
        flushed: &Flushed,
        merging: &mut Merging<'_>,
        as_one: bool,
    ) -> Result<Rewritten<'a>, Error> {
        let (guard, before) = self.pages.load(child, 0, Access::Scan)?;
        let records = merging.records_with(flushed, &before.messages);
        let bytes = records.page_bytes(0..records.len());
        let pieces = match as_one && !records.is_empty() {
            true => vec![self.piece(&records, 0..records.len(), bytes)?],
            false => self.pieces(records)?,
        };
        let stays = pieces.first().is_some_and(|piece| piece.class == class_of(&guard));
        let new = pieces.iter().skip(usize::from(stays));
        let reserved = new.map(|piece| self.shared.pool.reserve(piece.class)).collect::<Result<_, _>>()?;
        Ok(Rewritten { pivot, guard, pieces, reserved })
    }

    /// Divides records into as many pieces as they need. The versions of a key are in one.
    fn pieces(&self, messages: Messages) -> Result<Vec<Piece>, Error> {
        let most_bytes = self.pages.shape.basement_bytes() - u64::from(SLOTS);
        let total_bytes = messages.page_bytes(0..messages.len());
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        if total_bytes <= most_bytes {
            return Ok(vec![Piece { class: self.pages.shape.basement_class, messages }]);
        }
        let count = total_bytes.div_ceil(most_bytes * FILLED_TENTHS / 10);
        let each_bytes = total_bytes / count;
        let (mut pieces, mut start, mut bytes, mut at) = (Vec::new(), 0, 0, 0);
        while at < messages.len() {
            let mut end = messages.end_of_key(at, messages.len());
            if planted!(VersionsSplitOverBasements) {
                end = at + 1;
            }
            let key_bytes = messages.page_bytes(at..end);
            if at > start && (bytes >= each_bytes || bytes + key_bytes > most_bytes) {
                pieces.push(self.piece(&messages, start..at, bytes)?);
                (start, bytes) = (at, 0);
            }
            bytes += key_bytes;
            at = end;
        }
        pieces.push(self.piece(&messages, start..at, bytes)?);
        Ok(pieces)
    }

    fn piece(&self, messages: &Messages, range: Range<usize>, bytes: u64) -> Result<Piece, Error> {
        let mut own = Messages::default();
        own.extend(messages, range);
        let needed_bytes = bytes + u64::from(SLOTS);
        let class = (self.pages.shape.basement_class..=self.pages.shape.class_max)
            .find(|class| class_bytes(*class) >= needed_bytes);
        let class = class.ok_or_else(|| self.pages.no_room("versions of one key", bytes))?;
        Ok(Piece { class, messages: own })
    }

    /// Writes basement nodes and the part that leads to them into their pages, in one section. The part's
    /// content has all pivots already, but the new pages' numbers.
    fn write_leaf(
        &self,
        guard: &OptimisticGuard<'_>,
        mut content: Content,
        all: Vec<Rewritten<'_>>,
    ) -> Result<(), Denied> {
        let section = self.shared.pool.section();
        let upper = section.lock(guard)?;
        let mut locked = Vec::with_capacity(all.len());
        for one in &all {
            locked.push(section.lock(&one.guard)?);
        }
        // From the first node on; each has its number of pivots. From here on nothing fails.
        let first = all.first().map(|one| one.guard.id());
        let keeps_first = content.pivots.len() == 1 && content.pivots.first().map(|own| own.child) == first;
        let (mut place, mut more) = (0, 0);
        for (one, page) in all.into_iter().zip(locked) {
            let Rewritten { pivot, guard, pieces, reserved } = one;
            place += pivot - more;
            more = pivot + 1;
            let stays = pieces.first().is_some_and(|piece| piece.class == class_of(&guard));
            let mut reserved = reserved.into_iter();
            let (mut page, is_empty) = (Some(page), pieces.is_empty());
            for piece in pieces {
                let own = match page.take_if(|_| stays) {
                    Some(page) => page,
                    None => match reserved.next() {
                        Some(memory) => section.create(memory, PageKind::Basement, false),
                        None => break,
                    },
                };
                let records = Content::basement(piece.messages);
                if let Some(fitting) = records.fit(class_bytes(piece.class)) {
                    part::write(own.page(), &fitting);
                }
                content.pivots[place].child = own.id();
                place += 1;
            }
            match page {
                Some(page) if is_empty && keeps_first && Some(page.id()) == first => {
                    let empty = Content::default();
                    if let Some(fitting) = empty.fit(class_bytes(class_of(&guard))) {
                        part::write(page.page(), &fitting);
                    }
                    place += 1;
                }
                Some(page) if !planted!(EmptyBasementLeaks) => section.free(page),
                _ => {}
            }
        }
        if let Some(fitting) = content.fit(self.pages.shape.part_bytes()) {
            part::write(upper.page(), &fitting);
        }
        Ok(())
    }
}

/// The pivots of a part after its basement nodes are replaced. New ones have no page yet.
fn new_pivots(content: &Content, all: &[Rewritten<'_>]) -> Vec<Pivot> {
    let first_key = content.pivots.first().map_or_else(Vec::new, |first| first.key.clone());
    let (mut pivots, mut next) = (Vec::with_capacity(content.pivots.len()), 0);
    for one in all {
        pivots.extend_from_slice(&content.pivots[next..one.pivot]);
        next = one.pivot + 1;
        let own = &content.pivots[one.pivot];
        let mut before: Option<&Messages> = None;
        for Piece { messages, .. } in &one.pieces {
            let key = match before {
                None => own.key.clone(),
                Some(_) if planted!(PivotBehindItsChild) => behind(messages.key(0)),
                Some(before) => {
                    separator(before.key(before.len().saturating_sub(1)), messages.key(0).to_vec())
                }
            };
            pivots.push(Pivot { key, child: PageId(0), weight: 1 });
            before = Some(messages);
        }
    }
    pivots.extend_from_slice(&content.pivots[next..]);
    if pivots.is_empty() {
        // One node stays, without records.
        pivots.extend(all.first().map(|one| content.pivots[one.pivot].clone()));
    }
    if let Some(first) = pivots.first_mut() {
        first.key = first_key;
    }
    pivots
}

impl Piece {
    fn page_bytes(&self) -> u64 {
        self.messages.page_bytes(0..self.messages.len())
    }
}

/// The size class of a page that was read.
fn class_of(guard: &OptimisticGuard<'_>) -> usize {
    Header::of(guard.page()).class.into()
}

/// The largest groups, until they have `wanted_bytes` together, and at most `at_once` of them, in the order
/// of their keys.
fn fullest(mut groups: Vec<Group>, at_once: usize, wanted_bytes: u64) -> Vec<Group> {
    groups.sort_by_key(|group| Reverse(group.bytes));
    let mut bytes = 0;
    let enough = groups.iter().take_while(|group| {
        let is_needed = bytes < wanted_bytes.max(1);
        bytes += group.bytes;
        is_needed
    });
    let count = enough.count().min(at_once);
    groups.truncate(count);
    groups.sort_by_key(|group| group.pivot);
    groups
}

/// Messages without those of some groups, which are in key order.
fn without(messages: &Messages, groups: &[Group]) -> Messages {
    let (mut rest, mut from) = (Messages::default(), 0);
    for group in groups {
        rest.extend(messages, from..group.messages.start);
        from = group.messages.end;
    }
    rest.extend(messages, from..messages.len());
    rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_group_that_stays_is_larger_than_one_that_goes_and_no_more_go_than_needed(
            bytes in proptest::collection::vec(0_u64..100, 1..12),
            at_once in 1_usize..6,
            wanted_bytes in 0_u64..300,
        ) {
            let group = |(pivot, bytes): (usize, &u64)| {
                Group { pivot, child: PageId(pivot as u64), messages: 0..0, bytes: *bytes }
            };
            let taken = fullest(bytes.iter().enumerate().map(group).collect(), at_once, wanted_bytes);
            prop_assert!(taken.is_sorted_by_key(|group| group.pivot) && (1..=at_once).contains(&taken.len()));
            let stays = |pivot: &usize| !taken.iter().any(|group| group.pivot == *pivot);
            let largest_left = (0..bytes.len()).filter(stays).map(|pivot| bytes[pivot]).max();
            let smallest = taken.iter().map(|group| group.bytes).min().unwrap();
            prop_assert!(largest_left.is_none_or(|largest| largest <= smallest));
            let sum: u64 = taken.iter().map(|group| group.bytes).sum();
            prop_assert!(sum - smallest < wanted_bytes.max(1), "one fewer is enough");
            prop_assert!(sum >= wanted_bytes || taken.len() == at_once.min(bytes.len()));
        }
    }
}
