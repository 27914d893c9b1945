//! A tree: looking up and changing records.

use std::sync::Arc;

use super::contention::{note_change, note_lost};
use super::form::{InBlocks, NodeForm};
use super::leaf_hints::TreeNumber;
use super::node::{Full, Node, key_bytes_max, value_bytes_max};
use super::scratch::{with_bytes, with_page};
use crate::Error;
use crate::class::class_bytes;
use crate::header::{PageId, PageKind};
use crate::index::{KeySlot, LeafHint};
use crate::pool::{Denied, OptimisticGuard, Pages, Pool, prefetch};

/// A decision about a key, made on its present value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'v> {
    /// Nothing.
    Keep,
    /// Give it this value.
    Put(&'v [u8]),
    /// Take it out.
    Remove,
}

impl KeySlot {
    /// The result of [`Node::find`], computed unless it is known. `node` is unchanged since then.
    #[inline]
    pub fn find(self, node: Node<'_>, key: &[u8]) -> Result<u32, u32> {
        match self {
            Self::Unknown => node.find(key),
            Self::At(index) => Ok(index.into()),
            Self::Before(index) => Err(index.into()),
        }
    }
}

impl From<Result<u32, u32>> for KeySlot {
    /// From a result of [`Node::find`]: a page has fewer slots than a `u16` counts.
    #[inline]
    fn from(found: Result<u32, u32>) -> Self {
        found.map_or_else(|index| Self::Before(index as u16), |index| Self::At(index as u16))
    }
}

/// How a record is to be changed.
pub(super) enum Wish<'a, 'v> {
    /// Makes this change, whatever the record is.
    Is(Change<'v>),
    /// Makes the change that this returns for its value. Called again if the value changes before it is done.
    DependsOn(&'a mut dyn FnMut(Option<&[u8]>) -> Change<'v>),
}

/// A tree. Its root stays on the same page.
#[derive(Clone)]
pub(crate) struct BTree {
    pub(super) pool: Arc<Pool>,
    pub(super) root: PageId,
    pub(super) class: usize,
    pub(super) volatile: bool,
    pub(super) number: TreeNumber,
    pub(super) kind: PageKind,
    pub(super) spare_bytes: u32,
    pub(super) in_blocks: Option<InBlocks>,
}

/// Result of an attempt to change a record.
pub(super) enum Attempt {
    /// The key's position after the change.
    Done(LeafHint),
    /// Done, and the leaf has become so small that a neighbour may take it in.
    Shrunk,
    /// The leaf has no room.
    Full,
    /// Another thread changed the leaf meanwhile.
    Lost,
}

/// Appends the value at `place`, if there is a place, and returns whether there is. `None`, with `into`
/// unchanged, if the leaf has changed or left memory meanwhile.
#[inline]
fn copied(leaf: &OptimisticGuard<'_>, place: Option<(u32, u32)>, into: &mut Vec<u8>) -> Option<bool> {
    let start = into.len();
    if let Some((offset, length)) = place {
        leaf.page().copy_to(offset, length, into);
    }
    if !leaf.is_valid() {
        into.truncate(start);
        return None;
    }
    Some(place.is_some())
}

impl BTree {
    /// A new, empty tree with nodes of this form, or of this size class.
    pub fn create(pool: &Arc<Pool>, form: impl Into<NodeForm>, volatile: bool) -> Result<Self, Error> {
        let form = form.into();
        let memory = pool.reserve(form.class)?;
        let section = pool.section();
        let locked = section.create(memory, form.kind(), volatile);
        Node::init(locked.page(), 0, &[], None);
        Ok(Self::open(pool, locked.id(), form))
    }

    /// The tree with this root.
    pub fn open(pool: &Arc<Pool>, root: PageId, form: impl Into<NodeForm>) -> Self {
        let form = form.into();
        Self {
            pool: Arc::clone(pool),
            root,
            class: form.class,
            volatile: root.is_volatile(),
            number: TreeNumber::new(),
            kind: form.kind(),
            spare_bytes: form.spare_bytes(),
            in_blocks: InBlocks::of(form),
        }
    }

    /// The page that identifies the tree.
    pub fn root(&self) -> PageId {
        self.root
    }

    /// Bytes of a node.
    pub fn node_bytes(&self) -> usize {
        class_bytes(self.class) as usize
    }

    /// The longest key that the tree takes: a quarter of a node, or of a block of
    /// it.
    pub fn key_bytes_max(&self) -> usize {
        key_bytes_max(self.block_bytes())
    }

