//! Assertions that tasks make progress: in tests, endless recursion or an endless loop is a panic with a
//! reason, not a signal or a test that hangs.

use std::cell::Cell;

/// Bytes of its stack that a task has left whenever it looks at a page. All that a task calls between two
/// pages takes less.
const STACK_LEFT_BYTES: usize = 48 << 10;

/// Pages that a task looks at before it parks, yields or ends, at most. Merges and checks take some ten
/// thousand.
const PAGES_MAX: u64 = 2_000_000;

thread_local! {
    /// Address below the stack of the task that runs, and pages that it has looked at since it was resumed.
    static RUNNING: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// A task whose stack ends at `limit` runs from now on; with 0, none does.
pub(super) fn begin(limit: usize) {
    RUNNING.set((limit, 0));
}

/// A task looks at a page.
#[inline]
pub(crate) fn step() {
    let (limit, pages) = RUNNING.get();
    if limit == 0 {
        return;
    }
    let here = 0_u8;
    let here = std::ptr::from_ref(&here).addr();
    assert!(here.saturating_sub(limit) > STACK_LEFT_BYTES, "a task's calls are too deep");
    assert!(pages < PAGES_MAX, "a task has looked at {pages} pages and never waited");
    RUNNING.set((limit, pages + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_recurses_or_loops_without_end_panics() {
        let here = 0_u8;
        let here = std::ptr::from_ref(&here).addr();
        begin(here - 2 * STACK_LEFT_BYTES);
        step();
        RUNNING.set((here - 2 * STACK_LEFT_BYTES, PAGES_MAX));
        assert!(std::panic::catch_unwind(step).is_err());
        begin(here - STACK_LEFT_BYTES / 2);
        assert!(std::panic::catch_unwind(step).is_err());
        begin(0);
        step();
    }
}
