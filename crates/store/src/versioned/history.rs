//! The history: versions that were replaced while a snapshot may still see them.
//!
//! They are kept in plain memory, and if they are many, in indexes of their own with volatile pages: these
//! are evicted like all others, and are gone after a restart, as snapshots are. A version is found by tree,
//! key and timestamp, the newest first, and contains the commit that replaced it: snapshots before that
//! commit see it.
//!
//! *Generations.* A version is never removed from its generation; the generation is given up as a whole when
//! no snapshot sees anything in it any more. A version goes to the generation of the oldest snapshot that
//! sees it, so that a long-lived snapshot does not keep versions that only short-lived ones needed: a
//! generation that has to stay for a long-lived snapshot has at most one version of each key.
//!
//! *Tombstones.* A record that is removed while there are snapshots leaves a tombstone in its tree, which
//! leads to its older versions. Tombstones are noted in generations of their own, and removed from the tree
//! when these are given up: when no snapshot is older than the removal.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::collections::HashMap;

use smallvec::SmallVec;

use super::long_records;
use super::ordered_map::OrderedMap;
use super::recent::Recent;
use crate::Error;
use crate::btree::Change;
use crate::index::{Direction, OldVersions, Piece, Snapshots, TreeId, Version};
use crate::log::Timestamp;
use crate::poison::Poison;

/// Records that a generation takes before another one is begun.
const RECORDS_MAX: u64 = 1 << 11;

/// Generations with fewer records are kept while the store is busy: others would follow at once.
const RECORDS_MIN: u64 = 1 << 9;

/// The share of the plain memory that one generation may take: that of a snapshot that stays for long gets
/// all that is replaced, and must leave some to the others.
const GENERATION_DIVISOR: u64 = 4;

/// Makes empty maps with volatile pages.
pub(crate) type MakeMap = Box<dyn Fn() -> Result<Arc<dyn OrderedMap>, Error> + Send + Sync>;

/// See the module.
pub(crate) struct History {
    make: MakeMap,
    poison: Poison,
    /// The last commit of earlier runs of the store.
    opened_at: AtomicU64,
    /// By the snapshots they are for.
    versions: Mutex<Vec<Arc<Generation>>>,
    tombstones: Mutex<Vec<Arc<Generation>>>,
    /// Whether a generation is so large that giving it up is worth while.
    is_worth_giving_up: AtomicBool,
    /// Plain memory that they may still take.
    remaining_bytes: Arc<AtomicU64>,
    /// Upper bound for the plain memory of one generation.
    generation_bytes: u64,
}

/// Records that are given up together.
struct Generation {
    /// Versions whose oldest snapshot has this timestamp or a later one.
    snapshots_from: Timestamp,
    recent: Recent,
    /// Records that did not fit into `recent`.
    map: Arc<dyn OrderedMap>,
    is_map_used: AtomicBool,
    /// Whether the map has records in parts.
    has_long: AtomicBool,
    records: AtomicU64,
    /// A snapshot sees something in here only if its timestamp is not before this one...
    seen_from: AtomicU64,
    /// ...but before this one.
    seen_until: AtomicU64,
    /// Whether it has references to overflow values.
    has_overflow: AtomicBool,
    /// The maps whose tombstones are noted in it.
    trees: Mutex<HashMap<TreeId, Arc<dyn OrderedMap>>>,
}

impl Generation {
    fn note(&self, seen_from: Timestamp, seen_until: Timestamp) {
        self.records.fetch_add(1, Ordering::Relaxed);
        self.seen_from.fetch_min(seen_from.0, Ordering::Relaxed);
        self.seen_until.fetch_max(seen_until.0, Ordering::Relaxed);
    }

    /// Takes a record of a key; `kept` are its two halves.
    fn put(&self, of: (TreeId, &[u8]), name: &[u8], kept: [&[u8]; 2]) -> Result<(), Error> {
        if self.recent.put(of, name, kept) {
            return Ok(());
        }
        self.is_map_used.store(true, Ordering::Release);
        let is_long = long_records::put(&*self.map, name, &kept.concat())?;
        self.has_long.fetch_or(is_long, Ordering::AcqRel);
        Ok(())
    }

