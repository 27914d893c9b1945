//! A scan of a tree as of a snapshot, record by record.

use super::core::Core;
use super::value::Value;
use crate::Error;
use crate::catalog::NamedTree;
use crate::index::{Base, Direction, Piece, Steps, Unmerged, Version};
use crate::log::Timestamp;
use crate::sync::{Arc, Mutex, PoisonError};
use crate::txn::Snapshot;

/// See the module.
pub(super) struct TreeScan {
    core: Arc<Core>,
    tree: Arc<NamedTree>,
    /// Keeps the versions that the scan sees.
    at: Arc<Snapshot>,
    direction: Direction,
    /// Never locked: the mutex makes a scan `Sync`, as a step needs it exclusively.
    steps: Mutex<Box<dyn Steps>>,
    piece: Piece,
    /// The piece's bytes, which its records share.
    shared: Arc<[u8]>,
    taken: usize,
}

/// Offsets of a record in the bytes that a scan shares: of its key, of its value, and of the value's end.
pub(super) type Place = [usize; 3];

/// A record whose operands are not merged.
pub(super) struct UnmergedRecord {
    pub key: Value,
    /// The value that the operands are over.
    pub value: Option<Value>,
    /// A list of operands.
    pub operands: Vec<u8>,
}

impl TreeScan {
    /// The keys from `lower` up to but without `upper`.
    pub fn new(
        core: &Arc<Core>,
        tree: &Arc<NamedTree>,
        at: &Arc<Snapshot>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Self {
        let ahead = core.read_ahead(tree);
        let index = Arc::clone(&tree.tree.index);
        let steps = index.scan(direction, lower, upper, ahead, at.timestamp());
        Self::of((core, tree, at), direction, steps)
    }

    /// All keys, forward, without operands being merged.
    pub fn unmerged(core: &Arc<Core>, tree: &Arc<NamedTree>, at: &Arc<Snapshot>) -> Self {
        let index = Arc::clone(&tree.tree.index);
        let steps = index.scan_unmerged(core.read_ahead(tree), at.timestamp());
        Self::of((core, tree, at), Direction::Forward, steps)
    }

    fn of(
        (core, tree, at): (&Arc<Core>, &Arc<NamedTree>, &Arc<Snapshot>),
        direction: Direction,
        steps: Box<dyn Steps>,
    ) -> Self {
        let (core, tree, at) = (Arc::clone(core), Arc::clone(tree), Arc::clone(at));
        let steps = Mutex::new(steps);
        Self { core, tree, at, direction, steps, piece: Piece::default(), shared: Arc::from([]), taken: 0 }
    }

    /// The next record.
    pub fn next(&mut self) -> Result<Option<(Value, Value)>, Error> {
        while let Some(place) = self.next_place()? {
            if let Some(record) = self.record(place)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The next record of a scan without operands being merged.
    pub fn next_unmerged(&mut self) -> Result<Option<UnmergedRecord>, Error> {
        let Some([key, value, end]) = self.next_place()? else { return Ok(None) };
        let bytes = self.shared.get(value..end).unwrap_or_default();
        let Some((_, rest)) = Version::split(bytes).filter(|(version, _)| version.is_operands()) else {
            let (key, value) = self.stored_record([key, value, end])?;
            return Ok(Some(UnmergedRecord { key, value: Some(value), operands: Vec::new() }));
        };
        let own_key = Value::part(&self.shared, key, value - key);
        let Unmerged { base, operands } = Unmerged::decode(rest).unwrap_or_default();
        let value = match base {
            Base::Nothing => None,
            Base::Value(value) => Some(Value::from(value)),
            Base::Overflow(reference) => Some(self.core.value(Version::overflow(Timestamp(0)), &reference)?),
        };
        Ok(Some(UnmergedRecord { key: own_key, value, operands }))
    }

    /// The key of the next record. A value in pages of its own is not read, and a record that the merge
    /// operator fails at has a key like any other.
    pub fn next_key(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let place = self.next_place()?;
        Ok(place.map(|place| self.key(place).to_vec()))
    }

    /// The key of the record at a place, until the scan goes on.
    pub fn key(&self, [key, value, _]: Place) -> &[u8] {
        self.shared.get(key..value).unwrap_or_default()
    }

    /// Place of the next record.
    pub fn next_place(&mut self) -> Result<Option<Place>, Error> {
        loop {
            let (_, places) = self.piece.parts();
            let index = match self.direction {
                Direction::Forward => Some(self.taken),
                Direction::Backward => places.len().checked_sub(self.taken + 1),
            };
            if let Some(place) = index.and_then(|index| places.get(index)) {
                self.taken += 1;
                return Ok(Some(place.map(|at| at as usize)));
            }
            self.core.check_open()?;
            let is_more = self.steps.get_mut().unwrap_or_else(PoisonError::into_inner).step(&mut self.piece);
            self.core.check_open()?;
            if !is_more? {
                return Ok(None);
            }
            self.shared = Arc::from(self.piece.parts().0);
            self.taken = 0;
        }
    }

    /// The record at a place, until the scan goes on; `None` if its operands turn out to have removed it.
    pub fn record(&self, place: Place) -> Result<Option<(Value, Value)>, Error> {
        let [_, value, end] = place;
        let bytes = self.shared.get(value..end).unwrap_or_default();
        if !Version::split(bytes).is_some_and(|(version, _)| version.is_operands()) {
            return self.stored_record(place).map(Some);
        }
        // The operator failed when the scan came to it. The error belongs to this record, not to those that
        // were read ahead together with it.
        let key = self.key(place);
        let Some((version, bytes)) = self.core.look_up_raw(&self.tree, key, &self.at)? else {
            return Ok(None);
        };
        Ok(Some((Value::from(key), self.core.value(version, &bytes)?)))
    }

    /// A record that is stored as it is.
    fn stored_record(&self, [key, value, end]: Place) -> Result<(Value, Value), Error> {
        let bytes = self.shared.get(value..end).unwrap_or_default();
        let own_key = Value::part(&self.shared, key, value - key);
        match Version::split(bytes) {
            Some((version, rest)) if version.is_overflow() => Ok((own_key, self.core.value(version, rest)?)),
            Some((_, rest)) => Ok((own_key, Value::part(&self.shared, end - rest.len(), rest.len()))),
            None => Ok((own_key, Value::default())),
        }
    }
}
