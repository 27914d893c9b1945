//! Memtables: versions that are in no table yet, as a skip list in memory that the pool lends.
//!
//! A version is a *node*: it is written once, into memory that nobody else has, and then linked in, on the
//! lowest level first. Who follows a link sees the whole node. Nothing is ever taken out, so that readers
//! need no latch, and writers only compare and swap the links before their nodes (Fraser, "Practical
//! lock-freedom", 2004; RocksDB's memtable).
//!
//! ```text
//! | key bytes, u16; levels, u16 | value bytes, u32 | version, u64 | a link for each level, u32 | key | value |
//! ```
//!
//! A link is the number of the node's first word, from the first frame's beginning; 0 is the end.

use std::cmp::Ordering as Compared;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::chain::Chain;
use super::ranges::{RangeTombstones, hidden_by};
use crate::class::class_bytes;
use crate::hash::mix;
use crate::index::{Direction, Version};
use crate::log::{LogRecord, Lsn, Timestamp};
use crate::page::{OwnPage, Page, padded};
use crate::pool::{Lent, Pool};
use crate::sync::{Arc, PoisonError, RwLock};

/// Levels of links; each has a quarter of the nodes of the one below.
const LEVELS: usize = 12;
const NODES_PER_LEVEL_BITS: u32 = 2;

const LENGTHS: u32 = 0;
const VALUE_LENGTH: u32 = 4;
const VERSION: u32 = 8;
const LINKS: u32 = 16;

const WORD_BYTES: u32 = 4;

/// Frames are of the largest class of which the memory has so many.
const FRAMES_MIN: u64 = 4;
const CLASS_MIN: usize = 0;
const CLASS_MAX: usize = 5;

/// Memory for nodes.
enum Frame {
    Lent(Lent),
    Own(OwnPage),
}

impl Frame {
    fn page(&self) -> Page<'_> {
        match self {
            Self::Lent(lent) => lent.page(),
            Self::Own(own) => own.page(),
        }
    }
}

/// Range tombstones, which are few, are kept beside the frames. They take as many bytes as this part of the
/// frames at most, unless it is a single one.
const RANGES_DIVISOR: u64 = 4;

/// There is no room for a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Versions by key and timestamp, for any number of threads.
pub(crate) struct Memtable {
    frames: Vec<Frame>,
    frame_words: u32,
    /// Words that are taken; the first one is nobody's, as 0 is no link.
    taken: AtomicU32,
    /// First node of each level.
    heads: [AtomicU32; LEVELS],
    /// The first commit in it; the largest number: there is none. Both grow together.
    first_lsn: AtomicU64,
    first_timestamp: AtomicU64,
    /// They are replaced as a whole.
    ranges: RwLock<Arc<RangeTombstones>>,
    has_ranges: AtomicBool,
}

/// A node: its frame, and where in it.
#[derive(Clone, Copy)]
struct Node<'a> {
    page: Page<'a>,
    offset: u32,
}

impl<'a> Node<'a> {
    fn lengths(self) -> (u32, u32, u32) {
        let (key, levels) = self.page.halves(self.offset + LENGTHS);
        (key.into(), levels.into(), self.page.word(self.offset + VALUE_LENGTH))
    }

    fn version(self) -> Version {
        Version::from_bits(self.page.long(self.offset + VERSION))
    }

    fn key_offset(self, levels: u32) -> u32 {
        self.offset + LINKS + levels * WORD_BYTES
    }

    fn link(self, level: usize) -> Option<&'a AtomicU32> {
        self.page.words(self.offset + LINKS + level as u32 * WORD_BYTES, WORD_BYTES).first()
    }

    /// How it is ordered to a place.
    fn compare(self, key: &[u8], at: Timestamp) -> Compared {
        let (length, levels, _) = self.lengths();
        let keys = self.page.compare(self.key_offset(levels), length, key);
        keys.then_with(|| at.cmp(&self.version().timestamp()))
    }

    fn is_of(self, key: &[u8]) -> bool {
        let (length, levels, _) = self.lengths();
        self.page.compare(self.key_offset(levels), length, key) == Compared::Equal
    }

    fn copy_value(self, into: &mut Vec<u8>) {
        let (key, levels, value) = self.lengths();
        self.page.copy_to(self.key_offset(levels) + padded(key), value, into);
    }
}

