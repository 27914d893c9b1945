//! Records the process that owns a handle, for the price of one memory access: a forked child has copies of
//! all handles of its parent, and shares its parent's files, queues and locks. It must use none of them.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Forks between the process that began all and this one: a child's count differs from its parent's, its own
/// children's from both.
static FORKS: AtomicU32 = AtomicU32::new(0);

static WATCHED: Once = Once::new();

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> libc::c_int;
}

/// Runs in every child, before anything else does. Only operations that are safe in a signal handler may be
/// done here.
unsafe extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process that something was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u32);

impl Origin {
    /// This process.
    pub fn here() -> Self {
        WATCHED.call_once(|| {
            // SAFETY: registers a handler that only counts an atomic up. Without memory for it, children are
            // not told apart, as before.
            unsafe { pthread_atfork(None, None, Some(in_child)) };
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is still that process, and not a forked child of it.
    #[inline]
    pub fn is_here(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}
