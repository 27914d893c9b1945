//! Tests with little data.

/// Whether work that pays only for large amounts is done for small ones, too: parallel jobs, loads of few
/// records. It is false outside of tests.
pub(crate) fn is_eager() -> bool {
    #[cfg(feature = "testing")]
    if crate::testing::are_jobs_eager() {
        return true;
    }
    false
}

/// Whether a memtable counts as full although it has room. It is false outside of tests.
pub(crate) fn is_full_early() -> bool {
    #[cfg(feature = "testing")]
    if crate::testing::is_full_early() {
        return true;
    }
    false
}

/// From this number of writes on, a commit is staged: the usual number outside of tests.
pub(crate) fn staged_from(usual: usize) -> usize {
    #[cfg(feature = "testing")]
    if let Some(writes) = crate::testing::staged_writes() {
        return writes;
    }
    usual
}
