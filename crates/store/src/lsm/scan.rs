//! Scans.

use std::ops::Bound;

use super::table_cursor::Reading;
use super::tree::{Lsm, Parts};
use crate::Error;
use crate::buffered::{Chain, Held, Hidden, KeyVersions, Merged};
use crate::index::{Direction, Piece, Steps, Version, behind};
use crate::log::Timestamp;
use crate::sync::Arc;

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
    under_way: Option<(Parts, Merged, Option<Hidden>)>,
    has_ended: bool,
    step_bytes: usize,
    /// Whether operands are shown as they are.
    is_unmerged: bool,
}

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
        Self { tree, direction, lower, upper, at, under_way, has_ended, step_bytes, is_unmerged: false }
    }

    /// The same without operands being merged.
    pub fn unmerged(self) -> Self {
        Self { is_unmerged: true, ..self }
    }

    /// The record of a key whose newest version is made of operands: its version, and its value.
    fn merged_record(
        &self,
        versions: &KeyVersions,
        hidden: Option<&Hidden>,
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
        // One says when no older ones are needed.
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
        match self.tree.value_of(key, &chain) {
            Ok(value) => Ok(value.map(|value| (Version::put(newest), value))),
            // An overflow value may have gone, as a merge has put what was made of it into its place.
            Err(_) => {
                let mut value = Vec::new();
                let found = self.tree.read_merged(key, self.at, &mut value)?;
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

    /// What is left to be scanned.
    fn merged(&mut self) -> Result<(Parts, Merged, Option<Hidden>), Error> {
        let parts = self.tree.parts().clone();
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
                let merged = parts.merged(&reader, self.direction, start, hidden.as_ref())?;
                Ok((parts, merged, hidden))
            }
        }
    }
}

impl Steps for LsmScan {
    fn step(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        piece.clear();
        if self.has_ended {
            return Ok(false);
        }
        let (parts, mut merged, hidden) = self.merged()?;
        let mut versions = KeyVersions::default();
        // Records of a scan backward, which the piece has the other way round.
        let (mut backward, mut bytes) = (Vec::new(), 0);
        while bytes < self.step_bytes {
            if !merged.next_key(&mut versions)? || !self.is_within(versions.key()) {
                self.has_ended = true;
                break;
            }
            let Some(held) = self.seen(&versions, hidden.as_ref()) else { continue };
            let made;
            let (version, value) = if held.version.is_operands() {
                made = match self.merged_record(&versions, hidden.as_ref())? {
                    Some(made) => made,
                    None => continue,
                };
                (made.0, made.1.as_slice())
            } else {
                (held.version, versions.value(held))
            };
            bytes += versions.key().len() + value.len();
            match self.direction {
                Direction::Forward => push(piece, versions.key(), version, value),
                Direction::Backward => {
                    backward.push((versions.key().to_vec(), version, value.to_vec()));
                }
            }
        }
        self.step_bytes = (2 * self.step_bytes).min(STEP_BYTES_MAX);
        if !self.has_ended {
            match self.direction {
                Direction::Forward => self.lower = behind(versions.key()),
                Direction::Backward => self.upper = Some(versions.key().to_vec()),
            }
            merged.let_go();
            self.under_way = Some((parts, merged, hidden));
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
