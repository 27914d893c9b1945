//! Work that may wait for a device, away from the runtime's threads.

use crate::error::Error;

/// Runs `work` on one of the runtime's blocking threads.
///
/// # Errors
/// Those of `work`; [`Error::Cancelled`] if the runtime ends first.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failure) => match failure.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Error::Cancelled),
        },
    }
}
