//! Limits that little work reaches: memtables that are frozen before they are full, commits that are staged
//! although they have few writes.

use std::cell::Cell;
use std::marker::PhantomData;

/// Limits of the calling thread's stores; without one of them it is the usual one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Early {
    /// One change of a memtable in this number finds it full.
    pub memtable_full_one_in: Option<u32>,
    /// Number of writes of a commit to one tree that has them staged.
    pub staged_writes: Option<usize>,
}

thread_local! {
    static LIMITS: Cell<Option<(Early, u64)>> = const { Cell::new(None) };
}

/// The calling thread's stores have these limits until the result is dropped. Memtables are frozen at changes
/// that are drawn from `seed`.
pub fn early(seed: u64, limits: Early) -> EarlyLimits {
    LIMITS.set(Some((limits, seed | 1)));
    EarlyLimits { _of_this_thread: PhantomData }
}

/// Whether a memtable counts as full although it is not.
pub(crate) fn is_full_early() -> bool {
    let Some((limits, mut random)) = LIMITS.get() else { return false };
    let Some(one_in) = limits.memtable_full_one_in else { return false };
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    LIMITS.set(Some((limits, random)));
    (random >> 32).is_multiple_of(one_in.max(1).into())
}

/// Number of writes of a commit to one tree that has them staged, if it is not the usual one.
pub(crate) fn staged_writes() -> Option<usize> {
    LIMITS.get().and_then(|(limits, _)| limits.staged_writes)
}

/// See [`early`].
#[must_use = "limits are the usual ones when this is dropped"]
#[derive(Debug)]
pub struct EarlyLimits {
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for EarlyLimits {
    fn drop(&mut self) {
        LIMITS.set(None);
    }
}
