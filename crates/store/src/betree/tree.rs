//! A tree kept as a Bε-tree.
//!
//! The way of a message:
//!
//! 1. A commit puts it into the *active* memtable, the part of the root's buffer that is not in pages. It
//!    reads nothing.
//! 2. A full memtable is *frozen*, and another one becomes active. The frozen one is *flushed*: its messages
//!    go into the root's page in the order of their keys.
//! 3. If a [part](super::part) is full, the messages for the child that has the most of them go on into the
//!    child's parts, or into the records of the [leaf](super::basements). Versions that
//!    [no reader will see](super::merging) are left out on the way.
//!
//! A reader looks into the memtables and then into one part on each level, and stops at the first version
//! that it sees: of a key, newer versions never lie below older ones. A message that leaves a part and
//! arrives in another one does so in one section, so that a checkpoint has it in one of them. Only memtables
//! keep their messages until all of them have arrived; until then a version may exist twice, and the lower
//! one counts.
//!
//! Commits change memtables, as long as these are active. Only the holder of the tree's mutex changes pages
//! and the list of frozen memtables.

use super::options::Decided;
use super::pages::Pages;
use super::progress::Progress;
use crate::Error;
use crate::buffered::{
    Cuts, Dead, Full, Join, Memtable, Memtables, Permits, Room, Semaphore, TreeResources, Trouble,
};
use crate::header::PageId;
use crate::index::{TreeId, TreeOperator, Write};
use crate::log::LogRecord;
use crate::pool::Pool;
use crate::segment::Reservation;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

/// The right to change pages of a tree, until this is dropped.
pub(super) struct FlushPermits<'a> {
    _own: Permits<'a>,
    _memory: Permits<'a>,
}

/// See the module.
pub(crate) struct BeTree {
    pub(super) this: Weak<Self>,
    pub(super) shared: Arc<TreeResources>,
    pub(super) pages: Pages,
    pub(super) decided: Decided,
    pub(super) operator: Option<Arc<TreeOperator>>,
    memtables: RwLock<Memtables>,
    /// The progress of the oldest frozen memtable's flush.
    progress: Mutex<Progress>,
    pub(super) page_changes: Semaphore,
    pub(super) trouble: Trouble,
    /// Whether a flush task was started that has not begun.
    pub(super) is_flush_sent: AtomicBool,
    /// Whether its pages may have been reassigned.
    pub(super) is_cleared: AtomicBool,
    /// Whether a background task makes room at present.
    pub(super) is_making_room: AtomicBool,
    pub(super) cuts: Cuts,
    pub(super) dead: Dead,
    /// Room for the messages in memory.
    reservation: Reservation,
}

impl BeTree {
    /// Makes a new tree without records. Returns its root page.
    ///
    /// # Errors
    /// The pool's.
    pub fn create(pool: &Pool, decided: Decided, basement_class: usize, room: Room) -> Result<PageId, Error> {
        Pages::create(pool, &decided.shape(basement_class, room))
    }

    /// The tree with this number, and this root.
    ///
    /// # Errors
    /// As [`Shape::with_parts`].
    pub fn open(
        id: TreeId,
        shared: &Arc<TreeResources>,
        root: PageId,
        (decided, basement_class): (Decided, usize),
        operator: Option<Arc<TreeOperator>>,
    ) -> Result<Arc<Self>, Error> {
        let room = shared.room;
        let shape = decided.shape(basement_class, room);
        // The root's part has been there from the beginning.
        let shape = match shared.pool.pages.class_of(root) {
            Some(class) => shape.with_parts(class, room)?,
            None => shape,
        };
        let tree = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            shared: Arc::clone(shared),
            pages: Pages::open(id, shared, root, shape),
            decided,
            operator,
            memtables: RwLock::new(Memtables::none()),
            progress: Mutex::default(),
            page_changes: Semaphore::default(),
            trouble: Trouble::default(),
            is_flush_sent: AtomicBool::new(false),
            is_cleared: AtomicBool::new(false),
            is_making_room: AtomicBool::new(false),
            cuts: Cuts::default(),
            dead: Dead::default(),
            reservation: shared.segments.owned.reservation(),
        });
        tree.update_reservation();
        Ok(tree)
    }

    /// Reserves the room that flushes need, now that memtables have changed.
    pub(super) fn update_reservation(&self) {
        self.reservation.set(|| {
            if self.is_cleared.load(Ordering::SeqCst) {
                return 0;
            }
            let memtables = self.memtables();
            let used_bytes = memtables.used_bytes();
            let reserved = memtables.reserve(self.pages.shape.memtable_bytes);
            let reserved_bytes = match self.shared.segments.owned.may_grow() {
                true => reserved.iter().sum(),
                // Removals fill them, and are not refused.
                false => memtables.filled() * self.pages.shape.memtable_bytes,
            };
            // Removals of ranges take memory in addition to a memtable's records.
            debug_assert!(
                reserved_bytes + reserved_bytes / 2 >= used_bytes,
                "{reserved_bytes} bytes of room for {used_bytes}"
            );
            reserved_bytes
        });
        self.shared.flush_room.set(self.pages.id, || {
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
        self.update_reservation();
    }

    /// Freezes a full memtable, unless another thread has.
    fn replace(&self, full: &Arc<Memtable>) {
        let next = Memtable::new(
            &self.shared.pool,
            self.pages.shape.memtable_bytes,
            self.pages.shape.record_bytes_max(),
        );
        self.memtables_mut().freeze_full(full, next);
        self.update_reservation();
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
            // A frozen memtable is complete: it is frozen with no reader of this lock.
            let (changed, has_outgrown) = {
                let memtables = self.memtables();
                (memtables.change(&change), memtables.active.has_outgrown())
            };
            if has_outgrown {
                self.update_reservation();
            }
            let Err(full) = changed else { return };
            self.replace(&full);
            self.send_flush();
        }
    }

    /// Waits for the tree's mutex, and for memory for the pages that a flush changes.
    pub(super) fn acquire_flush(&self) -> FlushPermits<'_> {
        let own = self.page_changes.acquire_all();
        FlushPermits { _own: own, _memory: self.shared.flush_memory.acquire(self.flush_bytes()) }
    }

    /// The same, unless it would have to wait.
    pub(super) fn try_acquire_flush(&self) -> Option<FlushPermits<'_>> {
        let own = self.page_changes.try_acquire_all()?;
        let memory = self.shared.flush_memory.try_acquire(self.flush_bytes())?;
        Some(FlushPermits { _own: own, _memory: memory })
    }

    /// About the bytes of the pages that a flush changes in a section, with new ones.
    pub(super) fn flush_bytes(&self) -> u64 {
        // Room is made ahead in that number of children, too.
        let more_at_once = 2 * (self.children_at_once() as u64 - 1);
        self.least_flush_bytes() + more_at_once * self.child_flush_bytes()
    }

    /// The same for a flush that makes room in one child at a time.
    pub(super) fn least_flush_bytes(&self) -> u64 {
        4 * self.pages.shape.part_bytes() + self.leaf_batch_bytes()
    }

    /// Room for the pages that one flush changes at a time. While the device may grow, it is limited by the
    /// pages that exist and those that one part becomes: a store of few records does not grow for a flush.
    pub(super) fn flush_room_bytes(&self) -> u64 {
        let TreeResources { pool, segments, .. } = &*self.shared;
        if !segments.owned.may_grow() {
            return self.flush_bytes();
        }
        let present_bytes = segments.live_bytes() + pool.images.durable_dirty_bytes();
        self.flush_bytes().min(present_bytes + self.least_flush_bytes())
    }
}
