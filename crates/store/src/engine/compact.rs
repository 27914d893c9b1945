//! Compaction: makes a store as small as its records allow.

use flashgrain_device::Nanos;

use super::Engine;
use crate::Error;
use crate::io_context::{Role, now};
use crate::segment::Compaction;
use crate::task::yield_now;

/// A compaction ends after this number of rounds without progress.
const FUTILE_ROUNDS: u32 = 3;

/// A compaction waits at most this time for values that are being freed: other commits may go on removing
/// some.
const FREEING_MAX: Nanos = Nanos(1_000_000_000);

impl Engine {
    /// Bytes of the data device.
    pub fn device_bytes(&self) -> u64 {
        self.parts.devices.device(Role::Data).capacity_bytes()
    }

    /// Moves live data to the device's beginning, in rounds, until that helps no more or `goes_on`, which
    /// gets the device's bytes, returns `false`. Then cuts the device's free end off, and never leaves the
    /// device longer than before for the sake of free room. On a device that keeps its size, and while
    /// another compaction is under way, it only frees room within the device.
    ///
    /// # Errors
    /// [`Error::Full`] if the device has no room for a checkpoint; [`Error::Poisoned`].
    pub fn compact(&self, mut goes_on: impl FnMut(u64) -> bool) -> Result<(), Error> {
        let before_bytes = self.device_bytes();
        // Versions that snapshots see stay; those that no reader sees go.
        self.transactions().settle()?;
        let Some(compaction) = self.parts.segments.compactor.begin(before_bytes) else {
            // Within a device that keeps its size, removed data makes room.
            return self.transactions().withdraw(u64::MAX);
        };
        // Values that were removed just now are freed in the background.
        let until = now(&self.parts.devices) + FREEING_MAX;
        while self.overflow_values.is_freeing() && now(&self.parts.devices) < until {
            yield_now();
        }
        let is_in_log_alone = self.parts.log.last() > self.superblock().state.newest;
        if is_in_log_alone || compaction.is_worth_it() {
            self.compact_in_rounds(&compaction, &mut goes_on, true)?;
            // Pages that withdrawing made dirty counted as needed until they were written.
            if compaction.reaches_behind() && goes_on(self.device_bytes()) {
                self.compact_in_rounds(&compaction, &mut goes_on, false)?;
            }
        }
        self.checkpointer.give_back(compaction.target(), compaction.leaves())
    }

    fn compact_in_rounds(
        &self,
        compaction: &Compaction,
        goes_on: &mut impl FnMut(u64) -> bool,
        withdraws: bool,
    ) -> Result<(), Error> {
        let withdraw = |bytes| if withdraws { self.transactions().withdraw(bytes) } else { Ok(()) };
        compaction.make_room_to_move();
        // Changes that trees have in memory keep the log long.
        withdraw(u64::MAX)?;
        let (mut least, mut futile) = (u64::MAX, 0);
        loop {
            compaction.make_room_to_move();
            self.checkpointer.checkpoint()?;
            // The room of a long log is no reason to keep more.
            self.checkpointer.move_log_back()?;
            withdraw(compaction.end_bytes(compaction.target()))?;
            // Indexes may have become smaller.
            let keep = compaction.target();
            let remaining = compaction.remaining_bytes(keep);
            futile = if remaining < least { 0 } else { futile + 1 };
            least = least.min(remaining);
            let ends = futile == FUTILE_ROUNDS || !goes_on(self.device_bytes());
            // If nothing can be moved now, though something is left, a cleaner is moving it, or there is no
            // room before the next checkpoint.
            if ends || !compaction.move_some(keep)? && remaining == 0 {
                break;
            }
        }
        // The last round leaves dirty pages and pending segments. Room is reserved for both.
        self.checkpointer.checkpoint()
    }
}
