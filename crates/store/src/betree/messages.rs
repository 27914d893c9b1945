//! Messages: versions of keys on their way to a leaf, in the order of keys, and the newest of a key first. A
//! leaf keeps its records in the same way.

use std::ops::Range;

use super::part_format::{ENTRY_BYTES, SLOT_BYTES};
use crate::Error;
use crate::buffered::Cursor;
use crate::index::Version;
use crate::log::Timestamp;
use crate::page::padded;
use crate::sync::Arc;

/// Numbers of messages: from the first up to, and without, the second.
pub(super) type Numbers = std::ops::Range<u32>;

/// The offsets of a message's key and value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    version: Version,
    key: u32,
    value: u32,
    key_bytes: u32,
    value_bytes: u32,
}

impl Place {
    pub fn new(version: Version, key: Range<u32>, value: Range<u32>) -> Self {
        let (key_bytes, value_bytes) = (key.end - key.start, value.end - value.start);
        Self { version, key: key.start, value: value.start, key_bytes, value_bytes }
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// Bytes of a message in a page.
pub(super) fn message_bytes(key: &[u8], value: &[u8]) -> u64 {
    u64::from(SLOT_BYTES + ENTRY_BYTES)
        + u64::from(padded(key.len() as u32))
        + u64::from(padded(value.len() as u32))
}

impl Messages {
    /// Messages at these places in `bytes`.
    pub fn of(bytes: Vec<u8>, places: Vec<Place>) -> Self {
        Self { bytes, places }
    }

    /// Appends a message.
    pub fn push(&mut self, key: &[u8], version: Version, value: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let (key_bytes, value_bytes) = (key.len() as u32, value.len() as u32);
        self.places.push(Place { version, key: start, value: start + key_bytes, key_bytes, value_bytes });
    }

    /// Appends a message. The closures append its key and value.
    pub fn push_by(
        &mut self,
        version: Version,
        key: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>),
    ) {
        let start = self.bytes.len() as u32;
        key(&mut self.bytes);
        let middle = self.bytes.len() as u32;
        value(&mut self.bytes);
        self.places.push(Place::new(version, start..middle, middle..self.bytes.len() as u32));
    }

    /// Whether a reader as of `at` sees all messages of a range unchanged: they are values of different keys.
    pub fn are_seen(&self, range: Range<usize>, at: Timestamp) -> bool {
        let Range { start, end } = range;
        (start..end).all(|number| {
            self.places.get(number).is_some_and(|place| {
                !place.version.may_go_alone()
                    && place.version.timestamp() <= at
                    && (number == start || self.key(number - 1) != self.key(number))
            })
        })
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn part(&self, start: u32, length: u32) -> &[u8] {
        self.bytes.get(start as usize..(start as usize).saturating_add(length as usize)).unwrap_or_default()
    }

    /// A message: its key, its version and its value.
    pub fn get(&self, number: usize) -> Option<(&[u8], Version, &[u8])> {
        let place = self.places.get(number)?;
        Some((
            self.part(place.key, place.key_bytes),
            place.version,
            self.part(place.value, place.value_bytes),
        ))
    }

    /// The key of a message; empty if the number is out of bounds.
    pub fn key(&self, number: usize) -> &[u8] {
        self.places.get(number).map_or(&[], |place| self.part(place.key, place.key_bytes))
    }

    /// Whether some of the versions may be unneeded one day: removals, operands, older ones of a key.
    pub fn may_go(&self) -> bool {
        let is_older = |number: usize| number > 0 && self.key(number - 1) == self.key(number);
        self.places.iter().any(|place| place.version.may_go_alone()) || (0..self.len()).any(is_older)
    }

    /// Messages of a range in their order.
    pub fn iter(&self, range: Range<usize>) -> impl Iterator<Item = (&[u8], Version, &[u8])> {
        range.filter_map(|number| self.get(number))
    }

    /// The first message of this key or a larger one.
    pub fn first_from(&self, key: &[u8]) -> usize {
        self.places.partition_point(|place| self.part(place.key, place.key_bytes) < key)
    }

    /// The messages with keys from the first up to but without the second.
    pub fn within(&self, lower: &[u8], upper: Option<&[u8]>) -> Range<usize> {
        let end = upper.map_or(self.len(), |upper| self.first_from(upper));
        self.first_from(lower).min(end)..end
    }

    /// No messages yet, but memory for all of these.
    pub fn with_room_for(sources: &[(&Self, Range<usize>)]) -> Self {
        let (mut bytes, mut count) = (0, 0);
        for (messages, range) in sources {
            let places = messages.places.get(range.clone()).unwrap_or_default();
            bytes += places.iter().map(|place| (place.key_bytes + place.value_bytes) as usize).sum::<usize>();
            count += places.len();
        }
        Self { bytes: Vec::with_capacity(bytes), places: Vec::with_capacity(count) }
    }

    /// The first message after `first` that has another key; `end` if all before that have the same.
    pub fn end_of_key(&self, first: usize, end: usize) -> usize {
        let mut next = (first + 1).min(end);
        while next < end && self.key(next) == self.key(first) {
            next += 1;
        }
        next
    }

    /// Bytes that messages take in a page.
    pub fn page_bytes(&self, range: Range<usize>) -> u64 {
        let of = |place: &Place| {
            u64::from(SLOT_BYTES + ENTRY_BYTES)
                + u64::from(padded(place.key_bytes))
                + u64::from(padded(place.value_bytes))
        };
        self.places.get(range).unwrap_or_default().iter().map(of).sum()
    }

    /// Appends some messages of others.
    pub fn extend(&mut self, others: &Self, range: Range<usize>) {
        others.iter(range).for_each(|(key, version, value)| self.push(key, version, value));
    }
}

/// Messages of a range, one after the other.
pub(super) struct MessagesCursor {
    messages: Arc<Messages>,
    range: Range<usize>,
}

impl MessagesCursor {
    pub fn new(messages: &Arc<Messages>, range: Range<usize>) -> Self {
        Self { messages: Arc::clone(messages), range }
    }
}

impl Cursor for MessagesCursor {
    fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        self.messages.get(self.range.start).filter(|_| !self.range.is_empty())
    }

    fn advance(&mut self) -> Result<(), Error> {
        if !self.range.is_empty() {
            self.range.start += 1;
        }
        Ok(())
    }
}
