//! An allocator that refuses sizes which no decoder of a few kilobytes should ask for. A refusal ends the
//! process, as unwinding out of an allocator is not allowed; before that, the allocator prints the number of
//! the case.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Write, stderr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The most for one allocation: caches of the smallest stores have a few megabytes.
const LIMIT_BYTES: usize = 256 << 20;

static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
static CASE: AtomicU64 = AtomicU64::new(0);

struct Limited;

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// From now on no allocation is longer than 256 MiB.
pub fn limit() {
    LIMIT.store(LIMIT_BYTES, Ordering::Relaxed);
}

/// Notes the number of the current case, for the message.
pub fn note_case(case: u64) {
    CASE.store(case, Ordering::Relaxed);
}

fn check(bytes: usize) {
    let limit_bytes = LIMIT.load(Ordering::Relaxed);
    if bytes > limit_bytes {
        // Only once, so that printing may allocate.
        LIMIT.store(usize::MAX, Ordering::Relaxed);
        let case = CASE.load(Ordering::Relaxed);
        // Written to standard error directly, because tests capture printed text.
        let _told =
            writeln!(stderr(), "case {case}: an allocation of {bytes} bytes, allowed are {limit_bytes}");
        std::process::abort();
    }
}

// SAFETY: the system's allocator, asked for the same; nothing here unwinds.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: passed on from the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: passed on from the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        check(new_size);
        // SAFETY: passed on from the caller.
        unsafe { System.realloc(memory, layout, new_size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: passed on from the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}
