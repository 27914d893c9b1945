//! Segments of the log.

use std::ops::Range;

use super::growth::Growth;
use super::reclaim::Reclaim;
use super::space::Space;
use crate::Error;
use crate::layout::LogExtent;
use crate::sync::Arc;

/// Takes adjacent segments for the log, and gives them back.
pub(crate) struct LogRoom {
    space: Arc<Space>,
    growth: Arc<Growth>,
    reclaim: Arc<Reclaim>,
}

/// These bytes as the log's place.
fn place(range: Range<u64>) -> LogExtent {
    LogExtent { start_bytes: range.start, bytes: range.end - range.start }
}

impl LogRoom {
    pub(super) fn new(space: &Arc<Space>, growth: &Arc<Growth>, reclaim: &Arc<Reclaim>) -> Self {
        Self { space: Arc::clone(space), growth: Arc::clone(growth), reclaim: Arc::clone(reclaim) }
    }

    /// Adjacent free segments for the log, of at least `bytes` bytes. `None` if there are none at present.
    pub fn take_free(&self, bytes: u64) -> Option<LogExtent> {
        self.space.take_log(bytes).map(place)
    }

    /// As [`LogRoom::take_free`], growing the device if need be.
    pub fn take(&self, bytes: u64) -> Option<LogExtent> {
        self.take_free(bytes).or_else(|| self.growth.grow_for_log(bytes).map(place))
    }

    /// The log is no longer there.
    pub fn release(&self, place: LogExtent) {
        self.reclaim.free(self.space.release_log(&(place.start_bytes..place.end_bytes())));
    }

    /// While a store is opened: the log is in these segments.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there are no such segments.
    pub fn adopt(&self, place: LogExtent) -> Result<(), Error> {
        if self.space.adopt_log(&(place.start_bytes..place.end_bytes())) {
            return Ok(());
        }
        Err(Error::Corrupt {
            what: "the log's place".into(),
            offset_bytes: place.start_bytes,
            expected: format!("whole segments, of {}", self.space.count()),
            got: format!("{} bytes outside of them", place.bytes),
        })
    }
}
