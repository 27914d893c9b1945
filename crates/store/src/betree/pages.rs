//! The pages of a Bε-tree, from the root's part down to the basement nodes.
//!
//! Pages are changed by the holder of the tree's mutex, and by the tasks that it has started to
//! [make room](super::ahead) in a part.

use super::ahead::Ahead;
use super::content::{Content, Fitting, Pivot, Summary};
use super::in_place::Changes;
use super::levels::LEVEL_MIN;
use super::longest_key::{LongestKey, words_of};
use super::messages::Messages;
use super::part::{self, Part, kind_of};
use super::shape::Shape;
use super::stats::Counters;
use crate::Error;
use crate::buffered::{RangeTombstones, TreeResources};
use crate::header::{Header, PageId, PageKind};
use crate::index::TreeId;
use crate::pool::{Access, Denied, OptimisticGuard, Pool};
use crate::sync::Arc;
use crate::task::yield_now;

/// After this number of attempts a descent checks whether the store is poisoned, and takes the mutex, so that
/// the tree does not change: memory may be so full that each page on the way evicts the one above it, again
/// and again.
pub(super) const ATTEMPTS: u32 = 8;

/// See the module.
pub(super) struct Pages {
    /// The tree's number.
    pub id: TreeId,
    /// State that trees share.
    pub shared: Arc<TreeResources>,
    /// The part for the root. It stays on its page.
    pub root: PageId,
    /// The sizes of nodes.
    pub shape: Shape,
    longest_key: LongestKey,
    /// The parts in which room is being made.
    pub ahead: Ahead,
    /// Counts of its operations.
    pub counters: Counters,
}

impl Pages {
    /// Makes the pages of a new tree without records. Returns the root's.
    ///
    /// # Errors
    /// The pool's.
    pub fn create(pool: &Pool, shape: &Shape) -> Result<PageId, Error> {
        let (leaf, root) = (pool.reserve(shape.basement_class)?, pool.reserve(shape.part_class)?);
        let section = pool.section();
        let leaf = section.create(leaf, PageKind::Basement, false);
        let root = section.create(root, PageKind::Part, false);
        let pivots = vec![Pivot { key: Vec::new(), child: leaf.id(), weight: 1 }];
        let top = Content { level: LEVEL_MIN, pivots, ..Content::default() };
        let empty = Content::basement(Messages::default());
        let fitting = empty.fit(shape.basement_bytes()).zip(top.fit(shape.part_bytes()));
        if let Some((empty, top)) = fitting {
            part::write(leaf.page(), &empty);
            part::write(root.page(), &top);
            part::set_longest_key(root.page(), words_of(&[]));
        }
        Ok(root.id())
    }

    /// The pages of the tree with this number, and this root.
    pub fn open(id: TreeId, shared: &Arc<TreeResources>, root: PageId, shape: Shape) -> Self {
        Self {
            id,
            shared: Arc::clone(shared),
            root,
            shape,
            longest_key: LongestKey::default(),
            ahead: Ahead::default(),
            counters: Counters::default(),
        }
    }

    /// Looks at a page, which does not change, as the caller holds the mutex.
    ///
    /// # Errors
    /// The pool's; [`Error::Corrupt`] if it is of another level.
    pub fn look<T>(
        &self,
        (id, level): (PageId, u16),
        access: Access,
        look: impl Fn(Part<'_>) -> T,
    ) -> Result<(OptimisticGuard<'_>, T), Error> {
        loop {
            let guard = self.shared.pool.read(id, access)?;
            let part = Part::new(guard.page());
            let (seen, is_right) = (look(part), part.is_of_level(level));
            if guard.is_valid() {
                return if is_right { Ok((guard, seen)) } else { Err(self.damaged(id, level)) };
            }
            // It was written, or has left memory, meanwhile.
            yield_now();
        }
    }

    /// The content of a page, which does not change, as the caller holds the mutex.
    ///
    /// # Errors
    /// As [`Pages::look`].
    pub fn load(
        &self,
        id: PageId,
        level: u16,
        access: Access,
    ) -> Result<(OptimisticGuard<'_>, Content), Error> {
        let (guard, content) = self.look((id, level), access, |part| part.content())?;
        Ok((guard, content.ok_or_else(|| self.damaged(id, level))?))
    }

    /// Guards of pages that were loaded before, and have not changed since, as the caller holds the mutex:
    /// some may have left memory while it waited for memory for others.
    ///
    /// # Errors
    /// The pool's.
    pub fn fresh(&self, ids: &[PageId]) -> Result<Vec<OptimisticGuard<'_>>, Error> {
        let mut attempts = 0;
        loop {
            let guards: Vec<_> =
                ids.iter().map(|id| self.shared.pool.read(*id, Access::Normal)).collect::<Result<_, _>>()?;
            attempts += 1;
            if guards.iter().all(OptimisticGuard::is_valid) || attempts >= ATTEMPTS {
                return Ok(guards);
            }
            yield_now();
        }
    }

