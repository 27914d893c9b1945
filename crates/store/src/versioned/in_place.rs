//! An index over a map with one version of each key.

use std::sync::Arc;
use std::task::Poll;

use super::history::History;
use super::ordered_map::OrderedMap;
use super::scan::VisibleRecords;
use crate::Error;
use crate::btree::Change;
use crate::buffered::Semaphore;
use crate::header::PageId;
use crate::index::{
    Census, Clearing, Commit, Direction, Found, Index, LeafHint, Limits, May, Newest, OperationCounts, Piece,
    Prior, Reapplied, SeeVersion, Steps, TreeId, TreeOperations, VERSION_BYTES, Version, Write, Written,
};
use crate::log::{LogRecord, Timestamp};
use crate::spare::{SPARE_BYTES_MAX, with_memory};

/// Values that are prepared are handed on as long as they take no more than this.
const VALUES_BYTES_MAX: usize = SPARE_BYTES_MAX;

/// Nodes that a change may make dirty: both halves of a leaf, and their parent.
const NODES_PER_CHANGE: u64 = 3;

/// Leaves that are loaded ahead while a tree is cleared.
const CLEAR_AHEAD: u32 = 4;

/// See the module.
pub(crate) struct InPlace<M> {
    id: TreeId,
    map: Arc<M>,
    history: Arc<History>,
    counts: OperationCounts,
    /// Scans sweep tombstones without a lock of the store. A thread that sweeps or walks the tree holds this
    /// mutex.
    sweeps: Arc<Semaphore>,
}

impl<M> InPlace<M> {
    /// The tree with this number; the map has the newest versions of its records.
    pub fn new(id: TreeId, map: Arc<M>, history: Arc<History>) -> Self {
        Self { id, map, history, counts: OperationCounts::default(), sweeps: Arc::default() }
    }
}

/// The version that a value begins with, which lies in `bytes` from `start` on.
#[inline]
fn version_at(bytes: &[u8], start: usize) -> Option<Version> {
    bytes.get(start..).and_then(Version::split).map(|(version, _)| version)
}

/// Calls `act` until it finds room. There was room when the commit was admitted.
fn with_room(commit: &Commit<'_>, mut act: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    loop {
        match act() {
            Err(Error::Full { .. }) => (commit.wait_for_room)()?,
            result => return result,
        }
    }
}

