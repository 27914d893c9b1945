//! Scans.

use std::borrow::Cow;
use std::ops::Bound;

use super::reader::Reading;
use super::tree::{Lsm, Parts};
use crate::buffered::{Chain, DEAD_RUN, Held, Hidden, KeyVersions, Merged, Met, Watch, unreadable};
use crate::index::{Direction, Piece, Steps, Version, behind};
use crate::log::Timestamp;
use crate::sync::Arc;
use crate::{Error, ErrorKind};

/// Bytes of records that the first step of a scan yields, and twice as many each further one, up to the most:
/// a short scan reads little more than it gives.
const STEP_BYTES_FIRST: usize = 512;
const STEP_BYTES_MAX: usize = 64 << 10;

/// A scan over memtables and tables.
pub(super) struct LsmScan {
    tree: Arc<Lsm>,
    direction: Direction,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    at: Timestamp,
    /// Where it has come to, as long as memtables and tables are the same.
    under_way: Option<UnderWay>,
    has_ended: bool,
    step_bytes: usize,
    /// Whether operands are shown as they are.
    is_unmerged: bool,
    /// Keys without records that it has come to since the last record.
    dead_keys: usize,
}

/// A record as a scan sees it.
type Seen<'v> = (Version, Cow<'v, [u8]>);

/// A scan's position: the tree's parts, their merged records, and the ranges that are hidden from the scan.
type UnderWay = (Parts, Merged, Option<Hidden>);

impl LsmScan {
    /// The records with keys from the first up to but without the second, which a snapshot of `at` sees.
    pub fn new(
        tree: Arc<Lsm>,
        direction: Direction,
        (lower, upper): (Vec<u8>, Option<Vec<u8>>),
        at: Timestamp,
    ) -> Self {
        let has_ended = upper.as_ref().is_some_and(|upper| *upper <= lower);
        let step_bytes = STEP_BYTES_FIRST;
        let under_way = None;
        let (is_unmerged, dead_keys) = (false, 0);
        Self { tree, direction, lower, upper, at, under_way, has_ended, step_bytes, is_unmerged, dead_keys }
    }

    /// The same without operands being merged.
    pub fn unmerged(self) -> Self {
        Self { is_unmerged: true, ..self }
    }

    /// The record of a key whose newest version is made of operands: its version, and its value. The scan has
    /// no shares of blocks while pages of an overflow value are read: with all memory in shares, it would
    /// wait for itself.
    fn merged_record(
        &self,
        versions: &KeyVersions,
        (merged, hidden): (&mut Merged, Option<&Hidden>),
    ) -> Result<Option<(Version, Vec<u8>)>, Error> {
        let key = versions.key();
        let mut chain = Chain::new(self.at);
        let mut take = |held: &Held| {
            let version = held.version;
            if version.timestamp() > self.at {
                return true;
            }
            if hidden.is_some_and(|hidden| hidden.has(key, version)) && !planted!(BaseUnderRemovedRangeUsed) {
                return false;
            }
            chain.take(version, versions.value(held))
        };
        // `take` returns `false` once no older ones are needed.
        let _whether_all = match self.direction {
            Direction::Forward => versions.all.iter().all(&mut take),
            Direction::Backward => versions.all.iter().rev().all(&mut take),
        };
        let Some(newest) = chain.newest().map(Version::timestamp) else { return Ok(None) };
        if self.is_unmerged {
            let mut value = Vec::new();
            chain.unmerged().encode(&mut value);
            return Ok(Some((Version::operands(newest), value)));
        }
        if chain.needs_overflow() {
            merged.let_go();
        }
        match self.tree.value_of(key, &chain) {
            Ok(value) => Ok(value.map(|value| (Version::put(newest), value))),
            // An overflow value may have gone, as a merge has replaced it with a value made of it.
            Err(_) => {
                merged.let_go();
                let mut value = Vec::new();
                let found = match self.tree.read_merged(key, self.at, &mut value) {
                    Err(error) if error.kind() == ErrorKind::Operator => return Ok(unreadable(newest)),
                    found => found?,
                };
                Ok(found.version.map(|version| (version, value)))
            }
        }
    }

