//! Checks every part of a tree.

use super::content::Content;
use super::levels::LEVEL_MIN;
use super::messages::Messages;
use super::pages::Pages;
use super::part::Part;
use super::progress::Progress;
use super::stats::Fill;
use super::tree::BeTree;
use crate::Error;
use crate::buffered::{Cursor, Fragment, MemtableCursor, Permits};
use crate::class::class_bytes;
use crate::header::{Header, PageId};
use crate::index::{Census, Direction, SeeVersion};
use crate::pool::Access;
use crate::task::yield_now;

/// A page that is looked at, and the keys that belong to it: from the first up to, and without, the second.
struct Expected<'a> {
    id: PageId,
    level: u16,
    lower: &'a [u8],
    upper: Option<&'a [u8]>,
    /// Words of the tree's longest key; 0 if that is unknown.
    longest_key_words: u16,
}

impl BeTree {
    /// As [`Index::walk`](crate::index::Index::walk).
    pub(super) fn check(
        &self,
        _permits: &Permits<'_>,
        page: &mut dyn FnMut(PageId),
        record: SeeVersion<'_>,
    ) -> Result<Census, Error> {
        let level = self.pages.root_level()?;
        let mut census = Census { levels: u32::from(level) + 1, ..Census::default() };
        let longest_key_words =
            self.pages.look((self.pages.root, level), Access::Scan, |root| root.longest_key_words())?.1;
        let root = Expected { id: self.pages.root, level, lower: &[], upper: None, longest_key_words };
        self.pages.check_part(&root, page, record, (&mut census, &mut Vec::new()))?;
        let memtables = self.memtables().clone();
        // Messages that were flushed already are in pages.
        let progress = self.progress().clone();
        for (number, memtable) in memtables.iter().enumerate() {
            let is_oldest = number > 0 && number == memtables.frozen.len();
            let progress = if is_oldest { progress.clone() } else { Progress::default() };
            let mut cursor = MemtableCursor::new(memtable, Direction::Forward, progress.start());
            while let Some((key, version, value)) = cursor.get() {
                if !progress.has(key, version) {
                    census.records += 1;
                    record(key, version, value);
                }
                cursor.advance()?;
            }
        }
        Ok(census)
    }
}

impl Pages {
    fn check_part(
        &self,
        expected: &Expected<'_>,
        page: &mut dyn FnMut(PageId),
        record: SeeVersion<'_>,
        (census, above): (&mut Census, &mut Vec<Content>),
    ) -> Result<(), Error> {
        let Expected { id, level, lower, upper, longest_key_words } = *expected;
        let look = |part: Part<'_>| (part.content(), part.may_go());
        let (guard, (content, may_go)) = self.look((id, level), Access::Scan, look)?;
        let content = content.ok_or_else(|| self.damaged(id, level))?;
        page(id);
        let is_cleared = id == self.root && content.pivots.is_empty();
        let is_untold = content.messages.may_go() && !may_go;
        let untold = is_untold.then_some("versions that may go, unknown to the page");
        let problem = self.problem(expected, &content, above).or(untold);
        if let Some(problem) = problem.filter(|_| !is_cleared) {
            return Err(self.out_of_step(expected, problem));
        }
        census.records += content.messages.len() as u64;
        *(if level == 0 { &mut census.leaves } else { &mut census.inner_nodes }) += 1;
        census.used_bytes += content.page_bytes();
        census.page_bytes += class_bytes(Header::of(guard.page()).class.into());
        for (key, version, value) in content.messages.iter(0..content.messages.len()) {
            record(key, version, value);
        }
        let pivots = content.pivots.clone();
        above.push(content);
        for (number, pivot) in pivots.iter().enumerate() {
            let lower = if number == 0 { lower } else { &pivot.key };
            let upper = pivots.get(number + 1).map(|next| next.key.as_slice()).or(upper);
            let child = Expected { id: pivot.child, level: level - 1, lower, upper, longest_key_words };
            self.check_part(&child, page, record, (&mut *census, &mut *above))?;
        }
        above.pop();
        yield_now();
        Ok(())
    }