impl<M: OrderedMap + 'static> InPlace<M> {
    /// The newest version of a key; `None` if the map would have to wait and may not. It appends its value to
    /// `into`.
    #[inline]
    fn newest(&self, key: &[u8], may: May, into: &mut Vec<u8>) -> Result<Poll<Option<Version>>, Error> {
        let start = into.len();
        let is_there = match may {
            May::Wait => self.map.read(key, into)?,
            May::NotWait => match self.map.read_resident(key, into) {
                Some(is_there) => is_there,
                None => return Ok(Poll::Pending),
            },
        };
        Ok(Poll::Ready(if is_there { version_at(into, start) } else { None }))
    }

    /// Looks the newest version up for a commit that is going to change the key.
    fn look(
        &self,
        key: &[u8],
        may: May,
        prior: &mut Prior,
        values: Option<&mut Vec<u8>>,
    ) -> Result<Poll<()>, Error> {
        let Some(values) = values else {
            let newest = self.map.head(key, &mut prior.hint)?.map(Version::from_bits);
            (prior.newest, prior.value) = (Some(newest), None);
            return Ok(Poll::Ready(()));
        };
        let start = values.len();
        let is_there = match may {
            May::Wait => self.map.get(key, values, &mut prior.hint)?,
            May::NotWait => match self.map.get_resident(key, values, &mut prior.hint) {
                Some(is_there) => is_there,
                None => return Ok(Poll::Pending),
            },
        };
        let newest = if is_there { version_at(values, start) } else { None };
        let value = newest.map(|_| (start, values.len())).filter(|(_, end)| *end <= VALUES_BYTES_MAX);
        if value.is_none() {
            values.truncate(start);
        }
        (prior.newest, prior.value) = (Some(newest), value);
        Ok(Poll::Ready(()))
    }

    /// Makes a version of a key, whose newest one is `newest`; `old` is its value, with the version, if that
    /// was read already.
    fn make(
        &self,
        written: &Written<'_>,
        (newest, old): (Option<Version>, Option<&[u8]>),
        hint: &mut Option<LeafHint>,
        commit: &Commit<'_>,
    ) -> Result<(), Error> {
        let before = newest.filter(|newest| !newest.is_tombstone());
        let timestamp = commit.record.timestamp;
        let is_kept = before.is_some_and(|before| commit.snapshots.keeps(before.timestamp(), timestamp));
        let mut put = || self.replace(written, before, is_kept, hint, commit);
        if !is_kept && !before.is_some_and(Version::is_overflow) {
            return with_room(commit, put);
        }
        let mut replace = |old: &[u8]| {
            preempt!();
            if is_kept {
                let keep = || self.history.keep(commit.snapshots, self.id, written.key, old, timestamp);
                // Once: the overflow value of a version that is kept twice would be given back twice.
                with_room(commit, keep)?;
            }
            with_room(commit, &mut put)?;
            if (!is_kept || planted!(OverflowFreedUnderSnapshot))
                && let Some((version, reference)) = Version::split(old)
                && version.is_overflow()
                && !planted!(ReplacedOverflowLeaks)
            {
                (commit.overflow_is_gone)(reference);
            }
            Ok(())
        };
        match old {
            Some(old) => replace(old),
            None => with_memory(|old| {
                self.map.get(written.key, old, &mut None)?;
                replace(old)
            }),
        }
    }

    /// The newest version of a key is the written one from now on.
    fn replace(
        &self,
        written: &Written<'_>,
        before: Option<Version>,
        is_kept: bool,
        hint: &mut Option<LeafHint>,
        commit: &Commit<'_>,
    ) -> Result<(), Error> {
        let (key, timestamp) = (written.key, commit.record.timestamp);
        let (version, rest) = match written.write {
            Write::Put(value) => (Version::put(timestamp), value),
            Write::PutOverflow { reference, .. } => (Version::overflow(timestamp), reference),
            // It leads snapshots that may see an older version to that.
            Write::Remove
                if (is_kept || before.is_some() && commit.snapshots.any())
                    && !planted!(RemovalLeavesNoTombstone) =>
            {
                self.history.bury(self.id, &self.map, key, timestamp)?;
                (Version::tombstone(timestamp), &[][..])
            }
            Write::Remove if before.is_some() => return self.map.change_at(key, hint, Change::Remove),
            Write::Remove => return Ok(()),
            // It was refused before it was logged.
            Write::Merge(_) => return Ok(()),
        };
        with_memory(|value| {
            value.extend_from_slice(&version.bits().to_le_bytes());
            value.extend_from_slice(rest);
            self.map.change_at(key, hint, Change::Put(value))
        })
    }
}

