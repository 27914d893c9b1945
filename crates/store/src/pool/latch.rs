//! A version latch: readers read the page without it and validate afterwards; a writer holds it exclusively.
//!
//! It is never held during I/O, so it is held for microseconds; a caller that finds it taken lets others run
//! and starts over.

use crate::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(test)]
use crate::task::yield_now;

/// The lowest bit says whether a writer has it; the others count writers.
#[derive(Debug, Default)]
pub(crate) struct Latch(AtomicU64);

/// Version of a latch, read before the data and validated after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64);

const WRITER: u64 = 1;

impl Version {
    /// The version after the next writer that changes something.
    pub fn next(self) -> Self {
        Self(self.0 + 2 * WRITER)
    }
}

impl Latch {
    /// The version to read under; waits for a writer to finish.
    #[cfg(test)]
    #[inline]
    pub fn read(&self) -> Version {
        loop {
            let version = self.0.load(Ordering::Acquire);
            if version & WRITER == 0 {
                return Version(version);
            }
            yield_now();
        }
    }

    /// The version to read under, if no writer has it.
    #[inline]
    pub fn try_read(&self) -> Option<Version> {
        let version = self.0.load(Ordering::Acquire);
        (version & WRITER == 0).then_some(Version(version))
    }

    /// Whether all that was read since `version` was read was whole.
    #[inline]
    pub fn is_valid(&self, version: Version) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == version.0
    }

    /// Takes the latch if nothing has changed since `version`.
    #[inline]
    pub fn try_upgrade(&self, version: Version) -> bool {
        let taken = self
            .0
            .compare_exchange(version.0, version.0 | WRITER, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if taken {
            // Acquiring keeps the writer's accesses from moving up to before the exchange is read, but not to
            // before it is written: a reader could see the first changes and still find the old version
            // (Boehm, "Can Seqlocks Get Along With Programming Language Memory Models?", 2012). It meets the
            // fence of `is_valid`.
            fence(Ordering::Release);
        }
        taken
    }

    /// Takes the latch if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        let version = self.0.load(Ordering::Relaxed);
        version & WRITER == 0 && self.try_upgrade(Version(version))
    }

    /// Takes the latch.
    #[cfg(test)]
    pub fn lock(&self) {
        while !self.try_lock() {
            yield_now();
        }
    }

    /// Gives the latch back; readers since it was taken start over.
    #[inline]
    pub fn unlock(&self) {
        let version = self.0.load(Ordering::Relaxed);
        debug_assert!(version & WRITER != 0, "a latch that is not held");
        self.0.store(version + WRITER, Ordering::Release);
    }

    /// Gives back a latch under which nothing was changed; readers go on.
    #[inline]
    pub fn unlock_unchanged(&self) {
        let version = self.0.load(Ordering::Relaxed);
        debug_assert!(version & WRITER != 0, "a latch that is not held");
        self.0.store(version & !WRITER, Ordering::Release);
    }
}
