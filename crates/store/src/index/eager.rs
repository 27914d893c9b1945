//! Tests with little data.

/// Whether what pays only for much is done for little, too: jobs beside each other, loads of few records.
/// It is false outside of tests.
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

/// Writes of a commit from which on they are staged: the usual number outside of tests.
pub(crate) fn staged_from(usual: usize) -> usize {
    #[cfg(feature = "testing")]
    if let Some(writes) = crate::testing::staged_writes() {
        return writes;
    }
    usual
}
