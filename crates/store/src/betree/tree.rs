//! A tree kept as a Bε-tree.
//!
//! The way of a message:
//!
//! 1. A commit puts it into the *active* memtable, the part of the root's buffer that is not in pages. It
//!    reads nothing.
//! 2. A full memtable is *frozen*, and another one becomes active. The frozen one is *flushed*: its messages
//!    go into the root's page in the order of their keys.
//! 3. Where a [part](super::part) is full, the messages for the child for which most have gathered go on into
//!    the child's parts, or into the records of the [leaf](super::basements). What
//!    [nobody will see](super::merging) is left out on the way.
//!
//! A reader looks into the memtables and then into one part on each level, and stops at the first version
//! that it sees: of a key, newer versions never lie below older ones. A message that leaves a part and
//! arrives in another one does so in one section, so that a checkpoint has it in one of them. Only memtables
//! keep what has arrived until all of it has; then a version is there twice, and the lower one counts.
//!
//! Who may change what: memtables, commits, as long as these are active. Pages, and which memtables are
//! frozen: the holder of the tree's turn.

use super::ahead::Ahead;
use super::content::{Content, Pivot, Summary};
use super::levels::LEVEL_MIN;
use super::longest_key::{LongestKey, words_of};
use super::messages::Messages;
use super::options::Decided;
use super::part::{self, Part, kind_of};
use super::progress::Progress;
use super::shape::Shape;
use super::stats::Counters;
use crate::Error;
use crate::buffered::{Cuts, Dead, Full, Join, Memtable, Memtables, Room, Shared, Trouble, Turn, Turns};
use crate::header::{Header, PageId, PageKind};
use crate::index::{TreeId, TreeOperator, Write};
use crate::log::LogRecord;
use crate::pool::{Access, OptimisticGuard, Pool};
use crate::segment::Claim;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use crate::task::yield_now;

/// Attempts after which it matters whether the store is poisoned, and nobody may change the tree any more:
/// memory may be so full that each page on the way evicts the one above it, again and again.
pub(super) const ATTEMPTS: u32 = 8;

/// The right to change pages of a tree, until this is dropped.
pub(super) struct FlushTurn<'a> {
    _own: Turn<'a>,
    _memory: Turn<'a>,
}

/// See the module.
pub(crate) struct BeTree {
    pub(super) this: Weak<Self>,
    pub(super) id: TreeId,
    pub(super) shared: Arc<Shared>,
    /// The part for the root. It stays on its page.
    pub(super) root: PageId,
    pub(super) decided: Decided,
    pub(super) shape: Shape,
    pub(super) longest_key: LongestKey,
    pub(super) operator: Option<Arc<TreeOperator>>,
    pub(super) counters: Counters,
    memtables: RwLock<Memtables>,
    /// How far the oldest frozen memtable has come.
    progress: Mutex<Progress>,
    pub(super) turns: Turns,
    pub(super) ahead: Ahead,
    pub(super) trouble: Trouble,
    /// Whether a task that flushes was sent out.
    pub(super) is_flush_sent: AtomicBool,
    /// Whether its pages are others' by now.
    pub(super) is_cleared: AtomicBool,
    /// Whether it does all that makes room.
    pub(super) is_making_room: AtomicBool,
    pub(super) cuts: Cuts,
    pub(super) dead: Dead,
    /// Room for what is in memory.
    claim: Claim,
}

