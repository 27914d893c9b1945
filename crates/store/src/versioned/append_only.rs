//! An index that only adds: every version is a record of its own, by key and timestamp.
//!
//! No release contains it. It is the smallest index that keeps versions natively and reads nothing before it
//! writes, and uses every part of the boundary that in-place trees do not:
//!
//! 1. A commit's versions go to plain memory.
//! 2. Before a checkpoint's cut, the versions in memory are put into pages. Commits between that and the cut
//!    pin the log: [`replay_from`](Index::replay_from) names the first of them.
//! 3. When the store is idle, versions that no snapshot needs are removed from the pages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::task::Poll;

use super::history::{version_name, version_name_bytes};
use super::ordered_map::OrderedMap;
use crate::Error;
use crate::btree::Change;
use crate::header::PageId;
use crate::index::{
    Census, Clearing, Commit, Direction, Found, Index, Limits, May, Newest, Piece, Reapplied, SeeVersion,
    Snapshots, Steps, TreeId, VERSION_BYTES, Version, Write, Written,
};
use crate::log::{LogRecord, Timestamp};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::task::yield_now;

/// Bytes in memory from which on writers are slowed down.
const MEMORY_BYTES_MAX: usize = 1 << 20;

/// A version's length of the key, before the key.
const KEY_LENGTH_BYTES: usize = 2;

/// See the module.
pub(crate) struct AppendOnly<M> {
    id: TreeId,
    pages: Arc<M>,
    memory: Mutex<Memory>,
    /// Whether somebody changes pages, or walks through them, which only one may do at a time.
    is_busy: AtomicBool,
    /// Whether its pages are others' by now.
    is_cleared: AtomicBool,
    reads: AtomicU64,
}

/// Versions that are in no page yet.
#[derive(Default)]
struct Memory {
    versions: BTreeMap<Vec<u8>, BTreeMap<Timestamp, InMemory>>,
    bytes: usize,
}

#[derive(Clone)]
struct InMemory {
    version: Version,
    value: Vec<u8>,
    record: LogRecord,
}

/// A version as a page has it.
struct OnPage<'a> {
    version: Version,
    key: &'a [u8],
    value: &'a [u8],
}

impl<'a> OnPage<'a> {
    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (version, rest) = Version::split(bytes)?;
        let (length, rest) = rest.split_first_chunk::<KEY_LENGTH_BYTES>()?;
        let (key, value) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        Some(Self { version, key, value })
    }

    fn encode(&self) -> Vec<u8> {
        let length = (self.key.len() as u16).to_le_bytes();
        [&self.version.bits().to_le_bytes()[..], &length, self.key, self.value].concat()
    }
}

/// See [`AppendOnly::pages_alone`].
struct Alone<'a>(&'a AtomicBool);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// A version in pages that may be unneeded.
struct OldOnPage {
    name: Vec<u8>,
    version: Version,
    /// Of an overflow value.
    reference: Option<Vec<u8>>,
}

impl Memory {
    fn put(&mut self, key: &[u8], found: InMemory) {
        self.bytes += key.len() + found.value.len();
        self.versions.entry(key.to_vec()).or_default().insert(found.version.timestamp(), found);
    }

    /// The newest version that is not newer than `at`.
    fn newest(&self, key: &[u8], at: Timestamp) -> Option<&InMemory> {
        self.versions.get(key)?.range(..=at).next_back().map(|(_, found)| found)
    }
}

