//! A tree: looking up and changing records.

use std::sync::Arc;

use super::contention::{note_change, note_lost};
use super::node::{Full, Node, max_key_bytes, max_value_bytes};
use super::scratch::{with_bytes, with_page};
use crate::Error;
use crate::header::{PageId, PageKind};
use crate::pool::{Access, Denied, Pool, Seen, class_bytes, prefetch};

/// What to do with a key, having seen its value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'v> {
    /// Nothing.
    Keep,
    /// Give it this value.
    Put(&'v [u8]),
    /// Take it out.
    Remove,
}

/// A tree. Its root stays on the same page.
pub(crate) struct BTree {
    pub(super) pool: Arc<Pool>,
    pub(super) root: PageId,
    pub(super) class: usize,
    pub(super) volatile: bool,
}

/// What came of an attempt to change a record.
pub(super) enum Attempt {
    Done,
    /// Done, and the leaf has become so small that a neighbour may take it in.
    Shrunk,
    /// The leaf has no room.
    Full,
    /// Somebody else changed the leaf meanwhile.
    Lost,
}

impl BTree {
    /// A new, empty tree with nodes of size class `class`.
    pub fn create(pool: &Arc<Pool>, class: usize, volatile: bool) -> Result<Self, Error> {
        let memory = pool.reserve(class)?;
        let section = pool.section();
        let locked = section.create(memory, PageKind::Node, volatile);
        Node::init(locked.page(), 0, &[], None);
        Ok(Self::open(pool, locked.id(), class))
    }

    /// The tree with this root.
    pub fn open(pool: &Arc<Pool>, root: PageId, class: usize) -> Self {
        Self { pool: Arc::clone(pool), root, class, volatile: root.is_volatile() }
    }

    /// The page by which the tree is found again.
    pub fn root(&self) -> PageId {
        self.root
    }

    /// The longest key that the tree takes: a quarter of a node.
    pub fn max_key_bytes(&self) -> usize {
        max_key_bytes(class_bytes(self.class))
    }

    /// The longest value that the tree takes: a little less than a quarter of a node.
    pub fn max_value_bytes(&self) -> usize {
        max_value_bytes(class_bytes(self.class))
    }

    /// Appends the value of `key` to `into`; `false` if there is none.
    pub fn get(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        let start = into.len();
        self.until_whole(|| {
            let leaf = self.leaf(key, Access::Normal)?;
            let node = Node::new(leaf.page());
            let place = node.find(key).map(|index| node.value_place(index));
            if let Ok((offset, length)) = place {
                prefetch(leaf.page().words(offset, length));
                self.pool.overlap();
                leaf.page().copy_to(offset, length, into);
            }
            if leaf.is_still() {
                return Ok(Some(place.is_ok()));
            }
            into.truncate(start);
            Ok(None)
        })
    }

    /// As [`BTree::get`], if what that takes is in memory; otherwise begins to load it, and `into` stays as it is.
    pub fn get_at_hand(&self, key: &[u8], into: &mut Vec<u8>) -> Option<bool> {
        let start = into.len();
        let found = self.peek(key, |leaf| {
            let place = leaf.find(key).map(|index| leaf.value_place(index));
            place.map(|(offset, length)| leaf.page().copy_to(offset, length, into)).is_ok()
        });
        if found.is_none() {
            into.truncate(start);
            self.begin_to_load(key);
        }
        found
    }

    /// The first eight bytes of the value of `key` as a number, little-endian; what a shorter value lacks is zero.
    pub fn head(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        self.until_whole(|| {
            let leaf = self.leaf(key, Access::Normal)?;
            let node = Node::new(leaf.page());
            let head = node.find(key).ok().map(|index| node.value_head(index));
            Ok(leaf.is_still().then_some(head))
        })
    }

    /// Looks at the value of a key and changes it, as one: nobody changes it in between. `decide` may be called several times; it must not wait, and its last answer counts.
    ///
    /// # Errors
    /// [`Error::KeyLength`] and [`Error::ValueLength`] for what does not fit into a node; the pool's, and then nothing has changed.
    pub fn update<'v>(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<(), Error> {
        if key.len() > self.max_key_bytes() {
            return Err(Error::KeyLength { got: key.len(), limit: self.max_key_bytes() });
        }
        note_change();
        self.until_whole(|| {
            let leaf = self.leaf(key, Access::Normal)?;
            match self.attempt(&leaf, key, decide) {
                Ok(Attempt::Done) => return Ok(Some(())),
                Ok(Attempt::Shrunk) => {
                    // What was asked for is done, whatever becomes of this.
                    let _merged = self.shrink(key);
                    return Ok(Some(()));
                }
                Ok(Attempt::Full) => self.make_room(key)?,
                Ok(Attempt::Lost) | Err(Denied::Changed) => {
                    if note_lost(leaf.id()) {
                        // Nothing depends on it.
                        let _parted = self.part(key);
                    }
                }
                Err(denied) => self.pool.recover(denied)?,
            }
            Ok(None)
        })
    }

    pub(super) fn attempt<'v>(
        &self,
        leaf: &Seen<'_>,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<Attempt, Denied> {
        let found = Node::new(leaf.page()).find(key);
        let change = with_bytes(|old| {
            let value = found.ok().map(|index| Node::new(leaf.page()).value(index, old));
            // What is decided on must be whole.
            leaf.is_still().then(|| decide(value.map(|()| old.as_slice())))
        });
        let value = match (change, found) {
            (None, _) => return Ok(Attempt::Lost),
            (Some(Change::Keep), _) | (Some(Change::Remove), Err(_)) => return Ok(Attempt::Done),
            (Some(Change::Put(value)), _) => Some(value),
            (Some(Change::Remove), Ok(_)) => None,
        };
        let limit = self.max_value_bytes();
        if let Some(got) = value.map(<[u8]>::len).filter(|got| *got > limit) {
            return Err(Denied::Failed(Error::ValueLength { got: got as u64, limit: limit as u64 }));
        }
        let node = Node::new(leaf.page());
        if value.is_some_and(|value| !node.has_room(found, key.len(), value.len())) {
            // Without the latch: who finds no room must not be in the way of somebody who makes some.
            return match leaf.is_still() {
                false => Ok(Attempt::Lost),
                // A split gives it no more room.
                true if node.count() == 0 => Err(Denied::Failed(self.no_room(leaf.id()))),
                true => Ok(Attempt::Full),
            };
        }
        let section = self.pool.section();
        // It comes only if nothing has changed since what was decided on was read.
        let locked = section.lock(leaf)?;
        let node = Node::new(locked.page());
        let before = node.used_bytes();
        let changed = with_page(node.page().len_bytes(), |scratch| match (value, found) {
            (Some(value), Ok(index)) => node.replace(index, value, scratch),
            (Some(value), Err(index)) => node.insert(index, key, value, scratch),
            (None, Ok(index)) => {
                node.remove(index);
                node.tidy(scratch);
                Ok(())
            }
            (None, Err(_)) => Ok(()),
        });
        Ok(match changed {
            Err(Full) => Attempt::Full,
            Ok(()) if Self::has_shrunk(node, before) => Attempt::Shrunk,
            Ok(()) => Attempt::Done,
        })
    }
}