    fn is_within(&self, key: &[u8]) -> bool {
        match self.direction {
            Direction::Forward => self.upper.as_deref().is_none_or(|upper| key < upper),
            Direction::Backward => key >= self.lower.as_slice(),
        }
    }

    /// The version of a key that the scan sees.
    fn seen<'v>(&self, versions: &'v KeyVersions, hidden: Option<&Hidden>) -> Option<&'v Held> {
        let mut seen = versions.all.iter().filter(|held| held.version.timestamp() <= self.at);
        let newest = match self.direction {
            Direction::Forward => seen.next(),
            Direction::Backward if planted!(BackwardScanShowsOldest) => seen.next(),
            Direction::Backward => seen.next_back(),
        };
        let is_removed = |held: &Held| {
            held.version.is_tombstone()
                || hidden.is_some_and(|hidden| hidden.has(versions.key(), held.version))
        };
        newest.filter(|held| !is_removed(held))
    }

    /// The records that are left to be scanned.
    fn merged(&mut self) -> Result<UnderWay, Error> {
        let parts = self.tree.current();
        match self.under_way.take() {
            Some(own) if own.0.is_same(&parts) => Ok(own),
            _ => {
                let start = match (self.direction, &self.upper) {
                    (Direction::Forward, _) => Bound::Included(self.lower.as_slice()),
                    (Direction::Backward, Some(upper)) => Bound::Excluded(upper.as_slice()),
                    (Direction::Backward, None) => Bound::Unbounded,
                };
                let reader = self.tree.shared.reader(Reading::Kept);
                let hidden = parts.hidden(&self.lower, self.upper.as_deref(), self.at)?;
                let merged = parts.merged(&reader, self.direction, start, (self.at, hidden.as_ref()))?;
                Ok((parts, merged, hidden))
            }
        }
    }
}

impl LsmScan {
    /// The version of a key that the scan sees.
    fn met<'v>(
        &self,
        versions: &'v KeyVersions,
        (merged, hidden): (&mut Merged, Option<&Hidden>),
    ) -> Result<Met<Seen<'v>>, Error> {
        let record = match self.seen(versions, hidden) {
            Some(held) if held.version.is_operands() => {
                let made = self.merged_record(versions, (merged, hidden))?;
                made.map(|(version, value)| (version, Cow::Owned(value)))
            }
            held => held.map(|held| (held.version, Cow::Borrowed(versions.value(held)))),
        };
        let newest = match self.direction {
            Direction::Forward => versions.all.first(),
            Direction::Backward => versions.all.last(),
        };
        Ok(Met::of(record, newest.map(|newest| newest.version), self.at))
    }

    /// Goes on after a key.
    fn pass(&mut self, key: &[u8]) {
        match self.direction {
            Direction::Forward => self.lower = behind(key),
            Direction::Backward => self.upper = Some(key.to_vec()),
        }
    }

    /// Where it is, as [`Dead`](crate::buffered::Dead) has it.
    fn place(&self) -> Option<&[u8]> {
        match self.direction {
            Direction::Forward => Some(&self.lower),
            Direction::Backward => self.upper.as_deref(),
        }
    }

    /// Passes the stretch without records that it is in, as far as the tree knows one. Whether there was one.
    fn pass_dead(&mut self) -> bool {
        let Some(to) = self.tree.dead.passed(self.place(), self.direction, self.at) else { return false };
        match (self.direction, to) {
            (Direction::Forward, Some(lower)) => self.lower = lower,
            (Direction::Forward, None) => self.has_ended = true,
            (Direction::Backward, upper) => self.upper = upper,
        }
        self.has_ended |= self.upper.as_ref().is_some_and(|upper| *upper <= self.lower);
        true
    }

    /// Called at a key without a record that follows others like it: passes the keys that the tree knows to
    /// be without records, and watches those that come then. `None`: it goes on as before.
    fn pass_more<'t>(
        &mut self,
        tree: &'t Lsm,
        key: &[u8],
        watch: &mut Option<Watch<'t>>,
    ) -> Result<Option<UnderWay>, Error> {
        self.dead_keys += 1;
        if !self.dead_keys.is_multiple_of(DEAD_RUN) {
            return Ok(None);
        }
        self.pass(key);
        let has_passed = self.pass_dead();
        if self.has_ended || watch.is_some() && !has_passed {
            return Ok(None);
        }
        if watch.is_none() {
            *watch = Some(tree.dead.watch(self.place(), self.direction));
        }
        // Records that were written before the watch are found from here on.
        self.under_way = None;
        self.merged().map(Some)
    }

    /// The keys without records end before a key, or with the range.
    fn end_dead(&mut self, watch: Option<Watch<'_>>, key: Option<&[u8]>, as_of: Timestamp) {
        self.dead_keys = 0;
        let Some(watch) = watch else { return };
        let Some(horizon) = self.tree.shared.horizon() else { return };
        let until = match (key, self.direction) {
            (Some(key), _) => Bound::Excluded(key),
            (None, Direction::Forward) => self.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
            (None, Direction::Backward) => Bound::Included(self.lower.as_slice()),
        };
        watch.end(until, as_of, &horizon.snapshots().now());
    }
}