    /// The longest value that the tree takes: slightly less than a quarter of a node, or of a block of it.
    pub fn value_bytes_max(&self) -> usize {
        value_bytes_max(self.block_bytes())
    }

    /// Bytes of a block of a node; of a node, if these are read whole.
    fn block_bytes(&self) -> u64 {
        self.in_blocks.map_or_else(|| class_bytes(self.class), |blocks| blocks.bytes.into())
    }

    /// Appends the value of `key` to `into`; `false` if the key has none. `hint` may be the position of
    /// another key that may be in the same leaf, and becomes the position of this one.
    pub fn get(&self, key: &[u8], into: &mut Vec<u8>, hint: &mut Option<LeafHint>) -> Result<bool, Error> {
        self.until_whole(|| {
            let place = self.leaf_of(key, hint.take())?;
            Ok(self.copy_value(place, key, into, hint, Pages::overlap))
        })
    }

    /// As [`BTree::get`], if the pages for it are in memory; otherwise begins to load it, and `into` stays as
    /// it is.
    pub fn get_resident(&self, key: &[u8], into: &mut Vec<u8>, hint: &mut Option<LeafHint>) -> Option<bool> {
        let copied = self.copy_resident(key, into, hint);
        if copied.is_none() {
            self.begin_to_load_leaf(key);
        }
        copied
    }

    /// As [`BTree::get`], if the pages for it are in memory.
    pub(super) fn copy_resident(
        &self,
        key: &[u8],
        into: &mut Vec<u8>,
        hint: &mut Option<LeafHint>,
    ) -> Option<bool> {
        let place = self.resident_leaf(key, hint.take())?;
        self.copy_value(place, key, into, hint, |_| ())
    }

    /// Appends the value of `key`, which belongs to this leaf. Returns whether the key has one; `None` if the
    /// leaf has changed meanwhile. `meanwhile` runs while the value comes into the processor's cache.
    #[inline]
    pub(super) fn copy_value(
        &self,
        (leaf, slot): (OptimisticGuard<'_>, KeySlot),
        key: &[u8],
        into: &mut Vec<u8>,
        hint: &mut Option<LeafHint>,
        meanwhile: impl Fn(&Pages),
    ) -> Option<bool> {
        let found = slot.find(Node::new(leaf.page()), key);
        let place = found.ok().map(|index| Node::new(leaf.page()).value_place(index));
        if let Some((offset, length)) = place {
            prefetch(leaf.page().words(offset, length));
            meanwhile(&self.pool.pages);
        }
        let copied = copied(&leaf, place, into);
        self.note_found(copied.is_some(), &leaf, found, key, hint);
        copied
    }

    /// The first eight bytes of the value of `key` as a number, little-endian; a shorter value is filled up
    /// with zeros. `hint` as with [`BTree::get`].
    pub fn head(&self, key: &[u8], hint: &mut Option<LeafHint>) -> Result<Option<u64>, Error> {
        self.until_whole(|| {
            let (leaf, slot) = self.leaf_of(key, hint.take())?;
            let node = Node::new(leaf.page());
            let found = slot.find(node, key);
            let head = found.ok().map(|index| node.value_head(index));
            let is_valid = leaf.is_valid();
            self.note_found(is_valid, &leaf, found, key, hint);
            Ok(is_valid.then_some(head))
        })
    }

    /// Remembers where `key` was `found`, if nothing has changed there meanwhile. A missing key is not
    /// remembered.
    #[inline]
    fn note_found(
        &self,
        is_valid: bool,
        leaf: &OptimisticGuard<'_>,
        found: Result<u32, u32>,
        key: &[u8],
        hint: &mut Option<LeafHint>,
    ) {
        if is_valid {
            let found_at = LeafHint { page_version: leaf.page_version(), slot: found.into() };
            if found.is_ok() {
                self.remember(key, found_at);
            }
            *hint = Some(found_at);
        }
    }

    /// Whether the leaf of a key that was found is in memory and has not changed since.
    pub fn is_valid(&self, hint: Option<LeafHint>) -> bool {
        hint.is_some_and(|hint| self.pool.pages.is_valid(hint.page_version))
    }

    /// Looks at the value of a key and changes it atomically. `decide` may be called several times; it must
    /// not wait, and its last answer counts.
    ///
    /// # Errors
    /// [`Error::KeyLength`] and [`Error::ValueLength`] for keys and values that do not fit into a node; the
    /// pool's, and then nothing has changed.
    pub fn update<'v>(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<(), Error> {
        self.change_as(key, &mut None, &mut Wish::DependsOn(decide))
    }

