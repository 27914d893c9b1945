//! What an index that merges versions in the background asks of transactions.

use super::Snapshots;
use crate::Error;
use crate::log::Timestamp;

/// See the module.
pub(crate) trait Horizon: Send + Sync {
    /// The snapshots in use.
    fn snapshots(&self) -> &Snapshots;

    /// The commit up to which all can be seen.
    fn visible(&self) -> Timestamp;

    /// Nobody sees the overflow value with this reference any more.
    fn overflow_is_gone(&self, reference: &[u8]);

    /// Appends the overflow value with this reference to `into`.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also if the value is gone by now; [`Error::Io`].
    fn read_overflow(&self, reference: &[u8], into: &mut Vec<u8>) -> Result<(), Error>;
}
