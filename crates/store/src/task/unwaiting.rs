//! Stretches of code that must not wait, watched by debug assertions.

use std::marker::PhantomData;

#[cfg(debug_assertions)]
crate::sync::per_thread! {
    static UNDER_WAY: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// While it lives, the calling task or thread must neither park nor yield. It stays on its thread, as tasks
/// switch only where they wait.
pub(crate) struct Unwaiting(PhantomData<*const ()>);

impl Unwaiting {
    #[inline]
    pub fn begin() -> Self {
        #[cfg(debug_assertions)]
        UNDER_WAY.with(|count| count.set(count.get() + 1));
        Self(PhantomData)
    }

    /// Called by everything that waits.
    #[inline]
    pub(super) fn assert_none() {
        #[cfg(debug_assertions)]
        UNDER_WAY
            .with(|count| assert_eq!(count.get(), 0, "waiting where it is forbidden, such as in a section"));
    }
}

impl Drop for Unwaiting {
    #[inline]
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        UNDER_WAY.with(|count| count.set(count.get() - 1));
    }
}
