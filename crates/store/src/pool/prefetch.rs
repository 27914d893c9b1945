//! Fetching memory into the processor's cache before it is looked at.

use std::ops::Range;
use std::sync::atomic::AtomicU32;

const CACHE_LINE_BYTES: usize = 64;

/// Begins to fetch all cache lines of `words`, side by side. It has no effect but on time, and none at all on
/// processors other than x86-64.
#[inline]
pub(crate) fn prefetch(words: &[AtomicU32]) {
    let Range { start, end } = words.as_ptr_range();
    let mut line = start.cast::<u8>();
    while line < end.cast() {
        prefetch_line(line);
        line = line.wrapping_add(CACHE_LINE_BYTES - line as usize % CACHE_LINE_BYTES);
    }
}

/// The same for the line where `what` begins.
#[inline]
pub(super) fn prefetch_line<T>(what: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching reads nothing and may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(what.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}