    /// The summary of a part, which does not change, as the caller holds the mutex.
    ///
    /// # Errors
    /// As [`Pages::look`].
    pub fn summary(&self, id: PageId, level: u16) -> Result<Summary, Error> {
        Ok(self.look((id, level), Access::Normal, |part| part.summary())?.1)
    }

    /// The level of the root's page.
    pub fn root_level(&self) -> Result<u16, Error> {
        loop {
            let guard = self.shared.pool.read(self.root, Access::Normal)?;
            let level = Part::new(guard.page()).level();
            if guard.is_valid() {
                return Ok(level.max(LEVEL_MIN));
            }
        }
    }

    pub fn write_one(&self, guard: &OptimisticGuard<'_>, content: &Fitting<'_>) -> Result<(), Denied> {
        let section = self.shared.pool.section();
        let locked = section.lock(guard)?;
        part::write(locked.page(), content);
        Ok(())
    }

    /// Writes a content into a page.
    pub fn rewrite(&self, id: PageId, content: &Fitting<'_>) -> Result<(), Error> {
        loop {
            match self.write_one(&self.fresh(&[id])?[0], content) {
                Ok(()) => return Ok(()),
                Err(denied) => self.shared.pool.images.recover(denied)?,
            }
        }
    }

    pub fn change_one(&self, guard: &OptimisticGuard<'_>, changes: &Changes) -> Result<(), Denied> {
        let section = self.shared.pool.section();
        changes.make(section.lock(guard)?.page());
        Ok(())
    }

    /// Moves messages from a part to the one of its child, in one section.
    pub fn change_both(
        &self,
        (upper, gone): (&OptimisticGuard<'_>, &Changes),
        (lower, come): (&OptimisticGuard<'_>, &Changes),
    ) -> Result<(), Denied> {
        if planted!(FlushedInTwoSections) {
            self.change_one(upper, gone)?;
            yield_now();
            return self.change_one(lower, come);
        }
        let section = self.shared.pool.section();
        let upper = section.lock(upper)?;
        let (upper, lower) = section.lock_below(upper, lower)?;
        come.make(lower.page());
        gone.make(upper.page());
        Ok(())
    }

    /// Writes a part and one of its children in one section: a checkpoint has both or neither.
    pub fn write_both(
        &self,
        (upper, rest): (&OptimisticGuard<'_>, &Fitting<'_>),
        (lower, below): (&OptimisticGuard<'_>, &Fitting<'_>),
    ) -> Result<(), Denied> {
        if planted!(FlushedInTwoSections) {
            self.write_one(upper, rest)?;
            yield_now();
            return self.write_one(lower, below);
        }
        let section = self.shared.pool.section();
        let upper = section.lock(upper)?;
        let (upper, lower) = section.lock_below(upper, lower)?;
        part::write(lower.page(), below);
        part::write(upper.page(), rest);
        Ok(())
    }

    /// Writes a part and frees the page below it, in one section.
    pub fn write_and_free(
        &self,
        (upper, content): (&OptimisticGuard<'_>, &Fitting<'_>),
        below: &OptimisticGuard<'_>,
    ) -> Result<(), Denied> {
        let section = self.shared.pool.section();
        let locked = section.lock(upper)?;
        let (locked, lower) = section.lock_below(locked, below)?;
        part::write(locked.page(), content);
        section.free(lower);
        Ok(())
    }

    /// The error for content that cannot be made smaller, and still has no room.
    #[cold]
    pub fn no_room(&self, kept: &str, bytes: u64) -> Error {
        let part_bytes = self.shape.part_bytes();
        let why = format!(
            "snapshots keep {kept}: {bytes} bytes have no room in a part of {part_bytes}; end some of them"
        );
        Error::TreeFailed { tree: self.id.0, why }
    }

    #[cold]
    pub fn damaged(&self, id: PageId, level: u16) -> Error {
        let got = self.shared.pool.resident(id).map_or_else(
            || "another page".into(),
            |guard| {
                let header = Header::of(guard.page());
                format!(
                    "kind {} of level {}, or inconsistent contents",
                    header.kind,
                    Part::new(guard.page()).level()
                )
            },
        );
        Error::Corrupt {
            what: format!("page {} of tree {}", id.0, self.id.0),
            offset_bytes: 0,
            expected: format!("kind {} of level {level}", kind_of(level) as u8),
            got,
        }
    }

    /// A content that fits into a part.
    ///
    /// # Errors
    /// [`Error::TreeFailed`]: a part has no room for it, which only happens with pages of earlier versions.
    pub fn fit<'c>(&self, content: &'c Content) -> Result<Fitting<'c>, Error> {
        content.fit(self.shape.part_bytes()).ok_or_else(|| self.no_room("a node", content.page_bytes()))
    }

