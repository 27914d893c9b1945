//! Looking at every part of a tree.

use std::ops::Bound;

use super::content::Content;
use super::tree::BeTree;
use crate::Error;
use crate::buffered::{Cursor, MemtableCursor, Turn};
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
}

impl BeTree {
    /// As [`Index::walk`](crate::index::Index::walk).
    pub(super) fn check(
        &self,
        _turn: &Turn<'_>,
        page: &mut dyn FnMut(PageId),
        record: SeeVersion<'_>,
    ) -> Result<Census, Error> {
        let level = self.root_level()?;
        let mut census = Census { levels: u32::from(level) + 1, ..Census::default() };
        self.check_part(
            &Expected { id: self.root, level, lower: &[], upper: None },
            page,
            record,
            &mut census,
        )?;
        let memtables = self.memtables().clone();
        // What has come to pages already is in them.
        let flushed_to = self.flushed_to().clone();
        for (number, memtable) in memtables.iter().enumerate() {
            let is_oldest = number > 0 && number == memtables.frozen.len();
            let from = flushed_to.as_deref().filter(|_| is_oldest);
            let start = from.map_or(Bound::Unbounded, Bound::Excluded);
            let mut cursor = MemtableCursor::new(memtable, Direction::Forward, start);
            while let Some((key, version, value)) = cursor.get() {
                census.records += 1;
                record(key, version, value);
                cursor.advance()?;
            }
        }
        Ok(census)
    }

    fn check_part(
        &self,
        expected: &Expected<'_>,
        page: &mut dyn FnMut(PageId),
        record: SeeVersion<'_>,
        census: &mut Census,
    ) -> Result<(), Error> {
        let Expected { id, level, lower, upper } = *expected;
        let (guard, content) = self.load(id, level, Access::Scan)?;
        page(id);
        let is_within = |key: &[u8]| key >= lower && upper.is_none_or(|upper| key < upper);
        let is_right = content.pivots.is_sorted_by(|one, other| one.key < other.key)
            && content.pivots.first().is_none_or(|first| first.key == lower || id == self.root)
            && content.pivots.iter().skip(1).all(|pivot| is_within(&pivot.key))
            && (level == 0) == content.pivots.is_empty()
            && is_ordered(&content)
            && (0..content.messages.len()).all(|number| is_within(content.messages.key(number)))
            && content.ranges.fragments().iter().all(|range| {
                range.lower.as_slice() >= lower && upper.is_none_or(|upper| range.upper.as_slice() <= upper)
            });
        if !is_right && !(id == self.root && content.pivots.is_empty()) {
            return Err(self.out_of_step(id, lower, upper));
        }
        census.records += content.messages.len() as u64;
        *(if level == 0 { &mut census.leaves } else { &mut census.inner_nodes }) += 1;
        census.used_bytes += content.page_bytes();
        census.page_bytes += class_bytes(Header::of(guard.page()).class.into());
        for (key, version, value) in content.messages.iter(0..content.messages.len()) {
            record(key, version, value);
        }
        for pivot in 0..content.pivots.len() {
            let (first, behind) = content.interval(pivot);
            let lower = if pivot == 0 { lower } else { first };
            let (id, upper) = (content.pivots[pivot].child, behind.or(upper));
            self.check_part(&Expected { id, level: level - 1, lower, upper }, page, record, census)?;
        }
        yield_now();
        Ok(())
    }

    #[cold]
    fn out_of_step(&self, id: PageId, lower: &[u8], upper: Option<&[u8]>) -> Error {
        Error::Corrupt {
            what: format!("page {} of tree {}", id.0, self.id.0),
            offset_bytes: 0,
            expected: format!("pivots and messages in order, from {lower:02x?} up to {upper:02x?}"),
            got: "others".into(),
        }
    }
}

/// Whether messages are in the order of keys, and of a key the newer ones first.
fn is_ordered(content: &Content) -> bool {
    let messages = &content.messages;
    (1..messages.len()).all(|number| match (messages.get(number - 1), messages.get(number)) {
        (Some((one, before, _)), Some((other, own, _))) => {
            one < other || one == other && before.timestamp() > own.timestamp()
        }
        _ => false,
    })
}
