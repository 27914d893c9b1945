//! Memtables: versions that are in no table yet, as a skip list in memory that the pool lends.
//!
//! A version is a *node*: it is written once, into memory that no other thread has, and then linked in, on
//! the lowest level first. A reader that follows a link sees the whole node. Nodes are never removed, so that
//! readers need no latch, and writers only compare and swap the links before their nodes (Fraser, "Practical
//! lock-freedom", 2004; RocksDB's memtable).
//!
//! ```text
//! | key bytes, u16; levels, u16 | value bytes, u32 | version, u64 | a link for each level, u32 | key | value |
//! ```
//!
//! A *sum* follows the value of some operands: one list with the same effect as these and the operands before
//! them, down to those of the oldest commit that it has. So a chain of operands that are written one by one
//! is read in few steps, and every snapshot still sees its own.
//!
//! ```text
//! | oldest commit, u64 | bytes, u32 | list of operands |
//! ```
//!
//! A link is the number of the node's first word, from the first frame's beginning; 0 is the end.

use std::cmp::Ordering as Compared;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::chain::Chain;
use super::live_ranges::LiveRanges;
use super::ranges::{RangeTombstones, Removals, Removed, hidden_by};
use super::retention::Retention;
use super::versions::KeyVersions;
use crate::class::{CLASSES, class_bytes};
use crate::hash::mix;
use crate::index::{Direction, Version};
use crate::log::{LogRecord, Lsn, Timestamp};
use crate::page::{Page, padded};
use crate::pool::{Lent, Pool, Unlent};
use crate::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use crate::worker::charge_compared;

/// Flags next to the number of levels: the node has a sum; one was tried, and the operator has none.
const SUMMED: u16 = 1 << 15;
const TRIED: u16 = 1 << 14;
const SUM_HEADER_BYTES: u32 = 12;
/// Number of operands of a key per sum.
const OPERANDS_PER_SUM: usize = 8;

/// Versions of a key that a cursor steps over before it seeks the next key.
const STEPS_BEFORE_SEEK: usize = 4;

/// Makes one list of operands of several, the oldest first, if the operator can.
pub(crate) type Join<'a> = &'a dyn Fn(&[&[u8]]) -> Option<Vec<u8>>;

/// See the module.
struct Sum {
    oldest: Timestamp,
    list: Vec<u8>,
}

/// Levels of links; each has a quarter of the nodes of the one below.
const LEVELS: usize = 12;
const NODES_PER_LEVEL_BITS: u32 = 2;

const LENGTHS: u32 = 0;
const VALUE_LENGTH: u32 = 4;
const VERSION: u32 = 8;
const LINKS: u32 = 16;

const WORD_BYTES: u32 = 4;

/// Frames are of the largest class that divides the memory into at least this number of them.
const FRAMES_MIN: u64 = 4;
const CLASS_MIN: usize = 0;
const CLASS_MAX: usize = 5;

/// The first word of the first frame is taken, so that the longest record may have to go into the second.
const FRAMES_OF_RECORD_MIN: u64 = 2;

/// Memory for nodes.
enum Frame {
    Lent(Lent),
    Own(Arc<Unlent>, usize),
}

impl Frame {
    fn page(&self) -> Page<'_> {
        match self {
            Self::Lent(lent) => lent.page(),
            Self::Own(memory, number) => memory.page(*number),
        }
    }
}

/// Range tombstones, which are few, are kept outside the frames. They take at most this part of the frames'
/// bytes, unless it is a single one.
const RANGES_DIVISOR: u64 = 4;

/// The least room that is reserved for an active memtable with anything in it.
const RESERVED_BYTES_MIN: u64 = 64 << 10;

