//! Iterating over the records of a range, from both ends.

use std::ops::Bound;

use super::core::Direction;
use super::source::{Scan, View};
use super::value::Value;
use crate::Error;

/// Records in key order, from either end; made by [`Readable`](crate::Readable). It owns a snapshot, so what it returns is consistent however long it takes, and it
/// borrows nothing. After an error it has ended.
pub struct Iter {
    view: View,
    front: Option<Scan>,
    back: Option<Scan>,
    /// What is left.
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    ended: bool,
}

impl Iter {
    pub(super) fn new(view: View, start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Self {
        Self { view, front: None, back: None, start, end, ended: false }
    }

    fn take_front(&mut self) -> Result<Option<(Value, Value)>, Error> {
        let (view, start) = (&self.view, &self.start);
        let scan =
            self.front.get_or_insert_with(|| Scan::new(view.clone(), start.clone(), Direction::Forward));
        let found = scan.next()?.filter(|(key, _)| is_before(key, &self.end));
        if let Some((key, _)) = &found {
            // The other end must not come past it.
            exclude(&mut self.start, key);
        }
        Ok(found)
    }

    fn take_back(&mut self) -> Result<Option<(Value, Value)>, Error> {
        let (view, end) = (&self.view, &self.end);
        let scan = self.back.get_or_insert_with(|| Scan::new(view.clone(), end.clone(), Direction::Backward));
        let found = scan.next()?.filter(|(key, _)| is_behind(key, &self.start));
        if let Some((key, _)) = &found {
            exclude(&mut self.end, key);
        }
        Ok(found)
    }

    fn item(
        &mut self,
        taken: Result<Option<(Value, Value)>, Error>,
    ) -> Option<Result<(Value, Value), Error>> {
        self.ended = !matches!(taken, Ok(Some(_)));
        taken.transpose()
    }
}

/// Sets `bound` to just beyond `key`, in its own memory if it has some.
fn exclude(bound: &mut Bound<Vec<u8>>, key: &[u8]) {
    let mut own = match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(own) | Bound::Excluded(own) => own,
        Bound::Unbounded => Vec::new(),
    };
    own.clear();
    own.extend_from_slice(key);
    *bound = Bound::Excluded(own);
}

fn is_before(key: &[u8], end: &Bound<Vec<u8>>) -> bool {
    match end {
        Bound::Included(end) => key <= end.as_slice(),
        Bound::Excluded(end) => key < end.as_slice(),
        Bound::Unbounded => true,
    }
}

fn is_behind(key: &[u8], start: &Bound<Vec<u8>>) -> bool {
    match start {
        Bound::Included(start) => key >= start.as_slice(),
        Bound::Excluded(start) => key > start.as_slice(),
        Bound::Unbounded => true,
    }
}

impl Iterator for Iter {
    type Item = Result<(Value, Value), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let taken = self.take_front();
        self.item(taken)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let taken = self.take_back();
        self.item(taken)
    }
}

impl std::iter::FusedIterator for Iter {}

impl std::fmt::Debug for Iter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Iter")
            .field("start", &self.start)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
