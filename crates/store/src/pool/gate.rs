//! Sections pass side by side; a checkpoint's cut waits until none is under way and lets none begin.
//!
//! Every thread counts its sections in a place of its own, so that sections share no cache line.

use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{Mutex, PoisonError, hint, thread};
use std::cell::Cell;

use crate::task::yield_now;

pub(super) use crate::sync::PLACES;

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The calling thread's place, below [`PLACES`].
#[inline]
pub(crate) fn own_place() -> usize {
    #[cfg(test)]
    if let Some(number) = thread::number() {
        return number % PLACES;
    }
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let place = PLACE.get();
    if place < PLACES {
        return place;
    }
    let place = NEXT.fetch_add(1, Ordering::Relaxed) % PLACES;
    PLACE.set(place);
    place
}

/// See the module.
pub(super) struct Gate {
    epoch: AtomicU32,
    closing: AtomicBool,
    inside: Box<[Inside]>,
    one_cut: Mutex<()>,
}

/// Sections under way on the threads of one place.
#[derive(Default)]
#[repr(align(128))]
struct Inside(AtomicU32);

impl Gate {
    pub fn new(epoch: u32) -> Self {
        Self {
            epoch: AtomicU32::new(epoch),
            closing: AtomicBool::new(false),
            inside: (0..PLACES).map(|_| Inside::default()).collect(),
            one_cut: Mutex::default(),
        }
    }

    /// The epoch; it does not change within a section.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Before the first section: the present epoch.
    pub fn begin_at(&self, epoch: u32) {
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Begins a section. It gives the place to [`Gate::leave`] from.
    #[inline]
    pub fn enter(&self) -> usize {
        let place = own_place();
        loop {
            // Either the cut sees this section, or this section sees the cut: both sides write first and then
            // read, in one order.
            self.inside[place].0.fetch_add(1, Ordering::SeqCst);
            if !self.closing.load(Ordering::SeqCst) {
                return place;
            }
            self.leave(place);
            while self.closing.load(Ordering::Acquire) {
                yield_now();
            }
        }
    }

    /// Ends a section.
    #[inline]
    pub fn leave(&self, place: usize) {
        self.inside[place].0.fetch_sub(1, Ordering::Release);
    }

    /// Runs `act` and begins the next epoch, with no section under way. It gives the old epoch. Sections take
    /// microseconds and never wait, so this takes no longer.
    pub fn cut(&self, act: impl FnOnce()) -> u32 {
        let _one = self.one_cut.lock().unwrap_or_else(PoisonError::into_inner);
        self.closing.store(true, Ordering::SeqCst);
        let _open_again = Opening(&self.closing);
        for inside in &self.inside {
            let mut tries = 0_u32;
            while inside.0.load(Ordering::SeqCst) != 0 {
                // The section is on another thread, which may have lost its processor.
                tries += 1;
                if tries < 100 { hint::spin_loop() } else { thread::yield_now() }
            }
        }
        act();
        self.epoch.fetch_add(1, Ordering::AcqRel)
    }
}

struct Opening<'a>(&'a AtomicBool);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
