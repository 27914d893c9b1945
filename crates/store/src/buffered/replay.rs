//! Versions that the log has, and that a tree may have already.

use crate::Error;
use crate::index::Reapplied;
use crate::log::{LogRecord, Timestamp};

/// The result for a replayed version that must not be applied again; `None` if it must be. `newest_at`
/// returns the newest version of the key that is not newer than a commit.
///
/// # Errors
/// Those of `newest_at`.
pub(crate) fn made_before(
    record: LogRecord,
    newest_at: impl Fn(Timestamp) -> Result<Option<Timestamp>, Error>,
) -> Result<Option<Reapplied>, Error> {
    // A version that the tree has is given up when it is merged with newer ones, and its overflow value with
    // it.
    if newest_at(record.timestamp)? == Some(record.timestamp) && !planted!(ReplayedVersionDoubled) {
        return Ok(Some(Reapplied::default()));
    }
    // If the tree has a newer one, it was given up before the checkpoint.
    let is_outdated = newest_at(Timestamp(u64::MAX))? > Some(record.timestamp);
    Ok(is_outdated.then_some(Reapplied { is_outdated, replaced: None }))
}