/// Levels that a node has links of, by a number that says nothing of it.
fn levels_of(random: u64) -> usize {
    let more =
        (random | 1 << (NODES_PER_LEVEL_BITS * (LEVELS as u32 - 1))).trailing_zeros() / NODES_PER_LEVEL_BITS;
    1 + more as usize
}

impl Memtable {
    /// One without memory: it is full.
    pub fn none() -> Self {
        Self {
            frames: Vec::new(),
            frame_words: 1,
            taken: AtomicU32::new(1),
            heads: Default::default(),
            first_lsn: AtomicU64::new(u64::MAX),
            first_timestamp: AtomicU64::new(u64::MAX),
            ranges: RwLock::default(),
            has_ranges: AtomicBool::new(false),
        }
    }

    /// An empty one of at most so many bytes. What the pool cannot lend at once is taken from elsewhere: a
    /// commit that is logged has to be applied. All memtables together have no more than the log, which keeps
    /// what is not in tables.
    pub fn new(pool: &Arc<Pool>, bytes: u64) -> Self {
        let class = (CLASS_MIN..=CLASS_MAX).rev().find(|class| class_bytes(*class) * FRAMES_MIN <= bytes);
        let class = class.unwrap_or(CLASS_MIN);
        let own = || Frame::Own(OwnPage::new(class_bytes(class) as u32));
        let frame = |_| pool.try_lend(class).map_or_else(own, Frame::Lent);
        Self {
            frames: (0..bytes.div_ceil(class_bytes(class))).map(frame).collect(),
            frame_words: class_bytes(class) as u32 / WORD_BYTES,
            ..Self::none()
        }
    }

