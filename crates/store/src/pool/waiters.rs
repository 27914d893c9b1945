//! Waiters for pages that are being loaded, and for memory.
//!
//! Ending a wait costs one load of a counter if the queue is empty.

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Mutex, PoisonError};
use std::collections::VecDeque;

use crate::task::{Waker, waker};

/// A queue of waiters, each with the key of the resource that it waits for.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Waiters {
    count: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// The waiters, the longest first.
    places: VecDeque<Waiting>,
    /// Places given out so far.
    given: u64,
}

struct Waiting {
    key: u64,
    number: u64,
    waker: Waker,
}

/// A place in the queue, until this is dropped or its owner woken. One that stayed in the queue would take
/// the wake-up of another waiter.
#[must_use = "a waiter without a place is not woken"]
pub(super) struct WaitTicket<'a> {
    waiters: &'a Waiters,
    number: u64,
}

impl Drop for WaitTicket<'_> {
    fn drop(&mut self) {
        if self.waiters.count.load(Ordering::Relaxed) > 0 {
            self.waiters.take(|waiting| waiting.number == self.number);
        }
    }
}

/// To be called between a change and waking its waiters: either a waiter is seen in the queue, or it sees the
/// change.
#[inline]
pub(super) fn changed() {
    fence(Ordering::SeqCst);
}

impl Waiters {
    /// Puts the caller into the queue. It must check its condition once more before it parks: from now on
    /// every change wakes it.
    pub fn enter(&self, key: u64) -> WaitTicket<'_> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.given += 1;
        let number = queue.given;
        queue.places.push_back(Waiting { key, number, waker: waker() });
        self.count.store(queue.places.len(), Ordering::Relaxed);
        drop(queue);
        fence(Ordering::SeqCst);
        WaitTicket { waiters: self, number }
    }

    /// Whether the queue has a waiter.
    #[cfg(test)]
    pub fn is_awaited(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Wakes all waiters for `key`, after a change and [`changed`].
    #[inline]
    pub fn wake_all(&self, key: u64) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.wake(key, usize::MAX);
        }
    }

    /// Wakes the one that has waited for `key` longest, after a change and [`changed`].
    #[inline]
    pub fn wake_one(&self, key: u64) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.wake(key, 1);
        }
    }

    #[cold]
    fn wake(&self, key: u64, most: usize) {
        for _ in 0..most {
            let Some(first) = self.take(|waiting| waiting.key == key) else { return };
            first.waker.wake();
        }
    }

    /// Takes the first waiter that is meant out of the queue.
    fn take(&self, is_meant: impl Fn(&Waiting) -> bool) -> Option<Waiting> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let index = queue.places.iter().position(is_meant)?;
        let taken = queue.places.remove(index);
        self.count.store(queue.places.len(), Ordering::Relaxed);
        taken
    }
}
