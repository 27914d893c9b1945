//! Steps: versions that the calling thread has put into memtables, or has looked at there and in scans.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Those of the calling thread so far.
pub fn steps() -> u64 {
    STEPS.get()
}

pub(crate) fn count_step() {
    STEPS.set(STEPS.get() + 1);
}