    fn longest_key_bytes(&self) -> u64 {
        self.longest_key.bytes(&self.shape)
    }

    /// [`Shape::filled_bytes`] for the tree's longest key.
    pub fn filled_bytes(&self) -> u64 {
        self.shape.filled_bytes(self.longest_key_bytes())
    }

    /// As [`Shape::portion_bytes`].
    pub fn portion_bytes(&self) -> u64 {
        self.shape.portion_bytes(self.longest_key_bytes())
    }

    /// As [`Shape::must_split`].
    pub fn must_split(&self, level: u16, summary: &Summary) -> bool {
        self.shape.must_split(level, summary, self.longest_key_bytes())
    }

    /// Reads the length of the tree's longest key. The caller holds the mutex.
    ///
    /// # Errors
    /// The pool's.
    pub fn learn_longest_key(&self) -> Result<(), Error> {
        let level = self.root_level()?;
        let (_, words) = self.look((self.root, level), Access::Normal, |part| part.longest_key_words())?;
        self.longest_key.set(words);
        Ok(())
    }

    /// As [`Pages::note_key`], for the bounds of removals of ranges.
    pub fn note_bounds(&self, ranges: &RangeTombstones) -> Result<(), Error> {
        let mut bounds = ranges.fragments().iter().flat_map(|range| [&range.lower, &range.upper]);
        bounds.try_for_each(|bound| self.note_key(bound))
    }

    /// Notes the length of a key that is about to enter the root's page. The caller holds the mutex.
    ///
    /// # Errors
    /// The pool's.
    pub fn note_key(&self, key: &[u8]) -> Result<(), Error> {
        let words = words_of(key);
        let is_noted = self.longest_key.words().is_none_or(|known| u32::from(words) <= known);
        if is_noted || planted!(LongerKeyNotNoted) {
            return Ok(());
        }
        loop {
            match self.set_longest_key(words)? {
                Ok(()) => break,
                Err(denied) => self.shared.pool.images.recover(denied)?,
            }
        }
        self.longest_key.set(words);
        Ok(())
    }

    fn set_longest_key(&self, words: u16) -> Result<Result<(), Denied>, Error> {
        let root = self.fresh(&[self.root])?;
        let section = self.shared.pool.section();
        let locked = match section.lock(&root[0]) {
            Ok(locked) => locked,
            Err(denied) => return Ok(Err(denied)),
        };
        part::set_longest_key(locked.page(), words);
        Ok(Ok(()))
    }
}