/// The memtable has no room for a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Versions by key and timestamp, for any number of threads.
pub(crate) struct Memtable {
    frames: Vec<Frame>,
    frame_words: u32,
    /// Words that are taken; the first one is unused, as 0 is no link.
    taken: AtomicU32,
    /// First node of each level.
    heads: [AtomicU32; LEVELS],
    /// The first commit in it; the largest number if it has none. Both grow together.
    first_lsn: AtomicU64,
    first_timestamp: AtomicU64,
    ranges: RwLock<LiveRanges>,
    has_ranges: AtomicBool,
    /// Bytes of room that the tree has reserved for it.
    reserved_bytes: AtomicU64,
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
        let levels = levels & !(SUMMED | TRIED);
        (key.into(), levels.into(), self.page.word(self.offset + VALUE_LENGTH))
    }

    fn has_flag(self, flag: u16) -> bool {
        self.page.halves(self.offset + LENGTHS).1 & flag != 0
    }

    /// Its sum, if it has one, and only of operands that are newer than a removal of the key's range.
    fn sum(self, removed_at: Option<Timestamp>) -> Option<Sum> {
        if !self.has_flag(SUMMED) {
            return None;
        }
        let (key, levels, value) = self.lengths();
        let offset = self.key_offset(levels) + padded(key) + padded(value);
        let oldest = Timestamp(self.page.long(offset));
        if removed_at.is_some_and(|removed_at| removed_at >= oldest) {
            return None;
        }
        let mut list = Vec::new();
        self.page.copy_to(offset + SUM_HEADER_BYTES, self.page.word(offset + 8), &mut list);
        Some(Sum { oldest, list })
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

    /// The order of the node relative to a place.
    fn compare(self, key: &[u8], at: Timestamp) -> Compared {
        let (length, levels, _) = self.lengths();
        let keys = self.page.compare(self.key_offset(levels), length, key);
        keys.then_with(|| at.cmp(&self.version().timestamp()))
    }

    fn is_of(self, key: &[u8]) -> bool {
        let (length, levels, _) = self.lengths();
        self.page.compare(self.key_offset(levels), length, key) == Compared::Equal
    }

    fn copy_key(self, into: &mut Vec<u8>) {
        let (key, levels, _) = self.lengths();
        self.page.copy_to(self.key_offset(levels), key, into);
    }

    fn copy_value(self, into: &mut Vec<u8>) {
        let (key, levels, value) = self.lengths();
        self.page.copy_to(self.key_offset(levels) + padded(key), value, into);
    }
}

/// Number of a node's levels, from a random number.
fn levels_of(random: u64) -> usize {
    let more =
        (random | 1 << (NODES_PER_LEVEL_BITS * (LEVELS as u32 - 1))).trailing_zeros() / NODES_PER_LEVEL_BITS;
    1 + more as usize
}

