//! What a reader reads: a tree as of a moment, with the reader's own writes before it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::core::{Core, Direction, Piece, Pinned, TreeState};
use super::tree::Tree;
use super::value::Value;
use crate::Error;

/// Writes of a transaction to one tree.
pub type Overlay = BTreeMap<Vec<u8>, Option<Value>>;

/// Where [`Readable`](super::readable::Readable) gets its records from. Nobody outside of the crate can name it.
pub trait Source {
    #[doc(hidden)]
    fn look_up(&self, tree: &Tree, key: &[u8]) -> Result<Option<Value>, Error>;

    #[doc(hidden)]
    fn view(&self, tree: &Tree) -> Result<View, Error>;
}

/// A tree as a reader sees it; does not change any more.
#[derive(Clone)]
pub struct View {
    pub(super) core: Arc<Core>,
    pub(super) tree: Arc<TreeState>,
    pub(super) at: Arc<Pinned>,
    pub(super) overlay: Option<Arc<Overlay>>,
}

/// Pieces that a scan expects to take when it has taken one, two, four and so on, at most.
const READ_AHEAD_MAX: u32 = 64;

/// A scan in one direction, record by record.
pub(super) struct Scan {
    view: View,
    direction: Direction,
    piece: Piece,
    /// Records of the piece that were taken.
    taken: usize,
    read_ahead: u32,
    /// A record of the tree that waits behind one of the overlay.
    held: Option<(Value, Value)>,
    /// Where the overlay goes on.
    own: Bound<Vec<u8>>,
    own_ended: bool,
}

impl Scan {
    /// From `from` on.
    pub fn new(view: View, from: Bound<Vec<u8>>, direction: Direction) -> Self {
        let own_ended = view.overlay.is_none();
        let piece = Piece { records: Vec::new(), next: Some(from.clone()) };
        Self { view, direction, piece, taken: 0, read_ahead: 1, held: None, own: from, own_ended }
    }

    /// The next record, merged with the reader's own writes.
    pub fn next(&mut self) -> Result<Option<(Value, Value)>, Error> {
        if self.own_ended {
            return self.next_of_tree();
        }
        loop {
            if self.held.is_none() {
                self.held = self.next_of_tree()?;
            }
            let Some((key, written)) = self.next_own() else {
                self.own_ended = true;
                return Ok(self.held.take());
            };
            let order = match &self.held {
                Some((held, _)) => held.as_slice().cmp(&key),
                None => std::cmp::Ordering::Greater,
            };
            let order = if self.direction == Direction::Forward || self.held.is_none() {
                order
            } else {
                order.reverse()
            };
            match order {
                std::cmp::Ordering::Less => return Ok(self.held.take()),
                std::cmp::Ordering::Equal => self.held = None,
                std::cmp::Ordering::Greater => {}
            }
            self.own = Bound::Excluded(key.clone());
            if let Some(value) = written {
                return Ok(Some((Value::from(key), value)));
            }
        }
    }

    /// The next own write, which is not taken yet.
    fn next_own(&self) -> Option<(Vec<u8>, Option<Value>)> {
        let overlay = self.view.overlay.as_ref()?;
        let own = self.own.as_ref().map(Vec::as_slice);
        let found = match self.direction {
            Direction::Forward => overlay.range::<[u8], _>((own, Bound::Unbounded)).next(),
            Direction::Backward => overlay.range::<[u8], _>((Bound::Unbounded, own)).next_back(),
        };
        found.map(|(key, value)| (key.clone(), value.clone()))
    }

    fn next_of_tree(&mut self) -> Result<Option<(Value, Value)>, Error> {
        loop {
            let index = match self.direction {
                Direction::Forward => Some(self.taken),
                Direction::Backward => self.piece.records.len().checked_sub(self.taken + 1),
            };
            if let Some(record) = index.and_then(|index| self.piece.records.get(index)) {
                self.taken += 1;
                return Ok(Some(record.clone()));
            }
            let Some(from) = self.piece.next.take() else { return Ok(None) };
            self.taken = 0;
            self.piece.records.clear();
            let View { core, tree, at, .. } = &self.view;
            let from = from.as_ref().map(Vec::as_slice);
            core.scan(tree, at, from, self.direction, self.read_ahead, &mut self.piece)?;
            self.read_ahead = (self.read_ahead * 2).min(READ_AHEAD_MAX);
        }
    }
}
