//! Going through the records that a snapshot sees.

use std::sync::Arc;

use super::history::History;
use super::ordered_map::{OrderedMap, Pieces};
use crate::Error;
use crate::btree::Change;
use crate::buffered::Semaphore;
use crate::index::{Fate, Piece, Steps, TreeId, Version};
use crate::log::Timestamp;

/// A scan that is under way.
pub(super) struct VisibleRecords<M> {
    id: TreeId,
    map: Arc<M>,
    history: Arc<History>,
    pieces: Box<dyn Pieces>,
    at: Timestamp,
    /// Held by the thread that sweeps.
    sweeps: Arc<Semaphore>,
    /// Keys of tombstones that an earlier run of the store has left.
    leftovers: Vec<(Vec<u8>, Version)>,
}

impl<M: OrderedMap> VisibleRecords<M> {
    /// A scan of the records that `pieces` gives.
    pub fn new(
        id: TreeId,
        map: Arc<M>,
        history: Arc<History>,
        (pieces, at): (Box<dyn Pieces>, Timestamp),
        sweeps: Arc<Semaphore>,
    ) -> Self {
        Self { id, map, history, pieces, at, sweeps, leftovers: Vec::new() }
    }

    /// Decides whether the snapshot sees a record of the map, an older version of it, or none.
    fn fate(&mut self, key: &[u8], value: &[u8]) -> Result<Fate, Error> {
        let Some((version, _)) = Version::split(value) else { return Ok(Fate::Goes) };
        if version.timestamp() <= self.at || planted!(ScanIgnoresSnapshot) {
            if version.is_tombstone() && version.timestamp() <= self.history.opened_at() {
                self.leftovers.push((key.to_vec(), version));
            }
            return Ok(if version.is_tombstone() { Fate::Goes } else { Fate::Stays });
        }
        preempt!();
        let mut older = Vec::new();
        let found = self.history.find(self.id, key, self.at, &mut older)?;
        let is_there = found && Version::split(&older).is_some_and(|(version, _)| !version.is_tombstone());
        Ok(if is_there { Fate::Becomes(older) } else { Fate::Goes })
    }

    /// Takes leftover tombstones out of the map: their history ended with the run of the store that made
    /// them.
    fn sweep(&mut self) {
        let leftovers = std::mem::take(&mut self.leftovers);
        if leftovers.is_empty() {
            return;
        }
        // Another thread sweeps, or walks the tree, which must not change meanwhile.
        let Some(_permits) = self.sweeps.try_acquire_all() else { return };
        for (key, tombstone) in leftovers {
            if self.history.check().is_err() {
                return;
            }
            // They are no worse than before if that fails.
            let _tried = self.map.update(&key, &mut |value| match value.and_then(Version::split) {
                Some((version, _)) if version == tombstone => Change::Remove,
                _ => Change::Keep,
            });
        }
    }
}

impl<M: OrderedMap> Steps for VisibleRecords<M> {
    fn step(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        while self.pieces.next(piece)? {
            piece.decide(|key, value| self.fate(key, value))?;
            self.sweep();
            if !piece.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
