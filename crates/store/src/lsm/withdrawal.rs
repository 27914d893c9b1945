//! A tree's part in the compaction of its store: its tables move to the device's beginning.

use super::policy::pick_behind;
use super::tree::Lsm;
use crate::Error;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

impl Lsm {
    /// Drops removed records, and rewrites tables that have segments after `end_bytes` of the device, as long
    /// as there is room before it. The room that they leave is free with the next checkpoint.
    pub(super) fn withdraw(self: &Arc<Self>, end_bytes: u64) -> Result<(), Error> {
        let _at_work = self.shared.segments.owned.at_work();
        if !self.is_making_room.swap(true, Ordering::Relaxed) {
            self.win_room();
            self.is_making_room.store(false, Ordering::Relaxed);
        }
        let _looking = self.jobs.look();
        while self.runs_jobs() {
            let levels = || Arc::clone(&self.parts().levels);
            let owned = &self.shared.segments.owned;
            let begun = self.jobs.begin_one(levels, |levels, busy| {
                let room = (owned.room_before(end_bytes), owned.room_before(u64::MAX));
                pick_behind(levels, busy, end_bytes, room)
            });
            let Some((job, ticket, levels)) = begun else { return Ok(()) };
            let running = self.jobs.running(ticket);
            let done = self.run(job, levels);
            drop(running);
            self.sweep();
            match done {
                // Others have taken the room: a checkpoint makes more of it free.
                Err(Error::Full { .. } | Error::Closed) => return Ok(()),
                done => done?,
            }
        }
        Ok(())
    }
}
