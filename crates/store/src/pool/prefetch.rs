//! Fetching memory into the processor's cache before it is looked at.

use std::sync::atomic::AtomicU32;

#[cfg(target_arch = "x86_64")]
const CACHE_LINE_WORDS: usize = 16;

/// Begins to fetch all cache lines of `words`, side by side. Has no effect but on time, and none at all on processors other than x86-64.
#[inline]
pub(crate) fn prefetch(words: &[AtomicU32]) {
    #[cfg(target_arch = "x86_64")]
    // The words may begin anywhere in a line, and end in one more than they have strides.
    for word in words.iter().step_by(CACHE_LINE_WORDS).chain(words.last()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching reads nothing and may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = words;
}