impl Memtable {
    /// A memtable without memory: it is full.
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
            reserved_bytes: AtomicU64::new(0),
        }
    }

    /// The fewest bytes of a memtable that takes records with `record_bytes` of key and value.
    pub fn bytes_min(record_bytes: u64) -> u64 {
        FRAMES_OF_RECORD_MIN * class_bytes(Self::class_of(record_bytes))
    }

    /// Frames that have room for the longest record.
    fn class_of(record_bytes: u64) -> usize {
        let bytes = u64::from(LINKS + (LEVELS as u32 + 2) * WORD_BYTES) + record_bytes;
        (CLASS_MIN..CLASSES).find(|class| class_bytes(*class) >= bytes).unwrap_or(CLASSES - 1)
    }

    /// An empty memtable of `bytes`. It takes any record with at most `record_bytes` of key and value, as a
    /// later memtable would have no more room. Memory that the pool cannot lend at once is allocated: a
    /// commit that is logged has to be applied. That memory is backed as records come to it, so all memtables
    /// together take only slightly more than the log has of their trees, for any number of trees.
    pub fn new(pool: &Arc<Pool>, bytes: u64, record_bytes: u64) -> Self {
        let bytes = bytes.max(Self::bytes_min(record_bytes));
        let class = (CLASS_MIN..=CLASS_MAX).rev().find(|class| class_bytes(*class) * FRAMES_MIN <= bytes);
        let class = class.unwrap_or(CLASS_MIN).max(Self::class_of(record_bytes));
        let count = bytes.div_ceil(class_bytes(class)) as usize;
        let mut frames = Vec::with_capacity(count);
        frames.extend((0..count).map_while(|_| pool.try_lend(class)).map(Frame::Lent));
        if frames.len() < count {
            let others = count - frames.len();
            let own = Arc::new(Unlent::new(class_bytes(class) as u32, others));
            frames.extend((0..others).map(|number| Frame::Own(Arc::clone(&own), number)));
        }
        Self { frames, frame_words: class_bytes(class) as u32 / WORD_BYTES, ..Self::none() }
    }

    /// Bytes that are in use.
    pub fn used_bytes(&self) -> u64 {
        let taken = u64::from(self.taken.load(Ordering::Relaxed).saturating_sub(1)) * u64::from(WORD_BYTES);
        match self.has_ranges.load(Ordering::Acquire) {
            true => taken + self.ranges().bytes(),
            false => taken,
        }
    }

    /// Whether more bytes are in use than room is reserved for.
    pub fn has_outgrown(&self) -> bool {
        self.used_bytes() > self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of room that its tree reserves from now on. A frozen one needs the bytes in use. An active one
    /// gets twice as many, unless it is empty: commits change it while the reservation grows, and it grows in
    /// few steps.
    pub fn reserve(&self, is_frozen: bool) -> u64 {
        let used_bytes = self.used_bytes();
        let bytes = match used_bytes {
            0 => 0,
            _ if is_frozen => used_bytes,
            _ => (2 * used_bytes).max(RESERVED_BYTES_MIN),
        };
        self.reserved_bytes.fetch_max(bytes, Ordering::Relaxed);
        bytes
    }

    fn node(&self, link: u32) -> Option<Node<'_>> {
        let frame = self.frames.get((link / self.frame_words) as usize).filter(|_| link != 0)?;
        Some(Node { page: frame.page(), offset: link % self.frame_words * WORD_BYTES })
    }

    /// The link of a level after a node, or the level's first.
    fn link<'a>(&'a self, before: Option<Node<'a>>, level: usize) -> &'a AtomicU32 {
        before.and_then(|before| before.link(level)).unwrap_or(&self.heads[level])
    }

    /// Allocates `words`, all in one frame.
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

    /// The last node of a level before a place, from `before` on, and the one after it. Adds the nodes that
    /// were compared with the place to `compared`.
    fn before(
        &self,
        mut before: u32,
        level: usize,
        (key, at): (&[u8], Timestamp),
        compared: &mut u64,
    ) -> (u32, u32) {
        let mut node = self.node(before);
        loop {
            let link = self.link(node, level).load(Ordering::Acquire);
            *compared += u64::from(link != 0);
            match self.node(link) {
                Some(next) if next.compare(key, at) == Compared::Less => (before, node) = (link, Some(next)),
                _ => return (before, link),
            }
        }
    }

    /// The last node before a place, and the first one that does not lie before it; 0 for no node.
    fn around(&self, key: &[u8], at: Timestamp) -> (u32, u32) {
        let (mut before, mut link) = (0, 0);
        for level in (0..LEVELS).rev() {
            (before, link) = self.before(before, level, (key, at), &mut 0);
        }
        (before, link)
    }

    /// The flag of a put of operands, and perhaps its sum.
    fn sum_with(&self, key: &[u8], at: Timestamp, operands: &[u8], join: Join<'_>) -> (u16, Option<Sum>) {
        let of_operands =
            |link| self.node(link).filter(|node| node.is_of(key) && node.version().is_operands());
        let first = self.around(key, at).1;
        let (mut link, mut nodes) = (first, Vec::new());
        while nodes.len() + 1 < OPERANDS_PER_SUM {
            match of_operands(link) {
                Some(node) if !node.has_flag(SUMMED | TRIED) => nodes.push(node),
                _ => return (0, None),
            }
            link = self.link(nodes.last().copied(), 0).load(Ordering::Acquire);
        }
        let mut oldest = nodes.last().map_or(at, |node| node.version().timestamp());
        let mut lists = vec![operands.to_vec()];
        for node in &nodes {
            let mut list = Vec::new();
            node.copy_value(&mut list);
            lists.push(list);
        }
        if let Some(sum) = of_operands(link).and_then(|node| node.sum(None)) {
            oldest = sum.oldest;
            lists.push(sum.list);
        }
        let lists: Vec<&[u8]> = lists.iter().rev().map(Vec::as_slice).collect();
        match join(&lists) {
            Some(list) => (SUMMED, Some(Sum { oldest, list })),
            None => (TRIED, None),
        }
    }

    /// Adds a version of the commit that the log has as `record`. Operands may be [joined](Join) with those
    /// before them.
    ///
    /// # Errors
    /// [`Full`], and nothing has changed.
    pub fn put(
        &self,
        key: &[u8],
        version: Version,
        value: &[u8],
        record: LogRecord,
        join: Option<Join<'_>>,
    ) -> Result<(), Full> {
        self.insert(key, version, value, record, join).map(charge_compared)
    }

    /// As [`Memtable::put`]. It returns the number of nodes that were compared with the key.
    fn insert(
        &self,
        key: &[u8],
        version: Version,
        value: &[u8],
        record: LogRecord,
        join: Option<Join<'_>>,
    ) -> Result<u64, Full> {
        #[cfg(any(test, feature = "testing"))]
        crate::testing::count_step();
        let at = version.timestamp();
        let (flag, sum) = join.map_or((0, None), |join| self.sum_with(key, at, value, join));
        let sum_bytes = sum.as_ref().map_or(0, |sum| SUM_HEADER_BYTES + padded(sum.list.len() as u32));
        let random = mix(u64::from(self.taken.load(Ordering::Relaxed)) << 32 ^ at.0);
        let levels = levels_of(random);
        let key_bytes = padded(key.len() as u32);
        let value_bytes = padded(value.len() as u32);
        let bytes = LINKS + levels as u32 * WORD_BYTES + key_bytes + value_bytes + sum_bytes;
        let link = self.take(bytes / WORD_BYTES).ok_or(Full)?;
        // Before it is seen: a checkpoint that misses it replays the log from there.
        let is_noted =
            self.first().is_some_and(|first| first > record && planted!(FirstPutTakenForFirstCommit));
        if !is_noted {
            self.note(record);
        }
        let Some(node) = self.node(link) else { return Err(Full) };
        let Node { page, offset } = node;
        page.set_halves(offset + LENGTHS, key.len() as u16, levels as u16 | flag);
        page.set_word(offset + VALUE_LENGTH, value.len() as u32);
        page.set_long(offset + VERSION, version.bits());
        page.copy_from(node.key_offset(levels as u32), key);
        page.copy_from(node.key_offset(levels as u32) + key_bytes, value);
        if let Some(sum) = sum {
            let offset = node.key_offset(levels as u32) + key_bytes + value_bytes;
            page.set_long(offset, sum.oldest.0);
            page.set_word(offset + 8, sum.list.len() as u32);
            page.copy_from(offset + SUM_HEADER_BYTES, &sum.list);
        }
        let mut befores = [0; LEVELS];
        let (mut before, mut compared) = (0, 0);
        for level in (0..LEVELS).rev() {
            (before, _) = self.before(before, level, (key, at), &mut compared);
            befores[level] = before;
        }
        for (level, before) in befores.into_iter().enumerate().take(levels) {
            let mut before = before;
            loop {
                // Other nodes may have been linked in between meanwhile.
                let behind;
                (before, behind) = self.before(before, level, (key, at), &mut compared);
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
        Ok(compared)
    }

    /// Assigns all its versions, which no reader has seen, to a commit.
    pub fn stamp(&self, record: LogRecord) {
        let mut link = self.heads[0].load(Ordering::Relaxed);
        while let Some(node) = self.node(link) {
            let version = node.version().at(record.timestamp);
            node.page.set_long(node.offset + VERSION, version.bits());
            link = self.link(Some(node), 0).load(Ordering::Relaxed);
        }
        self.note(record);
    }

    fn note(&self, record: LogRecord) {
        self.first_lsn.fetch_min(record.start.0, Ordering::Relaxed);
        self.first_timestamp.fetch_min(record.timestamp.0, Ordering::Relaxed);
    }

    /// Removes the keys from `lower` on up to, and without, `upper`, by the commit that the log has as
    /// `record`. Older removals of the same keys stay as far as `retention` needs them: all without one.
    ///
    /// # Errors
    /// [`Full`], and nothing has changed.
    pub fn remove_range(
        &self,
        lower: &[u8],
        upper: &[u8],
        record: LogRecord,
        retention: Option<&Retention>,
    ) -> Result<(), Full> {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let bytes = self.frames.len() as u64 * u64::from(self.frame_words) * u64::from(WORD_BYTES);
        let taken = ranges.bytes() + (lower.len() + upper.len()) as u64;
        // An empty memtable takes one with keys of any length: the next memtable has no more room.
        if self.frames.is_empty() || !ranges.is_empty() && taken > bytes / RANGES_DIVISOR {
            return Err(Full);
        }
        self.note(record);
        ranges.add(lower, upper, record.timestamp, |range| match retention {
            Some(retention) => retention.needed(range, false),
            None => range.removed_at.clone(),
        });
        self.has_ranges.store(true, Ordering::Release);
        Ok(())
    }

    fn ranges(&self) -> RwLockReadGuard<'_, LiveRanges> {
        self.ranges.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has removals of ranges.
    pub fn has_ranges(&self) -> bool {
        self.has_ranges.load(Ordering::Acquire)
    }

    /// Its removals of ranges.
    pub fn range_tombstones(&self) -> RangeTombstones {
        self.ranges().all()
    }

    /// The newest version of a key that is not newer than `at`; its value is appended to `into`.
    pub fn find(&self, key: &[u8], at: Timestamp, into: &mut Vec<u8>) -> Option<Version> {
        let found = self.find_own(key, at, into);
        hidden_by(self.removed_at(key, at), found)
    }

    /// The same without regard to removals of ranges.
    pub fn find_own(&self, key: &[u8], at: Timestamp, into: &mut Vec<u8>) -> Option<Version> {
        self.node(self.around(key, at).1).filter(|node| node.is_of(key)).map(|node| {
            node.copy_value(into);
            node.version()
        })
    }

    /// The newest removal of a range with the key that is not newer than `at`.
    pub fn removed_at(&self, key: &[u8], at: Timestamp) -> Option<Timestamp> {
        self.has_ranges().then(|| self.ranges().newest(key, at)).flatten()
    }

    /// Shows the versions of a key to `take`, the newest first of those that are not newer than `at`, until
    /// it returns that older ones are not needed: each with the oldest commit of its operands, if `sums` may
    /// stand for several. Returns whether older ones are needed. Removals of ranges hide nothing.
    pub fn each_of(
        &self,
        key: &[u8],
        at: Timestamp,
        sums: bool,
        take: impl FnMut(Version, &[u8], Timestamp) -> bool,
    ) -> bool {
        self.each_from(self.around(key, at).1, key, (at, sums), take)
    }

    /// The same from the version at `link` on.
    fn each_from(
        &self,
        mut link: u32,
        key: &[u8],
        (at, sums): (Timestamp, bool),
        mut take: impl FnMut(Version, &[u8], Timestamp) -> bool,
    ) -> bool {
        let removed_at = if sums { self.removed_at(key, at) } else { None };
        let mut value = Vec::new();
        while let Some(node) = self.node(link).filter(|node| node.is_of(key)) {
            #[cfg(any(test, feature = "testing"))]
            crate::testing::count_step();
            let version = node.version();
            if sums && let Some(Sum { oldest, list }) = node.sum(removed_at) {
                if !take(version, &list, oldest) {
                    return false;
                }
                link = self.around(key, Timestamp(oldest.0.saturating_sub(1))).1;
                continue;
            }
            value.clear();
            node.copy_value(&mut value);
            if !take(version, &value, version.timestamp()) {
                return false;
            }
            link = self.link(Some(node), 0).load(Ordering::Acquire);
        }
        true
    }

    /// Adds the versions of a key to a chain, down to one that is not made of operands. Returns whether older
    /// ones are needed, which are not here.
    pub fn take_chain(&self, key: &[u8], chain: &mut Chain) -> bool {
        let removed_at = self.removed_at(key, chain.at);
        let mut is_removed = false;
        let needs_older = self.each_of(key, chain.at, true, |version, value, oldest| {
            is_removed = removed_at.is_some_and(|removed_at| version.timestamp() < removed_at)
                && !planted!(BaseUnderRemovedRangeUsed);
            !is_removed && chain.take_sum(version, value, oldest)
        });
        match removed_at {
            Some(removed_at) if needs_older || is_removed => chain.take(Version::tombstone(removed_at), &[]),
            _ => needs_older,
        }
    }

    /// The versions that a reader as of `at` needs of the key of `newest`, the node of its newest version:
    /// that version, if it is newer than `at`, and those that the reader sees, down to one that is not made
    /// of operands, the newest first.
    pub fn seen_of(&self, newest: u32, (at, sums): (Timestamp, bool), versions: &mut KeyVersions) {
        let Some(node) = self.node(newest) else { return versions.begin(&[]) };
        let mut key = Vec::new();
        node.copy_key(&mut key);
        versions.begin(&key);
        let mut first = newest;
        if node.version().timestamp() > at {
            versions.push(node.version(), &[]);
            first = self.around(&key, at).1;
        }
        self.each_from(first, &key, (at, sums), |version, value, _| {
            versions.push(version, value);
            version.is_operands()
        });
    }

    /// The node with the newest version of a node's key.
    pub fn newest_of(&self, node: u32) -> u32 {
        let mut key = Vec::new();
        self.node(node).iter().for_each(|node| node.copy_key(&mut key));
        self.around(&key, Timestamp(u64::MAX)).1
    }

    /// The first node after `node` that has another key than `key`.
    pub fn next_key(&self, mut node: u32, key: &[u8]) -> Option<u32> {
        for _ in 0..STEPS_BEFORE_SEEK {
            node = self.next(node)?;
            if self.node(node).is_none_or(|node| !node.is_of(key)) {
                return Some(node);
            }
        }
        self.seek(Some((key, Timestamp(0))), Direction::Forward)
    }

    /// Bytes in use of the memory that the pool has not lent.
    #[cfg(test)]
    fn backed_bytes(&self) -> u64 {
        let first = self.frames.iter().find_map(|frame| match frame {
            Frame::Own(memory, _) => Some(memory.backed_bytes()),
            Frame::Lent(_) => None,
        });
        first.unwrap_or(0)
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

    /// Whether it has a version of a key from the first of these on up to, and without, the second.
    pub fn has_between(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        let first = self.node(self.around(lower, Timestamp(u64::MAX)).1);
        let is_before = |node: Node<'_>| {
            upper.is_none_or(|upper| node.compare(upper, Timestamp(u64::MAX)) == Compared::Less)
        };
        first.is_some_and(is_before)
    }

    /// The node after another one.
    pub fn next(&self, node: u32) -> Option<u32> {
        let link = self.link(self.node(node), 0).load(Ordering::Acquire);
        (link != 0).then_some(link)
    }

    /// A node's version. Its key and value replace the contents of `key` and `value`.
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

impl Removals for Memtable {
    fn around(&self, key: &[u8], at: Timestamp) -> Removed {
        self.ranges().around(key, at)
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
        Memtable::new(&pool_over(&Arc::default(), 4 << 20), bytes, 64)
    }

    fn put(table: &Memtable, key: &[u8], timestamp: u64) -> Result<(), Full> {
        table.put(
            key,
            Version::put(Timestamp(timestamp)),
            &timestamp.to_le_bytes()[..3],
            record(timestamp),
            None,
        )
    }

    /// Keys and timestamps of the versions that a cursor yields.
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
    fn the_smallest_memtable_takes_the_longest_record() {
        let pool = pool_over(&Arc::default(), 4 << 20);
        for (key_bytes, value_bytes) in [
            (1, 0),
            (1024, 960),
            (1024, 3000),
            (2048, 1984),
            (8192, 8128),
            (16_384, 16_320),
            (65_535, 65_472),
        ] {
            let record_bytes = (key_bytes + value_bytes) as u64;
            let (key, value) = (vec![b'k'; key_bytes], vec![b'v'; value_bytes]);
            // With any number of links.
            for at in 1..200 {
                let table = Memtable::new(&pool, 1, record_bytes);
                let put = table.put(&key, Version::put(Timestamp(at)), &value, record(at), None);
                assert_eq!(put, Ok(()), "{key_bytes}, {value_bytes}, {at}");
                assert!(table.bytes() <= Memtable::bytes_min(record_bytes));
            }
        }
    }

    #[test]
    fn memory_of_memtables_is_backed_as_records_come_to_it() {
        const TREES: u64 = 50;
        let pool = pool_over(&Arc::default(), 4 << 20);
        let tables: Vec<_> = (0..TREES).map(|_| Memtable::new(&pool, 8 << 20, 64)).collect();
        let backed_bytes = || tables.iter().map(Memtable::backed_bytes).sum::<u64>();
        assert_eq!(backed_bytes(), 0);
        for table in &tables {
            put(table, b"key", 1).unwrap();
        }
        // The processor may have larger pages than the usual 4 KiB.
        let page_bytes = crate::pool::backing_page_bytes();
        assert!((TREES - 1..=TREES).contains(&(backed_bytes() / page_bytes)), "{}", backed_bytes());
        (2..1000_u64).for_each(|number| put(&tables[1], &number.to_be_bytes(), number).unwrap());
        let used_bytes = tables[1].bytes();
        let bounds = used_bytes..=used_bytes + 2 * page_bytes;
        assert!(bounds.contains(&tables[1].backed_bytes()), "{} of {used_bytes}", tables[1].backed_bytes());
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
        assert_eq!(Memtable::none().remove_range(&lower, &upper, record(1), None), Err(Full));
        assert_eq!(table.remove_range(&lower, &upper, record(1), None), Ok(()));
        assert_eq!(table.remove_range(b"a", b"b", record(2), None), Err(Full));
        assert_eq!(
            table.find(&[1; 9001], Timestamp(5), &mut Vec::new()),
            Some(Version::tombstone(Timestamp(1)))
        );
        let small = empty(16 << 10);
        let taken = (1_u64..)
            .take_while(|number| {
                let key = |number: u64| number.to_be_bytes();
                small.remove_range(&key(2 * number), &key(2 * number + 1), record(*number), None).is_ok()
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
        assert_eq!(table.put(&[0; 5000], Version::put(Timestamp(1)), &[], record(1), None), Err(Full));
    }

    /// Nodes that a write is compared with on average, over the last tenth of `records` writes.
    fn compared(table: &Memtable, records: u64) -> f64 {
        let insert = |number: u64| {
            let (key, version) = (mix(number).to_be_bytes(), Version::put(Timestamp(1 + number)));
            table.insert(&key, version, &[7; 8], record(1 + number), None).unwrap()
        };
        let last = records / 10;
        (0..records - last).for_each(|number| assert!(insert(number) <= number * LEVELS as u64));
        (records - last..records).map(insert).sum::<u64>() as f64 / last as f64
    }

    #[test]
    fn a_write_is_compared_with_as_many_nodes_more_in_each_memtable_four_times_as_large() {
        let of = [1_000, 4_000, 16_000].map(|records| compared(&empty(4 << 20), records));
        // A level more, with four nodes for one of the next.
        let more = [of[1] - of[0], of[2] - of[1]];
        assert!(more.iter().all(|more| (2.0..8.0).contains(more)) && of[0] > 10.0, "{of:?}");
    }

    /// Processor time of the calling thread.
    fn processor_ns() -> u64 {
        let counted = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        counted.split(' ').next().unwrap().parse().unwrap()
    }

    /// `cargo test --release -p flashgrain --lib time_of_a_compared_node -- --ignored --nocapture`.
    #[test]
    #[ignore = "prints figures"]
    fn time_of_a_compared_node() {
        for mib in [16_u64, 64, 256] {
            let records = (mib << 20) / 1100;
            let pool = pool_over(&Arc::default(), 4 << 20);
            let table = Memtable::new(&pool, mib << 20, 1100);
            let (mut compared, last) = (0, records / 10);
            let mut insert = |number: u64| {
                let (key, version) =
                    (u128::from(mix(number)).to_le_bytes(), Version::put(Timestamp(1 + number)));
                compared += table.insert(&key, version, &[7; 1000], record(1 + number), None).unwrap();
            };
            (0..records - last).for_each(&mut insert);
            let began = processor_ns();
            (records - last..records).for_each(&mut insert);
            let ns = (processor_ns() - began) as f64 / last as f64;
            println!("{mib} MiB: an insert takes {ns:.0} ns, {:.1} nodes", compared as f64 / records as f64);
        }
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

    /// The sum that a chain makes of operands that add, without a base elsewhere.
    fn counted(table: &Memtable, at: u64, sums: bool) -> (u64, Option<u64>) {
        let operators = crate::index::own_operators();
        let operator = operators.of_tree(crate::index::AddOperator::NAME);
        let removed_at = table.removed_at(b"k", Timestamp(at));
        let (mut chain, mut steps) = (Chain::new(Timestamp(at)), 0);
        table.each_of(b"k", Timestamp(at), sums, |version, value, oldest| {
            steps += 1;
            removed_at.is_none_or(|removed_at| version.timestamp() > removed_at)
                && chain.take_sum(version, value, oldest)
        });
        let value = chain.value(b"k", Some(&operator), None).unwrap();
        (steps, value.map(|value| u64::from_le_bytes(value.try_into().unwrap())))
    }

    proptest! {
        /// Sums change nothing, whatever a reader's snapshot is, and spare steps.
        #[test]
        fn sums_are_what_they_stand_for(
            kinds in proptest::collection::vec(0_u8..40, 1..200),
            at in 1_u64..200,
        ) {
            let table = empty(1 << 20);
            let operators = crate::index::own_operators();
            let operator = operators.of_tree(crate::index::AddOperator::NAME);
            let join = |lists: &[&[u8]]| operator.joined(b"k", lists);
            for (number, kind) in (1..).zip(&kinds) {
                let (timestamp, mut list) = (Timestamp(number), Vec::new());
                crate::index::operands::push(&mut list, &number.to_le_bytes());
                let done = match kind {
                    0 => table.put(b"k", Version::put(timestamp), &number.to_le_bytes(), record(number), None),
                    1 => table.put(b"k", Version::tombstone(timestamp), &[], record(number), None),
                    2 => table.remove_range(b"a", b"z", record(number), None),
                    _ => table.put(b"k", Version::operands(timestamp), &list, record(number), Some(&join)),
                };
                prop_assert_eq!(done, Ok(()));
            }
            let ((few, with), (_, without)) = (counted(&table, at, true), counted(&table, at, false));
            prop_assert_eq!(with, without);
            if !kinds.contains(&2) {
                prop_assert!(few <= OPERANDS_PER_SUM as u64 + 1, "{} steps", few);
            }
        }
    }
}