impl<M: OrderedMap + 'static> AppendOnly<M> {
    /// The tree with this number, of which the map has the versions that are in pages.
    pub fn new(id: TreeId, pages: Arc<M>) -> Self {
        let (memory, is_busy) = (Mutex::default(), AtomicBool::new(false));
        let (is_cleared, reads) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { id, pages, memory, is_busy, is_cleared, reads }
    }

    /// How often somebody has looked a key up.
    #[cfg(test)]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest version of a key in pages that is not newer than `at`, and its value.
    fn newest_on_page(&self, key: &[u8], at: Timestamp) -> Result<Option<(Version, Vec<u8>)>, Error> {
        let names = (version_name(self.id, key, at), version_name(self.id, key, Timestamp(0)));
        let mut pieces = Arc::clone(&self.pages).scan(Direction::Forward, &names.0, Some(&names.1), 0);
        let mut piece = Piece::default();
        if !pieces.next(&mut piece)? {
            return Ok(None);
        }
        let found = piece.get(0).and_then(|(_, bytes)| OnPage::decode(bytes));
        Ok(found.map(|found| (found.version, found.value.to_vec())))
    }

    /// The newest version of a key that is not newer than `at`, and its value.
    fn newest(&self, key: &[u8], at: Timestamp) -> Result<Option<(Version, Vec<u8>)>, Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        // Versions are put into pages before they leave memory, so memory has to be looked at first.
        let found = self.memory().newest(key, at).map(|found| (found.version, found.value.clone()));
        preempt!();
        found.map_or_else(|| self.newest_on_page(key, at), |found| Ok(Some(found)))
    }

    /// Waits until nobody else changes pages or walks through them.
    fn pages_alone(&self) -> Alone<'_> {
        while self.is_busy.swap(true, Ordering::SeqCst) {
            yield_now();
        }
        Alone(&self.is_busy)
    }

    /// Puts the versions in memory into pages. The caller holds [`Alone`].
    fn flush(&self) -> Result<(), Error> {
        let taken = self.memory().versions.clone();
        for (key, versions) in &taken {
            for (timestamp, found) in versions {
                let bytes = OnPage { version: found.version, key, value: &found.value }.encode();
                let name = version_name(self.id, key, *timestamp);
                self.pages.update(&name, &mut |_| Change::Put(&bytes))?;
                preempt!();
            }
        }
        let mut memory = self.memory();
        for (key, versions) in &taken {
            let Some(left) = memory.versions.get_mut(key) else { continue };
            left.retain(|timestamp, _| !versions.contains_key(timestamp));
            if left.is_empty() {
                memory.versions.remove(key);
            }
        }
        let bytes = |(key, versions): (&Vec<u8>, &BTreeMap<Timestamp, InMemory>)| {
            versions.values().map(|found| key.len() + found.value.len()).sum::<usize>()
        };
        memory.bytes = memory.versions.iter().map(bytes).sum();
        Ok(())
    }

    /// Of the versions of a key, the newest first, takes those that no snapshot needs, the oldest first.
    fn add_unneeded(
        versions: &mut Vec<OldOnPage>,
        snapshots: &Snapshots,
        visible: Timestamp,
        unneeded: &mut Vec<OldOnPage>,
    ) {
        let mut are_all_older_unneeded = true;
        while let Some(old) = versions.pop() {
            let timestamp = old.version.timestamp();
            let is_unneeded = match versions.last().map(|newer| newer.version.timestamp()) {
                Some(until) => until <= visible && !snapshots.any_within(timestamp, until),
                None => {
                    old.version.is_tombstone()
                        && are_all_older_unneeded
                        && timestamp <= visible
                        && !snapshots.any_within(Timestamp(0), timestamp)
                }
            };
            are_all_older_unneeded &= is_unneeded;
            if is_unneeded {
                unneeded.push(old);
            }
        }
    }

    /// Shows all versions that are in pages, by key and the newest first.
    fn each_on_page(&self, mut see: impl FnMut(&[u8], OnPage<'_>) -> Result<(), Error>) -> Result<(), Error> {
        let mut pieces = Arc::clone(&self.pages).scan(Direction::Forward, &[], None, 0);
        let mut piece = Piece::default();
        while pieces.next(&mut piece)? {
            for (name, bytes) in piece.iter() {
                if let Some(found) = OnPage::decode(bytes) {
                    see(name, found)?;
                }
            }
        }
        Ok(())
    }
}

