//! Room for the log.

use std::ops::Range;

use super::{DEVICE_BYTES_MAX, SegmentState, Space};

impl Space {
    /// Adjacent free segments that have at least `bytes` together, for the log. The room that others may need
    /// is not taken.
    pub fn take_log(&self, bytes: u64) -> Option<Range<u64>> {
        let mut inner = self.lock();
        let kept = inner.reserve().kept_from_all();
        let run = inner.ledger.free_run(bytes)?;
        let taken = self.sizes.device_bytes(run.end) - self.sizes.device_bytes(run.start);
        (inner.ledger.tally().free >= kept + taken).then(|| inner.ledger.take_for_log(run))
    }

    /// The device has `capacity_bytes` now. The first of its new segments that have at least `bytes` together
    /// are the log's.
    pub fn grow_for_log(&self, capacity_bytes: u64, bytes: u64) -> Option<Range<u64>> {
        let ledger = &mut self.lock().ledger;
        let first = ledger.len();
        ledger.grow(self.sizes.count(capacity_bytes.min(DEVICE_BYTES_MAX)));
        let run = first..first + self.sizes.count_for(first, bytes);
        (run.end <= ledger.len()).then(|| ledger.take_for_log(run))
    }

    /// Bytes of the device with as many new segments as the log wants.
    pub fn device_bytes_for_log(&self, bytes: u64) -> u64 {
        let first = self.count();
        self.sizes.device_bytes(first + self.sizes.count_for(first, bytes))
    }

    /// The log's segments in this range, on their way to be free.
    pub fn release_log(&self, range: &Range<u64>) -> Vec<usize> {
        self.lock().ledger.take_out(|index, segment| {
            segment.state == SegmentState::Log && range.contains(&self.sizes.range(index).start)
        })
    }

    /// While a store is opened: the log is there. `false` if there are no such segments.
    pub fn adopt_log(&self, range: &Range<u64>) -> bool {
        let ledger = &mut self.lock().ledger;
        let run = [range.start, range.end].map(|at| self.sizes.index_of(at).unwrap_or(usize::MAX));
        let is_there = run[0] < run[1] && run[1] <= ledger.len();
        if is_there {
            ledger.take_for_log(run[0]..run[1]);
        }
        is_there
    }
}
