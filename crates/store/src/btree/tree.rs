//! A tree: looking up and changing records.

use std::sync::Arc;

use super::contention::{note_change, note_lost};
use super::node::{Full, Node, max_key_bytes, max_value_bytes};
use super::places::TreeNumber;
use super::scratch::{with_bytes, with_page};
use crate::Error;
use crate::header::{PageId, PageKind};
use crate::pool::{Denied, Pool, Seen, Sight, class_bytes, prefetch};

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

/// The leaf of a tree in which a key was found, or was not. While nothing has changed there, who changes the key need not begin at the root.
pub(crate) type Near = Option<Sight>;

/// A tree. Its root stays on the same page.
#[derive(Clone)]
pub(crate) struct BTree {
    pub(super) pool: Arc<Pool>,
    pub(super) root: PageId,
    pub(super) class: usize,
    pub(super) volatile: bool,
    pub(super) number: TreeNumber,
}

/// What came of an attempt to change a record.
pub(super) enum Attempt {
    /// The leaf is now as in this sight.
    Done(Sight),
    /// Done, and the leaf has become so small that a neighbour may take it in.
    Shrunk,
    /// The leaf has no room.
    Full,
    /// Somebody else changed the leaf meanwhile.
    Lost,
}

/// Where the value of `key` is in the leaf that covers it: its offset and its length in bytes.
#[inline]
fn value_place(leaf: &Seen<'_>, key: &[u8]) -> Option<(u32, u32)> {
    let node = Node::new(leaf.page());
    node.find(key).ok().map(|index| node.value_place(index))
}

/// Appends what is at `place`: whether there is such a place. `None` if the leaf has changed or left memory meanwhile, and then `into` is as it was.
#[inline]
fn copied(leaf: &Seen<'_>, place: Option<(u32, u32)>, into: &mut Vec<u8>) -> Option<bool> {
    let start = into.len();
    if let Some((offset, length)) = place {
        leaf.page().copy_to(offset, length, into);
    }
    if !leaf.is_still() {
        into.truncate(start);
        return None;
    }
    Some(place.is_some())
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
        Self { pool: Arc::clone(pool), root, class, volatile: root.is_volatile(), number: TreeNumber::new() }
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

    /// Appends the value of `key` to `into`; `false` if there is none. `near` may be where a key was found that may be in the same leaf, and becomes where this one was.
    pub fn get(&self, key: &[u8], into: &mut Vec<u8>, near: &mut Near) -> Result<bool, Error> {
        self.until_whole(|| {
            let leaf = self.leaf(key, near.take())?;
            *near = Some(leaf.sight());
            let place = value_place(&leaf, key);
            if let Some((offset, length)) = place {
                prefetch(leaf.page().words(offset, length));
                self.pool.overlap();
            }
            Ok(copied(&leaf, place, into))
        })
    }

    /// As [`BTree::get`], if what that takes is in memory; otherwise begins to load it, and `into` stays as it is.
    pub fn get_at_hand(&self, key: &[u8], into: &mut Vec<u8>, near: &mut Near) -> Option<bool> {
        let found = self.leaf_at_hand(key, near.take()).and_then(|leaf| {
            *near = Some(leaf.sight());
            copied(&leaf, value_place(&leaf, key), into)
        });
        if found.is_none() {
            self.begin_to_load(key);
        }
        found
    }

    /// The first eight bytes of the value of `key` as a number, little-endian; what a shorter value lacks is zero.
    pub fn head(&self, key: &[u8], near: &mut Near) -> Result<Option<u64>, Error> {
        self.until_whole(|| {
            let leaf = self.leaf(key, near.take())?;
            *near = Some(leaf.sight());
            let node = Node::new(leaf.page());
            let head = node.find(key).ok().map(|index| node.value_head(index));
            Ok(leaf.is_still().then_some(head))
        })
    }

    /// Whether the leaf in which a key was found is in memory and nobody has changed it since.
    pub fn is_still(&self, near: Near) -> bool {
        near.is_some_and(|sight| self.pool.is_still(sight))
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
        self.update_near(key, &mut None, decide)
    }

    /// As [`BTree::update`], beginning with the leaf in which the key was found before. `near` becomes the same leaf as it is afterwards, or nothing if the way there had to be gone again.
    ///
    /// # Errors
    /// As [`BTree::update`].
    pub fn update_near<'v>(
        &self,
        key: &[u8],
        near: &mut Near,
        decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<(), Error> {
        if key.len() > self.max_key_bytes() {
            return Err(Error::KeyLength { got: key.len(), limit: self.max_key_bytes() });
        }
        note_change();
        let mut hint = near.take();
        self.until_whole(|| {
            let hinted = hint.take().and_then(|sight| self.pool.again(sight));
            let leaf = hinted.map_or_else(|| self.leaf(key, None), Ok)?;
            match self.attempt(&leaf, key, decide) {
                Ok(Attempt::Done(sight)) => {
                    *near = hinted.map(|_| sight);
                    return Ok(Some(()));
                }
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
            (Some(Change::Keep), _) | (Some(Change::Remove), Err(_)) => {
                return Ok(Attempt::Done(leaf.sight()));
            }
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
            Ok(()) => Attempt::Done(leaf.sight_changed()),
        })
    }
}
