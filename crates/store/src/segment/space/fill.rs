//! The segments' contents: the part of their records that is used without the lock.

use std::cmp::Reverse;

use crate::layout::sizes::Sizes;
use crate::segment::UnitSequence;
use crate::segment::location::Location;
use crate::segment::table::Table;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Initial age of the store, above the age of any segment that it has.
const EARLIEST_BYTES: u64 = 1 << 50;

/// One segment's.
#[derive(Default)]
struct Words {
    /// No image in it was written with an earlier unit.
    opening: AtomicU64,
    /// Bytes of the images in it to which pages refer.
    live_bytes: AtomicU64,
    /// Bytes of all images in it, and of padding that cleaning would win back.
    filled_bytes: AtomicU64,
    /// The store's age when the youngest of its images was changed last.
    changed_at_bytes: AtomicU64,
}

/// Live bytes, ages and openings of all segments. The live bytes of all are the sum of those of each.
pub(super) struct Fill {
    sizes: Sizes,
    words: Table<Words>,
    live_bytes: AtomicU64,
    /// The store's age: bytes of changed pages that were gathered.
    age_bytes: AtomicU64,
}

impl Fill {
    pub fn new(sizes: Sizes) -> Self {
        let (live_bytes, age_bytes) = (AtomicU64::new(0), AtomicU64::new(EARLIEST_BYTES));
        Self { sizes, words: Table::new(), live_bytes, age_bytes }
    }

    #[inline]
    fn at(&self, location: Location) -> Option<&Words> {
        Some(self.words.get(self.sizes.index_of(location.offset_bytes())?))
    }

    /// No image at `location`, which is unchecked and may be anywhere, was written with an earlier unit.
    pub fn opening_at(&self, location: Location) -> UnitSequence {
        let words = self.sizes.index_of(location.offset_bytes()).and_then(|index| self.words.peek(index));
        UnitSequence(words.map_or(0, |words| words.opening.load(Ordering::Acquire)))
    }

    pub fn opening_of(&self, index: usize) -> UnitSequence {
        UnitSequence(self.words.get(index).opening.load(Ordering::Acquire))
    }

    /// The segment is opened: it is empty.
    pub fn open(&self, index: usize, opening: UnitSequence) {
        let words = self.words.get(index);
        debug_assert_eq!(words.live_bytes.load(Ordering::Relaxed), 0, "a segment with live images is opened");
        words.filled_bytes.store(0, Ordering::Relaxed);
        words.changed_at_bytes.store(0, Ordering::Relaxed);
        words.opening.store(opening.0, Ordering::Release);
    }

    /// While a store is opened: sets each segment's opening unit. Ages follow from their order: the bytes
    /// gathered since a segment was opened are estimated as the length of all segments opened since.
    pub fn restore_openings(&self, openings: &[(u64, UnitSequence)]) {
        let mut youngest_first = openings.to_vec();
        youngest_first.sort_unstable_by_key(|(_, opening)| Reverse(opening.0));
        let mut gathered_since = 0;
        for (index, opening) in youngest_first {
            let words = self.words.get(index as usize);
            words.opening.store(opening.0, Ordering::Release);
            gathered_since += self.sizes.length(index as usize);
            let changed_at = EARLIEST_BYTES.saturating_sub(gathered_since);
            words.changed_at_bytes.store(changed_at, Ordering::Relaxed);
        }
    }

    /// The amount of garbage is unknown: all that is not live counts as garbage.
    pub fn fill_up(&self, index: usize) {
        self.words.get(index).filled_bytes.store(self.sizes.length(index), Ordering::Relaxed);
    }

    pub fn live_bytes_of(&self, index: usize) -> u64 {
        self.words.get(index).live_bytes.load(Ordering::Acquire)
    }

    pub fn filled_bytes_of(&self, index: usize) -> u64 {
        self.words.get(index).filled_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of all images to which pages refer.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Ordering::Relaxed)
    }

    /// The store's age: bytes of changed pages that were gathered.
    pub fn age_bytes(&self) -> u64 {
        self.age_bytes.load(Ordering::Relaxed)
    }

    /// The store's age when the youngest image of a segment was changed.
    pub fn changed_at(&self, index: usize) -> u64 {
        self.words.get(index).changed_at_bytes.load(Ordering::Relaxed)
    }

    /// An age for every segment, estimated for those of before the opening, in the order of their openings.
    pub fn age_of(&self, index: usize) -> u64 {
        self.age_bytes().saturating_sub(self.changed_at(index))
    }

    /// Bytes gathered since the youngest image in the segment was changed. `None` if that was before the
    /// store was opened, as nothing is known about the time between.
    pub fn known_age_of(&self, index: usize) -> Option<u64> {
        (self.changed_at(index) > EARLIEST_BYTES).then(|| self.age_of(index))
    }

    /// Counts the image at `location` as live. Its page was last changed at the store's age
    /// `changed_at_bytes`, or just now.
    #[inline]
    pub fn add_live(&self, location: Location, changed_at_bytes: Option<u64>) {
        let bytes = u64::from(location.length_bytes());
        let Some(words) = self.at(location) else { return };
        let changed_at =
            changed_at_bytes.unwrap_or_else(|| self.age_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes);
        words.changed_at_bytes.fetch_max(changed_at, Ordering::Relaxed);
        words.filled_bytes.fetch_add(bytes, Ordering::Relaxed);
        words.live_bytes.fetch_add(bytes, Ordering::AcqRel);
        self.live_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// While a store is opened: all images in a segment, whose live ones have this sum of bytes.
    pub fn adopt_live(&self, index: usize, bytes: u64) {
        self.words.get(index).live_bytes.fetch_add(bytes, Ordering::AcqRel);
        self.live_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.fill_up(index);
    }

    /// Counts padding of a unit that was written before it was full. Like garbage, it is won by cleaning, as
    /// the images take less when moved.
    pub fn add_padding(&self, index: usize, bytes: u64) {
        self.words.get(index).filled_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The image there is garbage from now on. It returns the segment if nothing in it is live any more.
    #[inline]
    pub fn release(&self, location: Location) -> Option<usize> {
        let bytes = u64::from(location.length_bytes());
        let index = self.sizes.index_of(location.offset_bytes())?;
        self.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
        let before = self.words.get(index).live_bytes.fetch_sub(bytes, Ordering::AcqRel);
        debug_assert!(before >= bytes, "a release of bytes that were not live");
        (before == bytes).then_some(index)
    }
}
