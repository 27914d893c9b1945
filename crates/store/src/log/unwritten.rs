//! A log that is not written: its records get positions and timestamps, and checkpoints alone make commits
//! durable.
//!
//! Positions go on growing. A checkpoint of such a store has everything up to the log's end, which
//! [`Log::end_block`] moves to the beginning of a block. No block with that position or a later one was ever
//! written, so recovery finds an empty log there, and an opening that writes its log begins there.

use crate::sync::atomic::Ordering;

use super::block::PREFIX_BYTES;
use super::{Log, Logged, Lsn, ROOM_REFUSED_MAX, Timestamp};
use crate::Error;
use crate::task::{park, waker};

/// The longest record: no ring bounds it.
pub(super) const RECORD_BYTES_MAX: u64 = 1 << 30;

/// Checkpoints that have failed.
#[derive(Default)]
pub(super) struct Failures {
    all: u64,
    /// The last failures without a commit in between, and the log's end then.
    in_a_row: u32,
    end: Lsn,
    /// The reason of the last one.
    last: String,
}

impl Log {
    /// From now on no record is written. To be called before the first append.
    pub fn leave_unwritten(&self) {
        self.shared.is_unwritten.store(true, Ordering::Release);
    }

    /// Whether records are written.
    pub fn is_written(&self) -> bool {
        !self.shared.is_unwritten.load(Ordering::Acquire)
    }

    /// Gives a record its position and its timestamp.
    pub(super) fn count(&self, record_bytes: usize, note: impl Fn(Logged)) -> Result<Logged, Error> {
        let mut state = self.shared.live_state()?;
        let start = state.open.end();
        let end = Lsn(start.0 + (PREFIX_BYTES + record_bytes) as u64);
        state.last = Timestamp(state.last.0 + 1);
        state.open.restart(end);
        let logged = Logged { start, end, timestamp: state.last };
        note(logged);
        drop(state);
        self.attend();
        Ok(logged)
    }

    /// Notes that nothing was appended for a moment.
    pub(super) fn note_idle(&self) {
        let mut state = self.shared.state();
        let end = state.open.start();
        if let Some(leader) = &mut state.leader {
            leader.marked = end;
        }
    }

    /// Has the next record of a log that is not written begin in a new block. Returns its position.
    pub fn end_block(&self) -> Lsn {
        let mut state = self.shared.state();
        let end = state.ring.next_block(state.open.end());
        state.open.restart(end);
        end
    }

    /// Waits for a checkpoint that has everything before `end`. The measure that decreases: the checkpoints
    /// that may still fail meanwhile.
    ///
    /// # Errors
    /// [`Error::NotDurable`] if they fail again and again: the commits are made, and become durable with the
    /// next checkpoint; [`Error::Poisoned`].
    pub(super) fn wait_for_checkpoint(&self, end: Lsn) -> Result<(), Error> {
        let shared = &*self.shared;
        let before = shared.state().failures.all;
        while !shared.has_reached(end, true) {
            let mut state = shared.live_state()?;
            if shared.has_reached(end, true) {
                break;
            }
            if state.failures.all - before > ROOM_REFUSED_MAX.into() {
                return Err(Error::NotDurable { why: state.failures.last.clone() });
            }
            state.for_room.push(waker());
            drop(state);
            shared.tell_long();
            park();
        }
        Ok(())
    }

    /// Notes that a checkpoint of a store without a log failed, and can be tried again. Returns how many have
    /// failed one after the other, with no commit in between.
    pub fn checkpoint_failed(&self, error: &Error) -> u32 {
        let times = {
            let mut state = self.shared.state();
            let end = state.open.end();
            let failures = &mut state.failures;
            failures.in_a_row = if failures.end == end { failures.in_a_row + 1 } else { 1 };
            (failures.all, failures.end, failures.last) = (failures.all + 1, end, error.to_string());
            failures.in_a_row
        };
        self.no_room();
        times
    }

    /// Whether another checkpoint may end otherwise than the last ones: commits have come since, or not many
    /// have failed.
    pub fn may_checkpoint(&self) -> bool {
        let state = self.shared.state();
        state.failures.in_a_row <= ROOM_REFUSED_MAX || state.failures.end != state.open.end()
    }

    /// Asks for a checkpoint, for a commit that would be refused without one.
    pub fn ask_for_checkpoint(&self) {
        if !self.is_written() {
            self.shared.tell_long();
        }
    }

    /// Notes a checkpoint that has everything before `end`.
    pub(super) fn checkpointed(&self, end: Lsn) {
        self.shared.written.fetch_max(end.0, Ordering::AcqRel);
        self.shared.durable.fetch_max(end.0, Ordering::AcqRel);
        self.shared.state().failures.in_a_row = 0;
    }
}