    /// The fill of each level, from the leaves on. Basement nodes are not read.
    pub fn fills(&self, _permits: &Permits<'_>) -> Result<Vec<Fill>, Error> {
        let level = self.root_level()?;
        let mut fills = vec![Fill::default(); usize::from(level) + 1];
        self.add_fill(self.root, level, &mut fills)?;
        Ok(fills)
    }

    fn add_fill(&self, id: PageId, level: u16, fills: &mut [Fill]) -> Result<(), Error> {
        let (_, content) = self.load(id, level, Access::Scan)?;
        let fill = &mut fills[usize::from(level)];
        fill.pages += 1;
        fill.page_bytes += self.shape.part_bytes();
        fill.buffered_bytes += content.buffered_bytes();
        fill.pivot_bytes += content.pivots_bytes();
        if level == LEVEL_MIN {
            fills[0].pages += content.pivots.len() as u64;
            return Ok(());
        }
        content.pivots.iter().try_for_each(|pivot| self.add_fill(pivot.child, level - 1, fills))
    }

    /// The first problem of a page below others, if it has one.
    fn problem(&self, expected: &Expected<'_>, content: &Content, above: &[Content]) -> Option<&'static str> {
        let Expected { id, level, lower, upper, longest_key_words } = *expected;
        let Content { pivots, messages, ranges, .. } = content;
        let is_within = |key: &[u8]| key >= lower && upper.is_none_or(|upper| key < upper);
        let is_range_within = |range: &Fragment| {
            range.lower.as_slice() >= lower && upper.is_none_or(|upper| range.upper.as_slice() <= upper)
        };
        if !pivots.is_sorted_by(|one, other| one.key < other.key) || (level == 0) != pivots.is_empty() {
            Some("pivots that are not in order")
        } else if pivots.first().is_some_and(|first| first.key != lower && id != self.root)
            || !pivots.iter().skip(1).all(|pivot| is_within(&pivot.key))
        {
            Some("pivots that are out of step with the node")
        } else if !is_ordered(messages) {
            Some("messages that are not in order")
        } else if !(0..messages.len()).all(|number| is_within(messages.key(number))) {
            Some("messages of other keys")
        } else if !ranges.fragments().iter().all(is_range_within) {
            Some("removals of other ranges")
        } else if content.has_longer_key_than(longest_key_words) {
            Some("keys that are longer than the root's page knows of")
        } else if !above.iter().all(|above| is_newer(&above.messages, messages)) {
            Some("messages that are newer than those above it")
        } else {
            None
        }
    }

    #[cold]
    fn out_of_step(&self, expected: &Expected<'_>, got: &str) -> Error {
        let Expected { id, lower, upper, .. } = *expected;
        Error::Corrupt {
            what: format!("page {} of tree {}", id.0, self.id.0),
            offset_bytes: 0,
            expected: format!("pivots and messages in order, from {lower:02x?} up to {upper:02x?}"),
            got: got.into(),
        }
    }
}

/// Whether all messages of a page are newer than those of the same keys in another page below it.
fn is_newer(above: &Messages, below: &Messages) -> bool {
    (0..above.len()).all(|number| {
        let Some((key, version, _)) = above.get(number) else { return true };
        match below.get(below.first_from(key)) {
            Some((other, newest, _)) => other != key || version.timestamp() > newest.timestamp(),
            None => true,
        }
    })
}

/// Whether messages are in the order of keys, and the newer ones of a key first.
fn is_ordered(messages: &Messages) -> bool {
    (1..messages.len()).all(|number| match (messages.get(number - 1), messages.get(number)) {
        (Some((one, before, _)), Some((other, own, _))) => {
            one < other || one == other && before.timestamp() > own.timestamp()
        }
        _ => false,
    })
}
