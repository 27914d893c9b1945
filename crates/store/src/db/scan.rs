//! A scan of a tree as of a snapshot, record by record.

use std::sync::Arc;

use super::core::Core;
use super::value::Value;
use crate::Error;
use crate::catalog::NamedTree;
use crate::index::{Direction, Piece, Steps, Version};
use crate::txn::Snapshot;

/// See the module.
pub(super) struct TreeScan {
    core: Arc<Core>,
    /// Keeps the versions that the scan sees.
    _at: Arc<Snapshot>,
    direction: Direction,
    steps: Box<dyn Steps>,
    piece: Piece,
    /// The piece's bytes, which its records share.
    shared: Arc<[u8]>,
    taken: usize,
}

impl TreeScan {
    /// The keys from `lower` up to but without `upper`.
    pub fn new(
        core: &Arc<Core>,
        tree: &NamedTree,
        at: &Arc<Snapshot>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Self {
        let ahead = core.read_ahead(tree);
        let index = Arc::clone(&tree.tree.index);
        let steps = index.scan(direction, lower, upper, ahead, at.timestamp());
        let (core, _at) = (Arc::clone(core), Arc::clone(at));
        Self { core, _at, direction, steps, piece: Piece::default(), shared: Arc::from([]), taken: 0 }
    }

    /// The next record.
    pub fn next(&mut self) -> Result<Option<(Value, Value)>, Error> {
        self.next_place()?.map(|place| self.record(place)).transpose()
    }

    /// The key of the next record. A value in pages of its own is not read.
    pub fn next_key(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let place = self.next_place()?;
        Ok(place.map(|[key, value, _]| self.shared.get(key..value).unwrap_or_default().to_vec()))
    }

    /// Offsets of the next record in the shared bytes: of its key, of its value, and of the value's end.
    fn next_place(&mut self) -> Result<Option<[usize; 3]>, Error> {
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
            self.core.check_process()?;
            if !self.steps.step(&mut self.piece)? {
                return Ok(None);
            }
            self.shared = Arc::from(self.piece.parts().0);
            self.taken = 0;
        }
    }

    fn record(&self, [key, value, end]: [usize; 3]) -> Result<(Value, Value), Error> {
        let bytes = self.shared.get(value..end).unwrap_or_default();
        let own_key = Value::part(&self.shared, key, value - key);
        match Version::split(bytes) {
            Some((version, rest)) if version.is_overflow() => Ok((own_key, self.core.value(version, rest)?)),
            Some((_, rest)) => Ok((own_key, Value::part(&self.shared, end - rest.len(), rest.len()))),
            None => Ok((own_key, Value::default())),
        }
    }
}
