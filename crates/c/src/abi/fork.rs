//! Forks since a store was opened. Asking for the process's number would be a call of the system for each
//! record of an iterator.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// The forks between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: Once = Once::new();

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A number that differs between a process and the children that it forks from now on.
pub fn generation() -> u32 {
    WATCHED.call_once(|| {
        // SAFETY: registers a handler that only counts an atomic up. Without memory for it, the store's own
        // checks remain.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    current()
}

/// The generation of this process.
pub fn current() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
