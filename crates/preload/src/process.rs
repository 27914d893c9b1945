//! The process that runs, and the one whose memory this is.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

/// The process whose memory this is.
static OWN: AtomicI32 = AtomicI32::new(0);

/// The process that runs.
pub fn current() -> c_int {
    // SAFETY: it has no arguments.
    unsafe { libc::getpid() }
}

/// The process that runs has this memory for itself: it has just begun, or been forked.
pub fn note_own_memory() {
    OWN.store(current(), Ordering::Relaxed);
}

/// Whether the process that runs is the one whose memory this is.
pub fn is_own_memory() -> bool {
    current() == OWN.load(Ordering::Relaxed)
}
