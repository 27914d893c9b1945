//! The buffer pool: pages in memory, within a hard budget.
//!
//! The page table has one word per page that says where the page is: in which frame, or where on the device. So a look-up of a resident page is one load, a page fault is one
//! compare-and-swap, and no page needs to know who refers to it (vmcache, instead of swizzled pointers with parent pointers).
//!
//! How to read: [`Pool::read`] a page, look at it, and [`Seen::is_still`] before believing anything. How to change: reserve what new pages need, [`Pool::section`], [`Section::lock`] what was read, change it, drop the
//! section. A section never waits: no parking, no yielding, no I/O within; a debug assertion watches. A checkpoint's cut falls between sections, so what one section changes is in a checkpoint as a whole or not at all.

mod frames;
mod latch;

use std::marker::PhantomData;

use crate::Error;
use crate::header::{PageId, PageKind};
use crate::page::Page;
pub(crate) use frames::{CLASSES, Frame, Frames, Meta, class_bytes};
pub(crate) use latch::{Latch, Version};

/// How a page is going to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Probably again.
    Normal,
    /// Once: it may leave memory right away.
    Scan,
}

/// Counts checkpoints' cuts. A page's changes belong to the epoch in which they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(pub u32);

/// See the module.
pub(crate) struct Pool {}

/// A page that was resident when it was looked at.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pool: &'a Pool,
    id: PageId,
    frame: Frame,
    version: Version,
}

impl<'a> Seen<'a> {
    /// Its bytes, which may change and become another page's at any time.
    pub fn page(&self) -> Page<'a> {
        todo!()
    }

    pub fn id(&self) -> PageId {
        self.id
    }

    /// Whether all that was read of it so far was whole and is still current.
    pub fn is_still(&self) -> bool {
        todo!()
    }
}

/// Memory for a new page.
pub(crate) struct Reserved<'a> {
    pool: &'a Pool,
}

/// A change of one or several pages that a checkpoint sees as a whole or not at all. Not `Send`; at most one per task.
pub(crate) struct Section<'a> {
    pool: &'a Pool,
    _not_send: PhantomData<*const ()>,
}

/// A page to which the section has the latch, and which it may change.
pub(crate) struct Locked<'s> {
    pool: &'s Pool,
    frame: Frame,
}

/// Why a page could not be locked.
#[derive(Debug)]
pub(crate) enum Denied {
    /// It has changed since it was read: start over.
    Changed,
    /// Its old state must be written first and there is no buffer for that: drop the section, call [`Pool::wait_for_room`], start over.
    NoRoom,
    /// The store is poisoned.
    Failed(Error),
}

impl Pool {
    /// The page, loaded if need be (parks, then). Restarts inside until it was resident once.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`]; `Corrupt` also if there is no such page (a stale id read optimistically is possible: callers check their parent first and start over).
    pub fn read(&self, _id: PageId, _access: Access) -> Result<Seen<'_>, Error> {
        todo!()
    }

    /// Begins to load a page in the background, if it is not resident.
    pub fn prefetch(&self, _id: PageId) {
        todo!()
    }

    /// Memory for a new page of `class`; parks until there is some.
    pub fn reserve(&self, _class: usize) -> Result<Reserved<'_>, Error> {
        todo!()
    }

    /// Begins a change.
    pub fn section(&self) -> Section<'_> {
        todo!()
    }

    /// After [`Denied::NoRoom`].
    pub fn wait_for_room(&self) -> Result<(), Error> {
        todo!()
    }
}

impl<'a> Section<'a> {
    /// Takes the latch of a page if nobody has changed it since it was seen, and makes it ready to be changed: dirty in this epoch, its state of an older one kept.
    pub fn lock(&self, _seen: &Seen<'a>) -> Result<Locked<'_>, Denied> {
        todo!()
    }

    /// Makes a new page, all zeros but its header. Volatile pages are not part of checkpoints.
    pub fn create(&self, _memory: Reserved<'a>, _kind: PageKind, _volatile: bool) -> Locked<'_> {
        todo!()
    }

    /// The page does not exist any longer.
    pub fn free(&self, _page: Locked<'_>) {
        todo!()
    }
}

impl Locked<'_> {
    /// Its bytes.
    pub fn page(&self) -> Page<'_> {
        todo!()
    }

    pub fn id(&self) -> PageId {
        todo!()
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        todo!()
    }
}