    /// Changes the record of a key, beginning with the leaf where it was found before. `hint` becomes its
    /// position afterwards, or nothing if another descent was needed. Other keys of the leaf have moved
    /// perhaps: they begin with [`LeafHint::of_another_key`].
    ///
    /// # Errors
    /// As [`BTree::update`].
    pub fn change_at(
        &self,
        key: &[u8],
        hint: &mut Option<LeafHint>,
        change: Change<'_>,
    ) -> Result<(), Error> {
        self.change_as(key, hint, &mut Wish::Is(change))
    }

    fn change_as(
        &self,
        key: &[u8],
        hint: &mut Option<LeafHint>,
        wish: &mut Wish<'_, '_>,
    ) -> Result<(), Error> {
        if key.len() > self.key_bytes_max() {
            return Err(Error::KeyLength { got: key.len(), limit: self.key_bytes_max() });
        }
        note_change();
        let mut first = hint.take();
        self.until_whole(|| {
            let hinted =
                first.take().and_then(|hint| Some((self.pool.pages.revisit(hint.page_version)?, hint.slot)));
            let (leaf, slot) = hinted.map_or_else(|| self.leaf_of(key, None), Ok)?;
            match self.attempt(&leaf, slot, key, wish) {
                Ok(Attempt::Done(after)) => {
                    *hint = hinted.map(|_| after);
                    return Ok(Some(()));
                }
                Ok(Attempt::Shrunk) => {
                    // The change is done, whether the merge succeeds or not.
                    let _merged = self.shrink(key);
                    return Ok(Some(()));
                }
                Ok(Attempt::Full) => self.make_room(key)?,
                Ok(Attempt::Lost) | Err(Denied::Changed) => {
                    if note_lost(leaf.id()) {
                        // The split is optional.
                        let _parted = self.part(key);
                    }
                }
                Err(denied) => self.pool.images.recover(denied)?,
            }
            Ok(None)
        })
    }

    pub(super) fn attempt(
        &self,
        leaf: &OptimisticGuard<'_>,
        slot: KeySlot,
        key: &[u8],
        wish: &mut Wish<'_, '_>,
    ) -> Result<Attempt, Denied> {
        let found = slot.find(Node::new(leaf.page()), key);
        let change = match wish {
            Wish::Is(change) => leaf.is_valid().then_some(*change),
            Wish::DependsOn(decide) => with_bytes(|old| {
                let value = found.ok().map(|index| Node::new(leaf.page()).value(index, old));
                // The decision must be made on a consistent value.
                leaf.is_valid().then(|| decide(value.map(|()| old.as_slice())))
            }),
        };
        let value = match (change, found) {
            (None, _) => return Ok(Attempt::Lost),
            (Some(Change::Keep), _) | (Some(Change::Remove), Err(_)) => {
                return Ok(Attempt::Done(LeafHint { page_version: leaf.page_version(), slot: found.into() }));
            }
            (Some(Change::Put(value)), _) => Some(value),
            (Some(Change::Remove), Ok(_)) => None,
        };
        let limit = self.value_bytes_max();
        if let Some(got) = value.map(<[u8]>::len).filter(|got| *got > limit) {
            return Err(Denied::Failed(Error::ValueLength { got: got as u64, limit: limit as u64 }));
        }
        let node = Node::new(leaf.page());
        if value.is_some_and(|value| !node.has_room(found, (key.len(), value.len()), self.spare_bytes)) {
            // Without the latch: a thread that finds no room must not block a thread that makes some.
            return match leaf.is_valid() {
                false => Ok(Attempt::Lost),
                // A split gives it no more room.
                true if node.count() == 0 => Err(Denied::Failed(self.no_room(leaf.id()))),
                true => Ok(Attempt::Full),
            };
        }
        let section = self.pool.section();
        // The lock fails if the leaf has changed since the value was read.
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
        if changed.is_ok() && found.is_ok() {
            self.amend(key, value);
        }
        Ok(match changed {
            Err(Full) => Attempt::Full,
            Ok(()) if Self::has_shrunk(node, before) => Attempt::Shrunk,
            Ok(()) => {
                let slot = value
                    .map_or(KeySlot::Unknown, |_| KeySlot::At(found.unwrap_or_else(|index| index) as u16));
                Attempt::Done(LeafHint { page_version: leaf.next_page_version(), slot })
            }
        })
    }
}
