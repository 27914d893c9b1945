//! Shrinking the device: the log moves out of the way, and the device's free end is cut off.
//!
//! 1. The free segments at the end are given up: no image is put there any more.
//! 2. The growth of the device is made durable, as part of it may stay. A superblock with the device's new
//!    length is written to both slots, each flushed: whichever is found later, the device is long enough for
//!    it.
//! 3. The device becomes shorter. A crash before that leaves free room after the end.

use crate::sync::Arc;

use super::run::Run;
use super::{Superblock, slots};
use crate::Error;
use crate::io_context::{Role, flush};
use crate::segment::Leave;

impl Run {
    /// Moves the log to its first place, if its needed part fits there. Its segments become free.
    ///
    /// # Errors
    /// As [`Run::checkpoint`].
    pub fn move_log_back(&mut self) -> Result<(), Error> {
        self.parts.poison.check()?;
        let at_creation = self.base.superblock.layout.log_at_creation;
        if self.parts.log.place() != at_creation {
            self.move_log(at_creation)?;
        }
        Ok(())
    }

    /// Cuts the device's free end off, and moves the log out of the way if it lies after the first `keep`
    /// segments and a free place exists.
    ///
    /// # Errors
    /// As [`Run::checkpoint`].
    pub fn give_back(&mut self, keep: usize, leave: Leave) -> Result<(), Error> {
        let poison = self.parts.poison.clone();
        let _others_wait_for_it = poison.guard("room was given back");
        self.cut_behind(keep, leave).map_err(|error| match error {
            Error::Poisoned { .. } => error,
            other => poison.by(other),
        })
    }

    /// Cuts the device's free end off after a checkpoint, if that is worth it. Open segments that are in the
    /// way are closed, as it may be long before they are full; a later checkpoint cuts off the segments that
    /// are free then.
    pub(super) fn shorten(&mut self) -> Result<(), Error> {
        match self.parts.segments.end.worth_keeping() {
            Some(keep) if !self.parts.segments.gatherer.close_open_behind(keep) => {
                self.cut_behind(keep, Leave::ForWriting(keep))
            }
            _ => Ok(()),
        }
    }

    fn cut_behind(&mut self, keep: usize, leave: Leave) -> Result<(), Error> {
        self.move_log_before(keep)?;
        self.cut_tail(leave)
    }

    /// Moves the log to free segments nearer to the device's beginning, if it lies after the first `keep`
    /// segments and enough of them are free.
    fn move_log_before(&mut self, keep: usize) -> Result<(), Error> {
        let segments = Arc::clone(&self.parts.segments);
        let place = self.parts.log.place();
        // A log that does not grow, or has a device of its own, is in no segment.
        if !self.base.superblock.layout.log_grows() || !segments.end.is_behind(place, keep) {
            return Ok(());
        }
        match segments.log_room.take_free(place.bytes) {
            Some(before) if before.start_bytes < place.start_bytes => self.move_log(before).map(drop),
            Some(behind) => {
                segments.log_room.release(behind);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// See `DeviceEnd::cut`.
    pub(super) fn cut_tail(&mut self, leave: Leave) -> Result<(), Error> {
        let segments = Arc::clone(&self.parts.segments);
        segments.end.cut(leave, |bytes| {
            // The device may have grown since the checkpoint: that must be durable before a superblock needs
            // it.
            flush(&self.parts.devices, Role::Data)
                .map_err(|failure| failure.error("flush the device's length"))?;
            self.save_length(bytes)?;
            self.save_length(bytes)
        })
    }

    fn save_length(&mut self, data_bytes: u64) -> Result<(), Error> {
        let before = &self.base.superblock;
        let superblock = Superblock { generation: before.generation + 1, data_bytes, ..before.clone() };
        slots::save(&self.parts.devices, &superblock)?;
        self.base.superblock = superblock;
        Ok(())
    }
}