impl BeTree {
    /// A new tree without records; the page by which it is found.
    ///
    /// # Errors
    /// The pool's.
    pub fn create(pool: &Pool, decided: Decided, basement_class: usize, room: Room) -> Result<PageId, Error> {
        let shape = Shape::new(decided, basement_class, room);
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

    /// The tree with this number, and this root.
    ///
    /// # Errors
    /// As [`Shape::with_parts`].
    pub fn open(
        id: TreeId,
        shared: &Arc<Shared>,
        root: PageId,
        (decided, basement_class): (Decided, usize),
        operator: Option<Arc<TreeOperator>>,
    ) -> Result<Arc<Self>, Error> {
        let room = shared.room;
        let shape = Shape::new(decided, basement_class, room);
        // The root's part has been there from the beginning.
        let shape = match shared.pool.pages.class_of(root) {
            Some(class) => shape.with_parts(class, room)?,
            None => shape,
        };
        let tree = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            id,
            shared: Arc::clone(shared),
            root,
            decided,
            shape,
            longest_key: LongestKey::default(),
            operator,
            counters: Counters::default(),
            memtables: RwLock::new(Memtables::none()),
            progress: Mutex::default(),
            turns: Turns::default(),
            ahead: Ahead::default(),
            trouble: Trouble::default(),
            is_flush_sent: AtomicBool::new(false),
            is_cleared: AtomicBool::new(false),
            is_making_room: AtomicBool::new(false),
            cuts: Cuts::default(),
            dead: Dead::default(),
            claim: shared.segments.owned.claim(),
        });
        tree.update_claim();
        Ok(tree)
    }

    /// Reserves the room that flushes need, now that memtables have changed.
    pub(super) fn update_claim(&self) {
        self.claim.set(|| {
            if self.is_cleared.load(Ordering::SeqCst) {
                return 0;
            }
            let memtables = self.memtables();
            let used_bytes = memtables.used_bytes();
            let reserved = memtables.reserve(self.shape.memtable_bytes);
            let claimed_bytes = match self.shared.segments.owned.may_grow() {
                true => reserved.iter().sum(),
                // Removals fill them, and are not refused.
                false => memtables.filled() * self.shape.memtable_bytes,
            };
            // Removals of ranges are a part of a memtable beside its records.
            debug_assert!(
                claimed_bytes + claimed_bytes / 2 >= used_bytes,
                "{claimed_bytes} bytes of room for {used_bytes}"
            );
            claimed_bytes
        });
        self.shared.flush_room.set(self.id, || {
            let is_idle = self.shared.segments.owned.may_grow() && self.memtables().filled() == 0;
            match is_idle || self.is_cleared.load(Ordering::SeqCst) {
                true => 0,
                false => self.flush_room_bytes(),
            }
        });
    }

    pub(super) fn memtables(&self) -> RwLockReadGuard<'_, Memtables> {
        self.memtables.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memtables as they are now, for a caller that may wait.
    pub(super) fn current_memtables(&self) -> Memtables {
        preempt!();
        let memtables = self.memtables().clone();
        preempt!();
        memtables
    }

    pub(super) fn memtables_mut(&self) -> RwLockWriteGuard<'_, Memtables> {
        self.memtables.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Freezes the active memtable.
    pub(super) fn freeze(&self) {
        self.memtables_mut().freeze(Memtable::none());
        self.update_claim();
    }

    /// Freezes a full memtable, unless somebody else has.
    fn replace(&self, full: &Arc<Memtable>) {
        let next = Memtable::new(&self.shared.pool, self.shape.memtable_bytes, self.shape.record_bytes_max());
        self.memtables_mut().freeze_full(full, next);
        self.update_claim();
    }

    pub(super) fn put(&self, key: &[u8], write: Write<'_>, record: LogRecord) {
        let (version, value) = write.version(record.timestamp);
        let operator = self.operator.as_deref().filter(|_| version.is_operands());
        let join = operator.map(|operator| move |lists: &[&[u8]]| operator.joined(key, lists));
        let join = join.as_ref().map(|join| join as Join<'_>);
        self.change(|memtable| memtable.put(key, version, value, record, join));
        if !version.is_tombstone() {
            self.dead.written(key);
        }
    }

    /// Changes the active memtable, or the next one if it is full.
    pub(super) fn change(&self, change: impl Fn(&Memtable) -> Result<(), Full>) {
        loop {
            // What is frozen is complete: it is frozen with no reader of this lock.
            let (changed, has_outgrown) = {
                let memtables = self.memtables();
                (memtables.change(&change), memtables.active.has_outgrown())
            };
            if has_outgrown {
                self.update_claim();
            }
            let Err(full) = changed else { return };
            self.replace(&full);
            self.send_flush();
        }
    }

    /// Waits until nobody else changes pages of the tree, and there is memory for those that are changed.
    pub(super) fn take_turn(&self) -> FlushTurn<'_> {
        let own = self.turns.take();
        FlushTurn { _own: own, _memory: self.shared.flush_memory.take_share(self.flush_bytes()) }
    }

    /// The same, unless it would have to wait.
    pub(super) fn try_take_turn(&self) -> Option<FlushTurn<'_>> {
        let own = self.turns.try_take()?;
        let memory = self.shared.flush_memory.try_take_share(self.flush_bytes())?;
        Some(FlushTurn { _own: own, _memory: memory })
    }

    /// Bytes of the pages that a flush changes in a section, with new ones, more or less.
    pub(super) fn flush_bytes(&self) -> u64 {
        // Room is made ahead in as many again.
        let more_at_once = 2 * (self.children_at_once() as u64 - 1);
        self.least_flush_bytes() + more_at_once * self.child_flush_bytes()
    }

    /// The same of a flush that makes room in one child at a time.
    pub(super) fn least_flush_bytes(&self) -> u64 {
        4 * self.shape.part_bytes() + self.leaf_batch_bytes()
    }

    /// Room for the pages that one flush changes at a time. While the device may grow, it is limited by the
    /// pages that exist and those that one part becomes: a store of few records does not grow for a flush.
    pub(super) fn flush_room_bytes(&self) -> u64 {
        let Shared { pool, segments, .. } = &*self.shared;
        if !segments.owned.may_grow() {
            return self.flush_bytes();
        }
        let present_bytes = segments.live_bytes() + pool.images.durable_dirty_bytes();
        self.flush_bytes().min(present_bytes + self.least_flush_bytes())
    }

    /// Looks at a page, which nobody changes, as the caller has the turn.
    ///
    /// # Errors
    /// The pool's; [`Error::Corrupt`] if it is of another level.
    pub(super) fn look<T>(
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

    /// What is in a page, which nobody changes, as the caller has the turn.
    ///
    /// # Errors
    /// As [`BeTree::look`].
    pub(super) fn load(
        &self,
        id: PageId,
        level: u16,
        access: Access,
    ) -> Result<(OptimisticGuard<'_>, Content), Error> {
        let (guard, content) = self.look((id, level), access, |part| part.content())?;
        Ok((guard, content.ok_or_else(|| self.damaged(id, level))?))
    }

    /// Guards of pages that were loaded before, and that nobody has changed since, as the caller has the
    /// turn: some may have left memory while it waited for memory for others.
    ///
    /// # Errors
    /// The pool's.
    pub(super) fn fresh(&self, ids: &[PageId]) -> Result<Vec<OptimisticGuard<'_>>, Error> {
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

    /// A part in short, which nobody changes, as the caller has the turn.
    ///
    /// # Errors
    /// As [`BeTree::look`].
    pub(super) fn summary(&self, id: PageId, level: u16) -> Result<Summary, Error> {
        Ok(self.look((id, level), Access::Normal, |part| part.summary())?.1)
    }

    /// Nothing smaller than this can be written, and there is no room for it.
    #[cold]
    pub(super) fn no_room(&self, what: &str, bytes: u64) -> Error {
        let part_bytes = self.shape.part_bytes();
        let why = format!(
            "snapshots keep {what}: {bytes} bytes have no room in a part of {part_bytes}; end some of them"
        );
        Error::TreeFailed { tree: self.id.0, why }
    }

    #[cold]
    pub(super) fn damaged(&self, id: PageId, level: u16) -> Error {
        let got = self.shared.pool.resident(id).map_or_else(
            || "another page".into(),
            |guard| {
                let header = Header::of(guard.page());
                format!(
                    "kind {} of level {}, or what does not add up",
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
}