impl<M: OrderedMap + 'static> Index for AppendOnly<M> {
    fn read(
        &self,
        key: &[u8],
        at: Option<Timestamp>,
        may: May,
        into: &mut Vec<u8>,
    ) -> Result<Poll<Found>, Error> {
        if may == May::NotWait {
            return Ok(Poll::Pending);
        }
        let found = self.newest(key, at.unwrap_or(Timestamp(u64::MAX)))?;
        let newest = found.as_ref().map(|(version, _)| version.timestamp());
        let found = found.filter(|(version, _)| !version.is_tombstone());
        let version = found.map(|(version, value)| {
            into.extend_from_slice(&value);
            version
        });
        Ok(Poll::Ready(Found { version, newest }))
    }

    fn newest_since(&self, key: &[u8], since: Timestamp, may: May) -> Result<Poll<Newest>, Error> {
        if may == May::NotWait {
            return Ok(Poll::Pending);
        }
        let newest = self.newest(key, Timestamp(u64::MAX))?.map(|(version, _)| version.timestamp());
        Ok(Poll::Ready(Newest::of(newest, since)))
    }

    fn apply(
        &self,
        writes: &[Written<'_>],
        _priors: &[crate::index::Prior],
        _values: &[u8],
        commit: &Commit<'_>,
    ) -> Result<(), Error> {
        for written in writes {
            let (version, value) = written.write.version(commit.record.timestamp);
            let found = InMemory { version, value: value.to_vec(), record: commit.record };
            self.memory().put(written.key, found);
            preempt!();
        }
        Ok(())
    }

    fn reapply(&self, key: &[u8], write: Write<'_>, record: LogRecord) -> Result<Reapplied, Error> {
        let (version, value) = write.version(record.timestamp);
        let newest_at = |at| -> Result<Option<Timestamp>, Error> {
            Ok(self.newest_on_page(key, at)?.map(|(version, _)| version.timestamp()))
        };
        if newest_at(record.timestamp)? == Some(record.timestamp) {
            return Ok(Reapplied::default());
        }
        if newest_at(Timestamp(u64::MAX))? > Some(record.timestamp) {
            // It was given up before the checkpoint.
            return Ok(Reapplied { is_outdated: true, replaced: None });
        }
        self.memory().put(key, InMemory { version, value: value.to_vec(), record });
        Ok(Reapplied::default())
    }

    fn scan(
        self: Arc<Self>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        _ahead: u32,
        at: Timestamp,
    ) -> Box<dyn Steps> {
        let (lower, upper) = (lower.to_vec(), upper.map(<[u8]>::to_vec));
        Box::new(MergedRecords { tree: self, direction, lower, upper, at, has_ended: false })
    }

    fn limits(&self) -> Limits {
        let limits = self.pages.limits();
        let mut key_bytes = limits.key_bytes / 2;
        while version_name_bytes(key_bytes) > limits.key_bytes {
            key_bytes -= 1;
        }
        let value_bytes = limits.value_bytes - VERSION_BYTES - KEY_LENGTH_BYTES - key_bytes;
        Limits { key_bytes, value_bytes, ..limits }
    }

    fn dirtied_bytes(&self) -> u64 {
        self.limits().node_bytes as u64
    }

    fn replay_from(&self) -> Option<LogRecord> {
        let memory = self.memory();
        memory.versions.values().flat_map(BTreeMap::values).map(|found| found.record).min()
    }

    fn before_cut(&self, _may: May) -> Result<(), Error> {
        let _alone = self.pages_alone();
        if self.is_cleared.load(Ordering::SeqCst) { Ok(()) } else { self.flush() }
    }

    fn debt(&self) -> f64 {
        self.memory().bytes as f64 / MEMORY_BYTES_MAX as f64 - 1.0
    }

    fn settle(
        &self,
        snapshots: &Snapshots,
        visible: Timestamp,
        overflow_is_gone: &dyn Fn(&[u8]),
    ) -> Result<(), Error> {
        let _alone = self.pages_alone();
        if self.is_cleared.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.flush()?;
        let (mut key, mut versions, mut unneeded) = (Vec::new(), Vec::new(), Vec::new());
        self.each_on_page(|name, found| {
            if key != found.key {
                Self::add_unneeded(&mut versions, snapshots, visible, &mut unneeded);
                key = found.key.to_vec();
            }
            let reference = found.version.is_overflow().then(|| found.value.to_vec());
            versions.push(OldOnPage { name: name.to_vec(), version: found.version, reference });
            Ok(())
        })?;
        Self::add_unneeded(&mut versions, snapshots, visible, &mut unneeded);
        // The older ones of a key first: a tombstone hides them as long as there are any.
        for old in unneeded {
            self.pages.update(&old.name, &mut |_| Change::Remove)?;
            preempt!();
            old.reference.iter().for_each(|reference| overflow_is_gone(reference));
        }
        Ok(())
    }

    fn walk(&self, page: &mut dyn FnMut(PageId), record: SeeVersion<'_>) -> Result<Census, Error> {
        let _alone = self.pages_alone();
        let census = self.pages.walk(page, &mut |_, bytes| {
            if let Some(found) = OnPage::decode(bytes) {
                record(found.key, found.version, found.value);
            }
        })?;
        // A copy, as `record` may wait.
        let in_memory = self.memory().versions.clone();
        for (key, versions) in &in_memory {
            versions.values().for_each(|found| record(key, found.version, &found.value));
        }
        Ok(census)
    }

    fn clear(&self, clearing: &Clearing<'_>) -> Result<(), Error> {
        (clearing.go_on)()?;
        let _alone = self.pages_alone();
        self.is_cleared.store(true, Ordering::SeqCst);
        let in_memory = std::mem::take(&mut *self.memory());
        let overflow = |found: &&InMemory| found.version.is_overflow();
        let in_memory = in_memory.versions.values().flat_map(BTreeMap::values).filter(overflow);
        clearing.free_all(in_memory.map(|found| &found.value))?;
        if !self.pages.is_cut_off()? {
            self.each_on_page(|name, found| {
                if !found.version.is_overflow() {
                    return Ok(());
                }
                self.pages.update(name, &mut |_| Change::Remove)?;
                (clearing.free_overflow)(found.value)?;
                (clearing.go_on)()
            })?;
        }
        self.pages.clear(clearing.go_on)
    }

    fn destroy(&self) -> Result<(), Error> {
        self.pages.destroy()
    }
}

