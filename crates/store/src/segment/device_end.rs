//! The device's free end, which is cut off after a checkpoint or a compaction.

use super::changes::Changes;
use super::growth::Growth;
use super::space::{Leave, Space};
use crate::Error;
use crate::io_context::{Devices, Role};
use crate::layout::{Layout, LogExtent};
use crate::sync::Arc;

/// See the module.
pub(crate) struct DeviceEnd {
    devices: Devices,
    /// Pages stay where they are.
    is_in_place: bool,
    /// The device was not as large as it may become from the beginning.
    was_small: bool,
    space: Arc<Space>,
    growth: Arc<Growth>,
    changes: Arc<Changes>,
}

impl DeviceEnd {
    pub(super) fn new(
        devices: Devices,
        layout: &Layout,
        is_in_place: bool,
        (space, growth, changes): (&Arc<Space>, &Arc<Growth>, &Arc<Changes>),
    ) -> Self {
        let was_small = layout.log_grows() || space.sizes().length(0) < layout.segment_bytes;
        let (space, growth, changes) = (Arc::clone(space), Arc::clone(growth), Arc::clone(changes));
        Self { devices, is_in_place, was_small, space, growth, changes }
    }

    fn may_shrink(&self) -> bool {
        self.growth.is_possible() && self.devices.device(Role::Data).shrinks()
    }

    /// Whether a compaction can make the device shorter.
    pub(super) fn may_compact(&self) -> bool {
        self.may_shrink() && !self.is_in_place
    }

    /// How many segments to keep when the device's free end is cut off after a checkpoint, if that is worth
    /// it. A device that was as large as it may become from the beginning stays so.
    pub fn worth_keeping(&self) -> Option<usize> {
        let cuts = self.was_small && !self.is_in_place && !self.growth.is_held_back() && self.may_shrink();
        if cuts { self.space.worth_keeping(self.growth.first_segments()) } else { None }
    }

    /// Whether the log's place ends after the first `keep` segments.
    pub fn is_behind(&self, place: LogExtent, keep: usize) -> bool {
        place.end_bytes() > self.space.sizes().device_bytes(keep)
    }

    /// Cuts the device's free end off. `make_current` is told how long the device will be, and makes that
    /// durable before the device is shortened.
    ///
    /// # Errors
    /// Those of `make_current`.
    pub fn cut(
        &self,
        leave: Leave,
        make_current: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let changing = if self.may_shrink() { self.growth.begin_change() } else { None };
        let Some(changing) = changing else { return Ok(()) };
        // Whatever the file system does not take back is free room when the store is opened.
        let shrink = |bytes| drop(self.devices.device(Role::Data).shrink(bytes));
        let cut = self.space.cut_tail(leave).map_or(Ok(()), |bytes| {
            if planted!(CutBeforeSuperblock) {
                shrink(bytes);
            }
            make_current(bytes).map(|()| shrink(bytes))
        });
        drop(changing);
        self.changes.wake_all();
        cut
    }
}