impl Steps for LsmScan {
    fn step(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        piece.clear();
        self.tree.trouble.check_whole(self.tree.id)?;
        if self.has_ended {
            return Ok(false);
        }
        let tree = Arc::clone(&self.tree);
        let mut under_way = self.merged()?;
        let mut versions = KeyVersions::default();
        // Records of a scan backward, which the piece has the other way round.
        let (mut backward, mut bytes) = (Vec::new(), 0);
        let (mut watch, mut as_of) = (None, self.at);
        while bytes < self.step_bytes {
            let (_, merged, hidden) = &mut under_way;
            if self.has_ended || !merged.next_key(&mut versions)? || !self.is_within(versions.key()) {
                self.has_ended = true;
                self.end_dead(watch.take(), None, as_of);
                break;
            }
            #[cfg(any(test, feature = "testing"))]
            crate::testing::count_step();
            let (version, value) = match self.met(&versions, (merged, hidden.as_ref()))? {
                Met::Record(record) => record,
                Met::Dead(from) => {
                    as_of = as_of.max(from);
                    if bytes > 0 && self.dead_keys + 1 >= DEAD_RUN {
                        // Its records do not wait for those that follow.
                        break;
                    }
                    if let Some(further) = self.pass_more(&tree, versions.key(), &mut watch)? {
                        under_way = further;
                    }
                    continue;
                }
                Met::WrittenSince => {
                    self.end_dead(watch.take(), Some(versions.key()), as_of);
                    continue;
                }
            };
            self.end_dead(watch.take(), Some(versions.key()), as_of);
            bytes += versions.key().len() + value.len();
            match self.direction {
                Direction::Forward => push(piece, versions.key(), version, &value),
                Direction::Backward => {
                    backward.push((versions.key().to_vec(), version, value.into_owned()));
                }
            }
        }
        self.step_bytes = (2 * self.step_bytes).min(STEP_BYTES_MAX);
        if !self.has_ended {
            self.pass(versions.key());
            under_way.1.let_go();
            self.under_way = Some(under_way);
        }
        backward.iter().rev().for_each(|(key, version, value)| push(piece, key, *version, value));
        Ok(!piece.is_empty())
    }
}

fn push(piece: &mut Piece, key: &[u8], version: Version, value: &[u8]) {
    piece.push_by(
        |bytes| bytes.extend_from_slice(key),
        |bytes| {
            bytes.extend_from_slice(&version.bits().to_le_bytes());
            bytes.extend_from_slice(value);
        },
    );
}
