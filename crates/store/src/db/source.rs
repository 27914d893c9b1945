//! A reader's view of a tree: its records as of a snapshot, overlaid by the reader's own writes.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use super::content::Content;
use super::core::Core;
use super::lookup::Lookup;
use super::overlay::Overlay;
use super::range::Range;
use super::scan::{Place, TreeScan};
use super::tree::Tree;
use super::value::Value;
use crate::Error;
use crate::catalog::NamedTree;
use crate::index::Direction;
use crate::txn::Snapshot;

/// The implementation of [`Readable`](super::readable::Readable). It cannot be named outside of the crate.
pub trait Source {
    /// For looking keys up. It refuses a handle that belongs to no tree of the store as it is open now.
    #[doc(hidden)]
    fn lookup<'a>(&'a self, tree: &'a Tree) -> Result<Lookup<'a>, Error>;

    #[doc(hidden)]
    fn view(&self, tree: &Tree) -> Result<View, Error>;
}

/// A tree as a reader sees it; does not change any more.
#[derive(Clone)]
pub struct View {
    pub(super) core: Arc<Core>,
    pub(super) tree: Arc<NamedTree>,
    pub(super) at: Arc<Snapshot>,
    pub(super) overlay: Option<Arc<Overlay>>,
}

/// The records of a view in one direction, one by one.
pub(super) struct Records {
    direction: Direction,
    scan: TreeScan,
    overlay: Option<Own>,
}

/// The reader's own writes, and the record of the tree that waits for its turn among them. Its value is made
/// when it is needed, so not if an own write replaces the record.
struct Own {
    core: Arc<Core>,
    tree: Arc<NamedTree>,
    writes: Arc<Overlay>,
    remaining: Range,
    held: Option<Place>,
}

impl Records {
    /// Those in `range`.
    pub fn new(view: &View, range: &Range, direction: Direction) -> Self {
        let own = |writes: &Arc<Overlay>| {
            let (core, tree, writes) = (Arc::clone(&view.core), Arc::clone(&view.tree), Arc::clone(writes));
            Own { core, tree, writes, remaining: range.clone(), held: None }
        };
        Self {
            direction,
            scan: TreeScan::new(
                &view.core,
                &view.tree,
                &view.at,
                direction,
                &range.lower,
                range.upper.as_deref(),
            ),
            overlay: view.overlay.as_ref().map(own),
        }
    }

    /// The next record.
    pub fn next(&mut self) -> Result<Option<(Value, Value)>, Error> {
        let Some(own) = &mut self.overlay else { return self.scan.next() };
        loop {
            if own.held.is_none() {
                own.held = self.scan.next_place()?;
            }
            let first = own.first(self.direction);
            let order = match (own.held, &first) {
                (None, None) => return Ok(None),
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(held), Some((key, _))) => {
                    let order = self.scan.key(held).cmp(key);
                    if self.direction == Direction::Forward { order } else { order.reverse() }
                }
            };
            let Some((key, written)) = first.filter(|_| order != Ordering::Less) else {
                let record = own.held.take().map(|held| self.scan.record(held)).transpose()?.flatten();
                if record.is_some() {
                    return Ok(record);
                }
                continue;
            };
            let value = match written {
                Some(Content::Operands(list)) => {
                    let held = own.held.filter(|_| order == Ordering::Equal);
                    let held = held.map(|held| self.scan.record(held)).transpose()?.flatten();
                    own.tree.merge(key, held.as_ref().map(|(_, value)| value.as_slice()), list)?
                }
                written => written
                    .as_ref()
                    .map(|content| content.value(own.core.engine().overflow_values()))
                    .transpose()?,
            };
            let record = value.map(|value| (Value::from(key), value));
            let key = key.to_vec();
            own.remaining.take(self.direction, &key);
            if order == Ordering::Equal {
                own.held = None;
            }
            if record.is_some() {
                return Ok(record);
            }
        }
    }
}

impl Own {
    /// The next write.
    fn first(&self, direction: Direction) -> Option<(&[u8], &Option<Content>)> {
        if self.remaining.is_empty() {
            return None;
        }
        let mut remaining = self
            .writes
            .range::<[u8], _>((Bound::Included(self.remaining.lower.as_slice()), self.remaining.end()));
        let found = match direction {
            Direction::Forward => remaining.next(),
            Direction::Backward => remaining.next_back(),
        };
        found.map(|(key, written)| (key.as_slice(), written))
    }
}
