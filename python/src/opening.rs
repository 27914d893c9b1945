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

use crate::ended::{Ended, Failure};
use crate::errors;

/// An object of a store until it ends, and the reason afterwards.
type State<T> = Result<T, Ended>;
type Slot<T> = Arc<RwLock<State<T>>>;

/// Something that ends with its store.
trait Ends: Send + Sync {
    fn end(&self);
}

impl<T: Send + Sync> Ends for RwLock<State<T>> {
    fn end(&self) {
        drop(taken(self, Ended::Store));
    }
}

/// Takes the object out of its slot, which says from then on how it ended; the first reason stays.
fn taken<T>(slot: &RwLock<State<T>>, how: Ended) -> State<T> {
    let mut state = slot.write().unwrap_or_else(PoisonError::into_inner);
    let left = Err(state.as_ref().err().copied().unwrap_or(how));
    std::mem::replace(&mut *state, left)
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
        let slot: Slot<T> = Arc::new(RwLock::new(Ok(object)));
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
        work: impl FnOnce() -> Result<R, Failure> + Send,
    ) -> PyResult<R> {
        if !self.opening.origin.is_here() {
            return Err(errors::of_store(py, &Error::Forked));
        }
        let outcome = py.detach(work);
        outcome.map_err(|failure| errors::of_failure(py, &failure))
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
        self.read_within(py, |object| Ok(work(object)?))
    }

    /// The same for work that uses other objects of the store.
    ///
    /// # Errors
    /// As [`Handle::read`].
    pub fn read_within<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> Result<R, Failure> + Send,
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
        work: impl FnOnce(&mut T) -> Result<R, Failure> + Send,
    ) -> PyResult<R> {
        self.detached(py, || {
            let mut slot = self.slot.write().unwrap_or_else(PoisonError::into_inner);
            match &mut *slot {
                Ok(object) => work(object),
                Err(ended) => Err((*ended).into()),
            }
        })
    }

    /// Takes the object out, and uses it up: it has ended in the way of `how`, or of `failed` if the work
    /// fails.
    ///
    /// # Errors
    /// As [`Handle::read`].
    pub fn take<R: Send>(
        &self,
        py: Python<'_>,
        (how, failed): (Ended, Ended),
        work: impl FnOnce(T) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        self.detached(py, || {
            let done = work(taken(&self.slot, how)?);
            if done.is_err() {
                *self.slot.write().unwrap_or_else(PoisonError::into_inner) = Err(failed);
            }
            Ok(done?)
        })
    }

    /// Ends the object; nothing if it has ended, or is of the process that this one was forked from.
    pub fn end(&self, py: Python<'_>, how: Ended) {
        if self.opening.origin.is_here() {
            py.detach(|| drop(taken(&self.slot, how)));
        }
    }

    /// Uses the object within the work of another handle of the same store, where the interpreter lock is
    /// released already.
    ///
    /// # Errors
    /// [`Failure::Ended`], and those of `work`.
    pub fn borrowed<R, E: Into<Failure>>(&self, work: impl FnOnce(&T) -> Result<R, E>) -> Result<R, Failure> {
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Ok(object) => work(object).map_err(Into::into),
            Err(ended) => Err((*ended).into()),
        }
    }

    /// Refuses an object that has ended.
    ///
    /// # Errors
    /// `ForkedError`, `ClosedError`.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.read(py, |_| Ok(()))
    }

    /// Whether the object has ended other than with its store. A forked child does not know.
    pub fn has_ended_alone(&self, py: Python<'_>) -> bool {
        let ended = || {
            let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
            slot.as_ref().is_err_and(|ended| *ended != Ended::Store)
        };
        self.opening.origin.is_here() && py.detach(ended)
    }
}

impl Handle<Db> {
    /// Closes the store, and ends all its objects. Closing it again does nothing.
    ///
    /// # Errors
    /// `ForkedError`; `PoisonedError` and `DeviceError` if the store opens as after a crash.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, || {
            let closed = taken(&self.slot, Ended::Store).map_or(Ok(()), Db::close);
            self.opening.end_all();
            Ok(closed?)
        })
    }
}