    fn node(&self, link: u32) -> Option<Node<'_>> {
        let frame = self.frames.get((link / self.frame_words) as usize).filter(|_| link != 0)?;
        Some(Node { page: frame.page(), offset: link % self.frame_words * WORD_BYTES })
    }

    /// The link of a level behind a node, or the level's first.
    fn link<'a>(&'a self, before: Option<Node<'a>>, level: usize) -> &'a AtomicU32 {
        before.and_then(|before| before.link(level)).unwrap_or(&self.heads[level])
    }

    /// Memory for so many words, all in one frame.
    fn take(&self, words: u32) -> Option<u32> {
        let end = self.frames.len() as u32 * self.frame_words;
        let place = |taken: u32| {
            let left = self.frame_words - taken % self.frame_words;
            if left < words { taken + left } else { taken }
        };
        let next = |taken: u32| {
            let next = place(taken).checked_add(words)?;
            (words <= self.frame_words && next <= end).then_some(next)
        };
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok().map(place)
    }

    /// The last node of a level before a place, from `before` on, and the one behind it.
    fn before(&self, mut before: u32, level: usize, key: &[u8], at: Timestamp) -> (u32, u32) {
        let mut node = self.node(before);
        loop {
            let link = self.link(node, level).load(Ordering::Acquire);
            match self.node(link) {
                Some(next) if next.compare(key, at) == Compared::Less => (before, node) = (link, Some(next)),
                _ => return (before, link),
            }
        }
    }

    /// The last node before a place, and the first one that does not lie before it; 0 if there is none.
    fn around(&self, key: &[u8], at: Timestamp) -> (u32, u32) {
        let (mut before, mut link) = (0, 0);
        for level in (0..LEVELS).rev() {
            (before, link) = self.before(before, level, key, at);
        }
        (before, link)
    }

    /// Adds a version of the commit that the log has as `record`.
    ///
    /// # Errors
    /// [`Full`], and nothing has changed.
    pub fn put(&self, key: &[u8], version: Version, value: &[u8], record: LogRecord) -> Result<(), Full> {
        let at = version.timestamp();
        let random = mix(u64::from(self.taken.load(Ordering::Relaxed)) << 32 ^ at.0);
        let levels = levels_of(random);
        let key_bytes = padded(key.len() as u32);
        let bytes = LINKS + levels as u32 * WORD_BYTES + key_bytes + padded(value.len() as u32);
        let link = self.take(bytes / WORD_BYTES).ok_or(Full)?;
        // Before it is seen: a checkpoint that misses it replays the log from there.
        let is_noted =
            self.first().is_some_and(|first| first > record && planted!(FirstPutTakenForFirstCommit));
        if !is_noted {
            self.note(record);
        }
        let Some(node) = self.node(link) else { return Err(Full) };
        let Node { page, offset } = node;
        page.set_halves(offset + LENGTHS, key.len() as u16, levels as u16);
        page.set_word(offset + VALUE_LENGTH, value.len() as u32);
        page.set_long(offset + VERSION, version.bits());
        page.copy_from(node.key_offset(levels as u32), key);
        page.copy_from(node.key_offset(levels as u32) + key_bytes, value);
        let mut befores = [0; LEVELS];
        let mut before = 0;
        for level in (0..LEVELS).rev() {
            (before, _) = self.before(before, level, key, at);
            befores[level] = before;
        }
        for (level, before) in befores.into_iter().enumerate().take(levels) {
            let mut before = before;
            loop {
                // Others may have come in between meanwhile.
                let behind;
                (before, behind) = self.before(before, level, key, at);
                if let Some(own) = node.link(level) {
                    own.store(behind, Ordering::Relaxed);
                }
                let swapped = self.link(self.node(before), level).compare_exchange(
                    behind,
                    link,
                    Ordering::Release,
                    Ordering::Relaxed,
                );
                if swapped.is_ok() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn note(&self, record: LogRecord) {
        self.first_lsn.fetch_min(record.start.0, Ordering::Relaxed);
        self.first_timestamp.fetch_min(record.timestamp.0, Ordering::Relaxed);
    }

    /// Removes the keys from `lower` on up to, and without, `upper`, by the commit that the log has as
    /// `record`.
    ///
    /// # Errors
    /// [`Full`], and nothing has changed.
    pub fn remove_range(&self, lower: &[u8], upper: &[u8], record: LogRecord) -> Result<(), Full> {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let bytes = self.frames.len() as u64 * u64::from(self.frame_words) * u64::from(WORD_BYTES);
        let taken = ranges.bytes() + (lower.len() + upper.len()) as u64;
        // An empty memtable takes one, however long its keys are: the next memtable has no more room.
        if self.frames.is_empty() || !ranges.is_empty() && taken > bytes / RANGES_DIVISOR {
            return Err(Full);
        }
        self.note(record);
        let mut more = RangeTombstones::clone(&ranges);
        more.add(lower, upper, record.timestamp);
        *ranges = Arc::new(more);
        self.has_ranges.store(true, Ordering::Release);
        Ok(())
    }

    /// Its removals of ranges.
    pub fn range_tombstones(&self) -> Arc<RangeTombstones> {
        Arc::clone(&self.ranges.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The newest version of a key that is not newer than `at`; its value is appended to `into`.
    pub fn find(&self, key: &[u8], at: Timestamp, into: &mut Vec<u8>) -> Option<Version> {
        let found = self.find_own(key, at, into);
        hidden_by(self.removed_at(key, at), found)
    }

    /// The same of those that the key has of its own, whatever ranges are removed.
    pub fn find_own(&self, key: &[u8], at: Timestamp, into: &mut Vec<u8>) -> Option<Version> {
        self.node(self.around(key, at).1).filter(|node| node.is_of(key)).map(|node| {
            node.copy_value(into);
            node.version()
        })
    }

    /// The newest removal of a range with the key that is not newer than `at`.
    pub fn removed_at(&self, key: &[u8], at: Timestamp) -> Option<Timestamp> {
        let has_ranges = self.has_ranges.load(Ordering::Acquire);
        has_ranges.then(|| self.range_tombstones().newest(key, at)).flatten()
    }

    /// Has a chain take in the versions of a key, down to one that is not made of operands. Whether older
    /// ones are needed, which are not here.
    pub fn take_chain(&self, key: &[u8], chain: &mut Chain) -> bool {
        let removed_at = self.removed_at(key, chain.at);
        let (mut link, mut value) = (self.around(key, chain.at).1, Vec::new());
        while let Some(node) = self.node(link).filter(|node| node.is_of(key)) {
            let version = node.version();
            if removed_at.is_some_and(|removed_at| version.timestamp() < removed_at)
                && !planted!(BaseUnderRemovedRangeUsed)
            {
                break;
            }
            value.clear();
            node.copy_value(&mut value);
            if !chain.take(version, &value) {
                return false;
            }
            link = self.link(Some(node), 0).load(Ordering::Acquire);
        }
        removed_at.is_none_or(|removed_at| chain.take(Version::tombstone(removed_at), &[]))
    }

    /// Bytes of memory that are taken.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        u64::from(self.taken.load(Ordering::Relaxed)) * u64::from(WORD_BYTES)
    }

    /// The first commit in it; `None`: it is empty.
    pub fn first(&self) -> Option<LogRecord> {
        let (lsn, timestamp) =
            (self.first_lsn.load(Ordering::Relaxed), self.first_timestamp.load(Ordering::Relaxed));
        (lsn != u64::MAX).then_some(LogRecord { start: Lsn(lsn), timestamp: Timestamp(timestamp) })
    }

    /// Forward, the first node that does not lie before a place; backward, the last one that does. Without a
    /// place the first or the last of all.
    pub fn seek(&self, place: Option<(&[u8], Timestamp)>, direction: Direction) -> Option<u32> {
        let link = match (place, direction) {
            (Some((key, at)), Direction::Forward) => self.around(key, at).1,
            (Some((key, at)), Direction::Backward) => self.around(key, at).0,
            (None, Direction::Forward) => self.heads[0].load(Ordering::Acquire),
            (None, Direction::Backward) => self.last(),
        };
        (link != 0).then_some(link)
    }

    /// The node behind another one.
    pub fn next(&self, node: u32) -> Option<u32> {
        let link = self.link(self.node(node), 0).load(Ordering::Acquire);
        (link != 0).then_some(link)
    }

    /// A node's version, with its key and value, which replace what was there.
    pub fn load(&self, node: u32, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Version {
        key.clear();
        value.clear();
        let Some(node) = self.node(node) else { return Version::from_bits(0) };
        let (length, levels, _) = node.lengths();
        node.page.copy_to(node.key_offset(levels), length, key);
        node.copy_value(value);
        node.version()
    }

    fn last(&self) -> u32 {
        let mut last = 0;
        for level in (0..LEVELS).rev() {
            loop {
                let next = self.link(self.node(last), level).load(Ordering::Acquire);
                if next == 0 {
                    break;
                }
                last = next;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use std::ops::Bound;

    use super::*;
    use crate::buffered::cursor::{Cursor as _, MemtableCursor};
    use crate::pool::testing::pool_over;

    fn record(timestamp: u64) -> LogRecord {
        LogRecord { start: Lsn(timestamp), timestamp: Timestamp(timestamp) }
    }

    fn empty(bytes: u64) -> Memtable {
        Memtable::new(&pool_over(&Arc::default(), 4 << 20), bytes)
    }

    fn put(table: &Memtable, key: &[u8], timestamp: u64) -> Result<(), Full> {
        table.put(key, Version::put(Timestamp(timestamp)), &timestamp.to_le_bytes()[..3], record(timestamp))
    }

    /// Keys and timestamps of what a cursor goes over.
    fn range(
        table: &Arc<Memtable>,
        start: Bound<&[u8]>,
        direction: Direction,
    ) -> Vec<(Vec<u8>, Reverse<u64>)> {
        let mut cursor = MemtableCursor::new(table, direction, start);
        let mut found = Vec::new();
        while let Some((key, version, _)) = cursor.get() {
            found.push((key.to_vec(), Reverse(version.timestamp().0)));
            cursor.advance().unwrap();
        }
        found
    }

    fn timestamps(found: &[(Vec<u8>, Reverse<u64>)]) -> Vec<u64> {
        found.iter().map(|(_, timestamp)| timestamp.0).collect()
    }

    #[test]
    fn a_reader_sees_the_newest_version_up_to_its_own_time() {
        let table = Arc::new(empty(64 << 10));
        assert_eq!((table.first(), range(&table, Bound::Unbounded, Direction::Backward).len()), (None, 0));
        for (key, timestamp) in [(b"b", 5), (b"a", 4), (b"b", 3), (b"c", 7)] {
            put(&table, key, timestamp).unwrap();
        }
        let find = |key: &[u8], at| {
            let mut value = Vec::new();
            table.find(key, Timestamp(at), &mut value).map(|version| (version.timestamp().0, value))
        };
        assert_eq!(find(b"b", 9), Some((5, vec![5, 0, 0])));
        assert_eq!(find(b"b", 4), Some((3, vec![3, 0, 0])));
        assert_eq!(find(b"b", 2), None);
        assert_eq!(find(b"bb", 9), None);
        assert_eq!(table.first(), Some(record(3)));
        let forward = |start| timestamps(&range(&table, start, Direction::Forward));
        let backward = |start| timestamps(&range(&table, start, Direction::Backward));
        assert_eq!(forward(Bound::Unbounded), [4, 5, 3, 7]);
        assert_eq!(backward(Bound::Unbounded), [7, 3, 5, 4]);
        assert_eq!(forward(Bound::Included(b"b")), [5, 3, 7]);
        assert_eq!(forward(Bound::Excluded(b"b")), [7]);
        assert_eq!(backward(Bound::Included(b"b")), [3, 5, 4]);
        assert_eq!(backward(Bound::Excluded(b"b")), [4]);
    }

    #[test]
    fn one_range_always_finds_room_and_many_do_not() {
        let table = empty(16 << 10);
        let (lower, upper) = (vec![1; 9000], vec![2; 9000]);
        assert_eq!(Memtable::none().remove_range(&lower, &upper, record(1)), Err(Full));
        assert_eq!(table.remove_range(&lower, &upper, record(1)), Ok(()));
        assert_eq!(table.remove_range(b"a", b"b", record(2)), Err(Full));
        assert_eq!(
            table.find(&[1; 9001], Timestamp(5), &mut Vec::new()),
            Some(Version::tombstone(Timestamp(1)))
        );
        let small = empty(16 << 10);
        let taken = (1_u64..)
            .take_while(|number| {
                let key = |number: u64| number.to_be_bytes();
                small.remove_range(&key(2 * number), &key(2 * number + 1), record(*number)).is_ok()
            })
            .count();
        assert!((50..1000).contains(&taken), "{taken}");
    }

    #[test]
    fn a_full_one_says_so_and_has_what_it_took() {
        let table = Arc::new(empty(16 << 10));
        let taken =
            (1_u64..).take_while(|number| put(&table, &number.to_be_bytes(), *number).is_ok()).count();
        assert!(taken > 100 && table.bytes() <= 16 << 10, "{taken}");
        assert_eq!(range(&table, Bound::Unbounded, Direction::Forward).len(), taken);
        assert_eq!(table.put(&[0; 5000], Version::put(Timestamp(1)), &[], record(1)), Err(Full));
    }

    #[test]
    fn threads_that_put_side_by_side_lose_nothing() {
        let table = Arc::new(empty(1 << 20));
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let table = &table;
                scope.spawn(move || {
                    for number in 0..2000_u64 {
                        let key = mix(number) % 1000;
                        put(table, &key.to_be_bytes(), 1 + number * 4 + thread).unwrap();
                        let mut value = Vec::new();
                        let found =
                            table.find(&key.to_be_bytes(), Timestamp(1 + number * 4 + thread), &mut value);
                        assert_eq!(found.map(|found| found.timestamp().0), Some(1 + number * 4 + thread));
                    }
                });
            }
        });
        let all = range(&table, Bound::Unbounded, Direction::Forward);
        assert_eq!(all.len(), 8000);
        assert!(all.is_sorted());
        let mut backward = range(&table, Bound::Unbounded, Direction::Backward);
        backward.reverse();
        assert_eq!(backward, all);
    }

    proptest! {
        #[test]
        fn it_is_an_ordered_map(
            versions in proptest::collection::btree_map((proptest::collection::vec(0_u8..4, 1..6), 1_u64..50), any::<u64>(), 0..150),
            key in proptest::collection::vec(0_u8..4, 1..6),
            at in 0_u64..50,
        ) {
            let table = Arc::new(empty(64 << 10));
            let mut model = BTreeMap::new();
            // In an order of their own.
            let mut shuffled: Vec<_> = versions.into_iter().collect();
            shuffled.sort_by_key(|(_, random)| *random);
            for ((key, timestamp), _) in shuffled {
                put(&table, &key, timestamp).unwrap();
                model.insert((key, Reverse(timestamp)), ());
            }
            let places = range(&table, Bound::Unbounded, Direction::Forward);
            prop_assert_eq!(&places, &model.keys().cloned().collect::<Vec<_>>());
            let expected = model.range((key.clone(), Reverse(at))..).next().map(|(place, ())| place);
            let expected = expected.filter(|place| place.0 == key).map(|place| place.1.0);
            let found = table.find(&key, Timestamp(at), &mut Vec::new());
            prop_assert_eq!(found.map(|found| found.timestamp().0), expected);
        }
    }
}
