//! Where changes are announced: a unit was written, or a segment became free.
//!
//! Tasks wait for changes. The [upkeep](super::upkeep) looks at them, too; it is above the parts that
//! announce them, and known to them only as an [`Observer`].

use crate::Error;
use crate::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use crate::task::{Waker, park, waker};

/// Looks after the free segments. Neither function waits.
pub(super) trait Observer: Send + Sync {
    /// Segments are used otherwise than before.
    fn segments_changed(&self);

    /// A unit is on the device.
    fn unit_written(&self);
}

/// See the module.
#[derive(Default)]
pub(super) struct Changes {
    waiting: Mutex<Vec<Waker>>,
    observer: OnceLock<Weak<dyn Observer>>,
}

impl Changes {
    /// Sets the observer. To be called once.
    pub fn set_observer(&self, observer: Weak<dyn Observer>) {
        let _first_stays = self.observer.set(observer);
    }

    fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.observer.get()?.upgrade()
    }

    /// Has the free segments looked after.
    pub fn segments_changed(&self) {
        if let Some(observer) = self.observer() {
            observer.segments_changed();
        }
    }

    /// A unit is on the device: has the free segments looked after if they are few.
    pub fn unit_written(&self) {
        if let Some(observer) = self.observer() {
            observer.unit_written();
        }
    }

    /// Makes all callers of [`Changes::wait_until`] check again.
    pub fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for waiter in waiting {
            waiter.wake();
        }
    }

    /// Waits until `done`, which is looked at whenever a unit was written or a segment became free.
    pub fn wait_until(&self, mut done: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
        while !done()? {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waker());
            if done()? {
                break;
            }
            park();
        }
        Ok(())
    }
}
