//! Who waits for a page that is being loaded, or for memory.
//!
//! Whoever ends the wait looks at a counter only, unless somebody waits.

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Mutex, PoisonError};
use std::collections::VecDeque;

use crate::task::{Waker, waker};

/// A queue of those who wait for something, with a key that says for what.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Waiters {
    count: AtomicUsize,
    queue: Mutex<VecDeque<(u64, Waker)>>,
}

/// To be called between a change and waking those who wait for it: either they are seen waiting, or they see the change.
#[inline]
pub(super) fn changed() {
    fence(Ordering::SeqCst);
}

impl Waiters {
    /// Puts the caller into the queue. He must look again at what he waits for before he parks: from now on every change of it wakes him.
    pub fn enter(&self, key: u64) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back((key, waker()));
        self.count.store(queue.len(), Ordering::Relaxed);
        drop(queue);
        fence(Ordering::SeqCst);
    }

    /// Wakes all who wait for `key`, after a change and [`changed`].
    #[inline]
    pub fn wake_all(&self, key: u64) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.wake(key, usize::MAX);
        }
    }

    /// Wakes the one who has waited for `key` longest, after a change and [`changed`].
    #[inline]
    pub fn wake_one(&self, key: u64) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.wake(key, 1);
        }
    }

    #[cold]
    fn wake(&self, key: u64, most: usize) {
        let mut left = most;
        while left > 0 {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(index) = queue.iter().position(|(waits_for, _)| *waits_for == key) else { return };
            let found = queue.remove(index);
            self.count.store(queue.len(), Ordering::Relaxed);
            drop(queue);
            if let Some((_, waker)) = found {
                waker.wake();
            }
            left -= 1;
        }
    }
}