/// A scan over memory and pages.
struct MergedRecords<M> {
    tree: Arc<AppendOnly<M>>,
    direction: Direction,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    at: Timestamp,
    has_ended: bool,
}

impl<M: OrderedMap + 'static> MergedRecords<M> {
    /// The next keys, from memory as far as pages go.
    fn keys(&mut self) -> Result<BTreeSet<Vec<u8>>, Error> {
        // Versions are put into pages before they leave memory, so memory comes first.
        let in_memory: Vec<Vec<u8>> = self.tree.memory().versions.keys().cloned().collect();
        preempt!();
        let newest = Timestamp(u64::MAX);
        let first = |key: &[u8]| version_name(self.tree.id, key, newest);
        let (lower, upper) = (first(&self.lower), self.upper.as_deref().map(first));
        let pages = Arc::clone(&self.tree.pages);
        let mut pieces = pages.scan(self.direction, &lower, upper.as_deref(), 0);
        let mut piece = Piece::default();
        self.has_ended = !pieces.next(&mut piece)?;
        let mut keys: BTreeSet<Vec<u8>> =
            piece.iter().filter_map(|(_, bytes)| Some(OnPage::decode(bytes)?.key.to_vec())).collect();
        let upper = self.upper.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let lower = Bound::Included(self.lower.clone());
        let covered = match self.direction {
            Direction::Forward => (lower, keys.last().cloned().map_or(upper, Bound::Included)),
            Direction::Backward => (keys.first().cloned().map_or(lower, Bound::Included), upper),
        };
        keys.extend(in_memory.into_iter().filter(|key| covered.contains(key)));
        Ok(keys)
    }
}

impl<M: OrderedMap + 'static> Steps for MergedRecords<M> {
    fn step(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        piece.clear();
        let is_empty = |steps: &Self| steps.upper.as_ref().is_some_and(|upper| *upper <= steps.lower);
        while piece.is_empty() && !self.has_ended && !is_empty(self) {
            let keys = self.keys()?;
            for key in &keys {
                let found = self.tree.newest(key, self.at)?;
                if let Some((version, value)) = found.filter(|(version, _)| !version.is_tombstone()) {
                    piece.push(key, &[&version.bits().to_le_bytes()[..], &value].concat());
                }
            }
            match (self.direction, keys.first(), keys.last()) {
                (Direction::Forward, _, Some(last)) => self.lower = [last.as_slice(), &[0]].concat(),
                (Direction::Backward, Some(first), _) => self.upper = Some(first.clone()),
                _ => {}
            }
        }
        Ok(!piece.is_empty())
    }
}
