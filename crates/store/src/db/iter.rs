//! Iterating over the records of a range, from both ends.

use super::range::Range;
use super::source::{Records, View};
use super::value::Value;
use crate::Error;
use crate::index::Direction;

/// Records in key order, from either end; made by [`Readable`](crate::Readable). It owns a snapshot, so its
/// records are consistent however long it takes, and it borrows nothing. Records before one that the merge
/// operator fails at come before its error. After an error it has ended.
pub struct Iter {
    view: View,
    front: Option<Records>,
    back: Option<Records>,
    remaining: Range,
    ended: bool,
}

impl Iter {
    pub(super) fn new(view: View, range: Range) -> Self {
        Self { view, front: None, back: None, remaining: range, ended: false }
    }

    fn take(&mut self, direction: Direction) -> Option<Result<(Value, Value), Error>> {
        if self.ended {
            return None;
        }
        let end = match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        };
        let records = end.get_or_insert_with(|| Records::new(&self.view, &self.remaining, direction));
        // The other end may have come here meanwhile.
        let taken = records.next().map(|found| {
            found.filter(|(key, _)| self.remaining.contains(key) || planted!(EndsPassEachOther))
        });
        match &taken {
            Ok(Some((key, _))) => self.remaining.take(direction, key),
            Ok(None) | Err(_) => self.ended = true,
        }
        taken.transpose()
    }
}

impl Iterator for Iter {
    type Item = Result<(Value, Value), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(Direction::Forward)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(Direction::Backward)
    }
}

impl std::iter::FusedIterator for Iter {}

impl std::fmt::Debug for Iter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Iter").field("left", &self.remaining).finish_non_exhaustive()
    }
}
