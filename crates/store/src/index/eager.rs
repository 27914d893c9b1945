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