impl<M: OrderedMap + 'static> Index for InPlace<M> {
    fn read(
        &self,
        key: &[u8],
        at: Option<Timestamp>,
        may: May,
        into: &mut Vec<u8>,
    ) -> Result<Poll<Found>, Error> {
        let start = into.len();
        let Poll::Ready(newest) = self.newest(key, may, into)? else { return Ok(Poll::Pending) };
        self.counts.look_up();
        preempt!();
        let mut version = newest;
        if let (Some(newest), Some(at)) = (newest, at)
            && newest.timestamp() > at
            && !planted!(SnapshotReadsNewest)
        {
            into.truncate(start);
            let found = self.history.find(self.id, key, at, into)?;
            version = if found { version_at(into, start) } else { None };
        }
        let version = version.filter(|version| !version.is_tombstone());
        match version {
            Some(_) => drop(into.drain(start..start + VERSION_BYTES)),
            None => into.truncate(start),
        }
        Ok(Poll::Ready(Found { version, newest: newest.map(Version::timestamp) }))
    }

    fn newest_since(&self, key: &[u8], since: Timestamp, may: May) -> Result<Poll<Newest>, Error> {
        with_memory(|value| {
            let Poll::Ready(newest) = self.newest(key, may, value)? else { return Ok(Poll::Pending) };
            let newest = Prior { newest: Some(newest), ..Prior::default() }.newest_since(since);
            Ok(Poll::Ready(newest.unwrap_or(Newest::CannotTell)))
        })
    }

    fn find_together(&self, keys: &mut dyn Iterator<Item = &[u8]>) {
        self.map.find_together(keys);
    }

    fn prepare(
        &self,
        key: &[u8],
        may: May,
        neighbour: Option<LeafHint>,
        prior: &mut Prior,
        values: Option<&mut Vec<u8>>,
    ) -> Result<Poll<()>, Error> {
        if self.map.is_valid(prior.hint) || prior.hint.is_some() && planted!(ChangedLeafTrusted) {
            return Ok(Poll::Ready(()));
        }
        *prior = Prior { hint: neighbour, ..Prior::default() };
        self.look(key, may, prior, values)
    }

    fn apply(
        &self,
        writes: &[Written<'_>],
        priors: &[Prior],
        values: &[u8],
        commit: &Commit<'_>,
    ) -> Result<(), Error> {
        self.counts.writes(writes.len());
        // Leaf hints of the last key, before and after its change.
        let (mut found, mut left): (Option<LeafHint>, Option<LeafHint>) = (None, None);
        for (written, prior) in writes.iter().zip(priors) {
            let old = prior.value.and_then(|(start, end)| values.get(start..end));
            let is_beside = prior.hint.zip(found).is_some_and(|(one, other)| one.is_beside(other));
            let mut hint = if is_beside { left.map(LeafHint::of_another_key) } else { prior.hint };
            self.make(written, (prior.newest.flatten(), old), &mut hint, commit)?;
            (found, left) = (prior.hint, hint);
            preempt!();
        }
        Ok(())
    }

    fn reapply(&self, key: &[u8], write: Write<'_>, record: LogRecord) -> Result<Reapplied, Error> {
        let timestamp = record.timestamp;
        let (version, rest) = match write {
            Write::Put(value) => (Some(Version::put(timestamp)), value),
            Write::PutOverflow { reference, .. } => (Some(Version::overflow(timestamp)), reference),
            Write::Remove => (None, &[][..]),
            Write::Merge(_) => return Ok(Reapplied::default()),
        };
        with_memory(|value| {
            if let Some(version) = version {
                value.extend_from_slice(&version.bits().to_le_bytes());
                value.extend_from_slice(rest);
            }
            let mut done = Reapplied::default();
            self.map.update(key, &mut |old| {
                done = Reapplied::default();
                if let Some((old, reference)) = old.and_then(Version::split) {
                    if old.timestamp() >= timestamp {
                        done.is_outdated = old.timestamp() > timestamp;
                        return Change::Keep;
                    }
                    done.replaced = old.is_overflow().then(|| reference.to_vec());
                }
                if version.is_some() { Change::Put(value) } else { Change::Remove }
            })?;
            Ok(done)
        })
    }

    fn scan(
        self: Arc<Self>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        ahead: u32,
        at: Timestamp,
    ) -> Box<dyn Steps> {
        self.counts.scan();
        let pieces = Arc::clone(&self.map).scan(direction, lower, upper, ahead);
        let (map, history) = (Arc::clone(&self.map), Arc::clone(&self.history));
        Box::new(VisibleRecords::new(self.id, map, history, (pieces, at), Arc::clone(&self.sweeps)))
    }

    fn limits(&self) -> Limits {
        let limits = self.map.limits();
        Limits { value_bytes: limits.value_bytes - VERSION_BYTES, ..limits }
    }

    fn operations(&self) -> TreeOperations {
        self.counts.all()
    }

    fn dirtied_bytes(&self) -> u64 {
        // A key takes a quarter of a node at most.
        NODES_PER_CHANGE * 4 * self.map.limits().key_bytes as u64
    }

    fn walk(&self, page: &mut dyn FnMut(PageId), record: SeeVersion<'_>) -> Result<Census, Error> {
        let _permits = self.sweeps.acquire_all();
        let mut damage = None;
        let census = self.map.walk(page, &mut |key, value| match Version::split(value) {
            Some((version, rest)) => record(key, version, rest),
            None => damage = damage.or(Some(value.len())),
        })?;
        match damage {
            None => Ok(census),
            Some(bytes) => Err(Error::Corrupt {
                what: "a record".into(),
                offset_bytes: 0,
                expected: "the commit that made it".into(),
                got: format!("{bytes} bytes"),
            }),
        }
    }

    fn clear(&self, clearing: &Clearing<'_>) -> Result<(), Error> {
        // They are all out before the first leaf is freed.
        if !self.map.is_cut_off()? {
            self.clear_overflow(clearing)?;
        }
        self.map.clear(clearing.go_on)
    }

    fn destroy(&self) -> Result<(), Error> {
        self.map.destroy()
    }
}

impl<M: OrderedMap + 'static> InPlace<M> {
    /// Takes overflow values out of the map, each before its pages are free: they may be others' then.
    fn clear_overflow(&self, clearing: &Clearing<'_>) -> Result<(), Error> {
        let mut pieces = Arc::clone(&self.map).scan(Direction::Forward, &[], None, CLEAR_AHEAD);
        let mut piece = Piece::default();
        while pieces.next(&mut piece)? {
            (clearing.go_on)()?;
            for (key, value) in piece.iter() {
                if let Some((_, reference)) =
                    Version::split(value).filter(|(version, _)| version.is_overflow())
                {
                    self.map.update(key, &mut |_| Change::Remove)?;
                    (clearing.free_overflow)(reference)?;
                    (clearing.go_on)()?;
                }
            }
        }
        Ok(())
    }
}
