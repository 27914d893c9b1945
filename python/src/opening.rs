//! One opening of a store, and the handles that end with it.
//!
//! 1. A store's files stay locked as long as any object of it is alive, and Python keeps objects for longer
//!    than programmers expect. Therefore each object is in a slot, and closing the store empties all slots.
//! 2. A slot is only locked without the interpreter lock, and the interpreter lock is never taken with a slot
//!    locked: threads cannot wait for each other in a circle.
//! 3. A forked child refuses before it touches any lock, as the thread that holds it may not exist there.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use flashgrain::{Db, Error};
use flashgrain_device::Origin;
use pyo3::prelude::*;

use crate::errors;

/// An object of a store, until the store is closed.
type Slot<T> = Arc<RwLock<Option<T>>>;

/// Something that ends with its store.
trait Ends: Send + Sync {
    fn end(&self);
}

impl<T: Send + Sync> Ends for RwLock<Option<T>> {
    fn end(&self) {
        let taken = self.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(taken);
    }
}

/// The slots of an opening that are still alive, and the number at which dead ones are looked for.
#[derive(Default)]
struct Slots {
    all: Vec<Weak<dyn Ends>>,
    swept_at: usize,
    /// The store is closed: whatever comes now has ended.
    is_closed: bool,
}

/// One opening of a store.
pub struct Opening {
    origin: Origin,
    slots: Mutex<Slots>,
}

impl Opening {
    /// A store that was just opened.
    pub fn of(db: Db) -> Handle<Db> {
        let opening = Arc::new(Self { origin: Origin::here(), slots: Mutex::default() });
        opening.handle(db)
    }

    fn handle<T: Send + Sync + 'static>(self: &Arc<Self>, object: T) -> Handle<T> {
        let slot: Slot<T> = Arc::new(RwLock::new(Some(object)));
        let as_ends: Arc<dyn Ends> = slot.clone();
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.is_closed {
            as_ends.end();
        }
        if slots.all.len() >= slots.swept_at {
            slots.all.retain(|slot| slot.strong_count() > 0);
            slots.swept_at = 2 * slots.all.len().max(32);
        }
        slots.all.push(Arc::downgrade(&as_ends));
        Handle { opening: Arc::clone(self), slot }
    }

    fn end_all(&self) {
        let all = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.is_closed = true;
            std::mem::take(&mut slots.all)
        };
        all.iter().filter_map(Weak::upgrade).for_each(|slot| slot.end());
    }
}

/// The way to an object of a store.
pub struct Handle<T> {
    opening: Arc<Opening>,
    slot: Slot<T>,
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self { opening: Arc::clone(&self.opening), slot: Arc::clone(&self.slot) }
    }
}

impl<T: Send + Sync + 'static> Handle<T> {
    /// A handle of something of the same store.
    pub fn sibling<U: Send + Sync + 'static>(&self, object: U) -> Handle<U> {
        self.opening.handle(object)
    }

    /// Runs `work` without the interpreter lock, unless this process was forked.
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        if !self.opening.origin.is_here() {
            return Err(errors::of_store(py, &Error::Forked));
        }
        py.detach(work).map_err(|error| errors::of_store(py, &error))
    }

    /// Uses the object, which other threads may use meanwhile.
    ///
    /// # Errors
    /// `ForkedError`, `ClosedError`, and those of `work`.
    pub fn read<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        self.detached(py, || self.borrowed(work))
    }

    /// Uses the object alone.
    ///
    /// # Errors
    /// As [`Handle::read`].
    pub fn write<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        self.detached(py, || {
            let mut slot = self.slot.write().unwrap_or_else(PoisonError::into_inner);
            work(slot.as_mut().ok_or(Error::Closed)?)
        })
    }

    /// Takes the object out, and uses it up.
    ///
    /// # Errors
    /// As [`Handle::read`].
    pub fn take<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(T) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        self.detached(py, || {
            let taken = self.slot.write().unwrap_or_else(PoisonError::into_inner).take();
            work(taken.ok_or(Error::Closed)?)
        })
    }

    /// Uses the object within the work of another handle of the same store, where the interpreter lock is
    /// released already.
    ///
    /// # Errors
    /// [`Error::Closed`], and those of `work`.
    pub fn borrowed<R>(&self, work: impl FnOnce(&T) -> Result<R, Error>) -> Result<R, Error> {
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        work(slot.as_ref().ok_or(Error::Closed)?)
    }

    /// Whether the object has ended. A forked child's handles have.
    pub fn has_ended(&self, py: Python<'_>) -> bool {
        self.read(py, |_| Ok(())).is_err()
    }
}

impl Handle<Db> {
    /// Closes the store, and ends all its objects. Closing it again does nothing.
    ///
    /// # Errors
    /// `ForkedError`; `PoisonedError` and `DeviceError` if the store opens as after a crash.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, || {
            let taken = self.slot.write().unwrap_or_else(PoisonError::into_inner).take();
            let closed = taken.map_or(Ok(()), Db::close);
            self.opening.end_all();
            closed
        })
    }
}