    /// Shows all records.
    fn each(&self, mut see: impl FnMut(&[u8], &[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.recent.each(&mut see)?;
        if !self.is_map_used.load(Ordering::Acquire) {
            return Ok(());
        }
        long_records::each(&self.map, &mut see)
    }

    /// Takes the tombstones noted in it out of their trees.
    fn purge(&self) -> Result<(), Error> {
        self.each(|name, noted| {
            let (id, at) = (name.split_first_chunk(), noted.split_first_chunk());
            let (Some((id, _)), Some((at, key))) = (id, at) else { return Ok(()) };
            let tree = lock(&self.trees).get(&TreeId(u32::from_be_bytes(*id))).cloned();
            let Some(tree) = tree else { return Ok(()) };
            let at = Version::tombstone(Timestamp(u64::from_le_bytes(*at)));
            tree.update(key, &mut |value| match value.and_then(Version::split) {
                Some((version, _)) if version == at => Change::Remove,
                _ => Change::Keep,
            })
        })
    }

    fn is_full(&self) -> bool {
        self.records.load(Ordering::Relaxed) >= RECORDS_MAX
    }

    /// Whether no snapshot sees anything in it, and it has no user. Users get it from its list, under the
    /// lock.
    fn is_unneeded(self: &Arc<Self>, records_min: u64, snapshots: &Snapshots, visible: Timestamp) -> bool {
        let from = Timestamp(self.seen_from.load(Ordering::Relaxed));
        let until = Timestamp(self.seen_until.load(Ordering::Relaxed));
        let from = if planted!(HistoryGivenUpTooEarly) { Timestamp(from.0.saturating_add(1)) } else { from };
        self.records.load(Ordering::Relaxed) >= records_min
            && Arc::strong_count(self) == 1
            && until <= visible
            && !snapshots.any_within(from, until)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl History {
    /// Up to `recent_bytes` of plain memory; the rest goes to maps that `make` makes, which may have any
    /// limits.
    pub fn new(make: MakeMap, recent_bytes: u64, poison: Poison) -> Self {
        Self {
            make,
            poison,
            opened_at: AtomicU64::new(0),
            versions: Mutex::default(),
            tombstones: Mutex::default(),
            is_worth_giving_up: AtomicBool::new(false),
            remaining_bytes: Arc::new(AtomicU64::new(recent_bytes)),
            generation_bytes: recent_bytes / GENERATION_DIVISOR,
        }
    }

    /// The log ends at this commit now that the store is opened: tombstones up to here have no history.
    pub fn opened(&self, last: Timestamp) {
        self.opened_at.store(last.0, Ordering::Release);
    }

    /// The last commit of earlier runs of the store.
    pub(super) fn opened_at(&self) -> Timestamp {
        Timestamp(self.opened_at.load(Ordering::Acquire))
    }

    /// Whether changes can still be promised.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.poison.check()
    }

    /// Whether it is worth while to call [`History::settle`], now that a snapshot has ended. All commits up
    /// to `visible` can be seen.
    pub fn is_due(&self, snapshots: &Snapshots, visible: Timestamp) -> bool {
        let is_due = |list: &Mutex<Vec<Arc<Generation>>>| {
            lock(list).iter().any(|generation| generation.is_unneeded(RECORDS_MIN, snapshots, visible))
        };
        self.is_worth_giving_up.load(Ordering::Relaxed)
            && (is_due(&self.versions) || is_due(&self.tombstones))
    }

    /// Numbers of generations and records.
    pub fn old_versions(&self) -> OldVersions {
        let records = |list: &[Arc<Generation>]| -> u64 {
            list.iter().map(|generation| generation.records.load(Ordering::Relaxed)).sum()
        };
        let (versions, tombstones) = (lock(&self.versions), lock(&self.tombstones));
        OldVersions {
            generations: versions.len() + tombstones.len(),
            records: records(&versions) + records(&tombstones),
        }
    }

    /// A tree was dropped, whose pages will be others': its tombstones need not be taken out.
    pub fn forget(&self, tree: TreeId) {
        lock(&self.tombstones).iter().for_each(|generation| drop(lock(&generation.trees).remove(&tree)));
    }

    /// Gives generations up that no snapshot needs, and takes out the tombstones noted in them; small ones
    /// only if the store is `idle`. It tells `overflow_is_gone` of the overflow values in them.
    ///
    /// # Errors
    /// The maps'; generations that were not given up then stay until the next start.
    pub fn settle(
        &self,
        snapshots: &Snapshots,
        visible: Timestamp,
        idle: bool,
        overflow_is_gone: &dyn Fn(&[u8]),
    ) -> Result<(), Error> {
        let records_min = if idle { 0 } else { RECORDS_MIN };
        let take = |list: &Mutex<Vec<Arc<Generation>>>| -> Vec<Arc<Generation>> {
            let is_unneeded =
                |generation: &mut Arc<Generation>| generation.is_unneeded(records_min, snapshots, visible);
            lock(list).extract_if(.., is_unneeded).collect()
        };
        for generation in take(&self.versions) {
            preempt!();
            if generation.has_overflow.load(Ordering::Relaxed) {
                generation.each(|_, kept| {
                    let value = kept.split_first_chunk::<8>().and_then(|(_, value)| Version::split(value));
                    if let Some((version, reference)) = value
                        && version.is_overflow()
                    {
                        overflow_is_gone(reference);
                    }
                    Ok(())
                })?;
            }
            generation.map.destroy()?;
        }
        for generation in take(&self.tombstones) {
            preempt!();
            generation.purge()?;
            generation.map.destroy()?;
        }
        Ok(())
    }
    /// Keeps `value`, all of it, the newest of `key` until the commit `until`.
    ///
    /// # Errors
    /// The map's.
    pub fn keep(
        &self,
        snapshots: &Snapshots,
        tree: TreeId,
        key: &[u8],
        value: &[u8],
        until: Timestamp,
    ) -> Result<(), Error> {
        let Some((version, _)) = Version::split(value) else { return Ok(()) };
        let from = version.timestamp();
        // A snapshot that is coming is newer than all others.
        let oldest = snapshots.oldest_from(from).unwrap_or(until);
        let name = version_name(tree, key, from);
        let kept = [&until.0.to_le_bytes(), value];
        let note = |generation: &Generation| {
            generation.note(from, until);
            generation.has_overflow.fetch_or(version.is_overflow(), Ordering::Relaxed);
        };
        let generation = self.generation(&self.versions, oldest, until, note)?;
        generation.put((tree, key), &name, kept)
    }

    /// Notes a tombstone in a tree.
    ///
    /// # Errors
    /// The map's.
    pub fn bury<M: OrderedMap + 'static>(
        &self,
        tree: TreeId,
        map: &Arc<M>,
        key: &[u8],
        at: Timestamp,
    ) -> Result<(), Error> {
        let name = version_name(tree, key, at);
        let noted = [&at.0.to_le_bytes(), key];
        let generation = self.generation(&self.tombstones, at, at, |generation| {
            generation.note(Timestamp(0), at);
            lock(&generation.trees).entry(tree).or_insert_with(|| Arc::clone(map) as _);
        })?;
        generation.put((tree, key), &name, noted)
    }

    /// The generation for snapshots from `oldest` on; `note` is told before it can be given up.
    fn generation(
        &self,
        list: &Mutex<Vec<Arc<Generation>>>,
        oldest: Timestamp,
        now: Timestamp,
        note: impl Fn(&Generation),
    ) -> Result<Arc<Generation>, Error> {
        loop {
            // Start of the next generation, if one is needed.
            let begin = {
                let list = lock(list);
                let found = list.iter().rev().find(|generation| generation.snapshots_from <= oldest);
                let newest = list.last().map_or(Timestamp(0), |generation| generation.snapshots_from);
                match found {
                    None => oldest,
                    Some(found) if found.snapshots_from == newest && newest < now && found.is_full() => now,
                    Some(found) => {
                        note(found);
                        if found.records.load(Ordering::Relaxed) == RECORDS_MIN {
                            self.is_worth_giving_up.store(true, Ordering::Relaxed);
                        }
                        return Ok(Arc::clone(found));
                    }
                }
            };
            self.begin(list, begin)?;
        }
    }

    /// Begins a generation. Of two that begin at once, one is enough.
    fn begin(&self, list: &Mutex<Vec<Arc<Generation>>>, snapshots_from: Timestamp) -> Result<(), Error> {
        let map = (self.make)()?;
        let mut list = lock(list);
        if list.iter().any(|other| other.snapshots_from == snapshots_from) {
            drop(list);
            return map.destroy();
        }
        let place = list.partition_point(|generation| generation.snapshots_from <= snapshots_from);
        let generation = Generation {
            snapshots_from,
            recent: Recent::new(self.generation_bytes, &self.remaining_bytes),
            map,
            is_map_used: AtomicBool::new(false),
            has_long: AtomicBool::new(false),
            records: AtomicU64::new(0),
            seen_from: AtomicU64::new(u64::MAX),
            seen_until: AtomicU64::new(0),
            has_overflow: AtomicBool::new(false),
            trees: Mutex::default(),
        };
        list.insert(place, Arc::new(generation));
        Ok(())
    }

    /// Appends the value that a snapshot sees, if it is one of those kept; `false` if it sees none.
    ///
    /// # Errors
    /// The maps'.
    pub fn find(
        &self,
        tree: TreeId,
        key: &[u8],
        snapshot: Timestamp,
        into: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let lower = version_name(tree, key, snapshot);
        let upper = version_name(tree, key, Timestamp(0));
        let mut best: Option<(Version, Vec<u8>)> = None;
        let mut see = |kept: &[u8]| {
            let Some((until, value)) = kept.split_first_chunk() else { return };
            let Some((version, _)) = Version::split(value) else { return };
            let is_better = best.as_ref().is_none_or(|(other, _)| other.timestamp() < version.timestamp());
            if u64::from_le_bytes(*until) > snapshot.0 && is_better {
                best = Some((version, value.to_vec()));
            }
        };
        let generations = lock(&self.versions).clone();
        preempt!();
        let mut piece = Piece::default();
        for generation in generations {
            generation.recent.last_within((tree, key), &lower..&upper, &mut see);
            if generation.is_map_used.load(Ordering::Acquire) {
                let map = Arc::clone(&generation.map);
                let mut pieces = map.scan(Direction::Forward, &lower, Some(&upper), 0);
                if pieces.next(&mut piece)? {
                    piece.get(0).into_iter().for_each(|(_, kept)| see(kept));
                }
                if generation.has_long.load(Ordering::Acquire) {
                    long_records::newest(&generation.map, (&lower, &upper), &mut see)?;
                }
            }
        }
        let Some((_, value)) = best else { return Ok(false) };
        into.extend_from_slice(&value);
        Ok(true)
    }
}

/// Mostly so short that it needs no memory of its own.
pub(super) type Name = SmallVec<[u8; 64]>;

/// Bytes of a piece of a key; each piece is followed by the number of them that count.
const CHUNK_BYTES: usize = 8;

/// A name of a version that sorts by tree, then key, then timestamp, the newest first. The key is cut into
/// pieces of eight bytes, the last one filled up with zeros, each followed by a byte that says how many of
/// them count, or nine if more pieces follow.
pub(super) fn version_name(tree: TreeId, key: &[u8], timestamp: Timestamp) -> Name {
    let mut name = Name::with_capacity(version_name_bytes(key.len()));
    name.extend_from_slice(&tree.0.to_be_bytes());
    let mut rest = key;
    while rest.len() > CHUNK_BYTES {
        let (chunk, behind) = rest.split_at(CHUNK_BYTES);
        name.extend_from_slice(chunk);
        name.push(CHUNK_BYTES as u8 + 1);
        rest = behind;
    }
    let mut last = [0; CHUNK_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    name.extend_from_slice(&last);
    name.push(rest.len() as u8);
    name.extend_from_slice(&(!timestamp.0).to_be_bytes());
    name
}

/// Bytes of a version's name, for a key of that many bytes.
pub(super) fn version_name_bytes(key_bytes: usize) -> usize {
    4 + key_bytes.div_ceil(CHUNK_BYTES).max(1) * (CHUNK_BYTES + 1) + 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(255), any::<u8>()], 1..30)
    }

    proptest! {
        #[test]
        fn names_sort_as_keys_do_and_the_newest_first(
            one in (0_u32..3, key(), 0_u64..5),
            other in (0_u32..3, key(), 0_u64..5),
        ) {
            let name = |of: &(u32, Vec<u8>, u64)| version_name(TreeId(of.0), &of.1, Timestamp(of.2));
            let order = (one.0, &one.1, u64::MAX - one.2).cmp(&(other.0, &other.1, u64::MAX - other.2));
            prop_assert_eq!(name(&one).cmp(&name(&other)), order);
            prop_assert_eq!(name(&one).len(), version_name_bytes(one.1.len()));
        }
    }
}
