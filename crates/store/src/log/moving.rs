//! Moving the log to another place.
//!
//! 1. The mover gets the right to write before all others: nothing is written to the log until it hands over.
//!    Records are appended to the open group meanwhile, as far as the old ring, and the new one, have room.
//! 2. All blocks from the tail on are copied, one by one. A block contains its position in the log, not its
//!    place on the device, so copies are exact. A block that does not verify ends the attempt, and the log
//!    stays where it is: a misread block must not be copied.
//! 3. Blocks after the end are erased in the new place. An earlier move that a crash interrupted may have
//!    left some there that were not found in the log afterwards: they must not come back.
//! 4. The copies are flushed, so everything that was written is durable now, and the durable mark is written
//!    next to the new ring.
//! 5. The caller makes the superblock durable that names the new place. From then on recovery reads there.
//! 6. The log continues in the new ring. The caller gets the old place back.
//!
//! A crash before step 5 leaves the old ring as it was; a crash after it finds everything in the new one.
//! Other content of the new place is never taken for a block of a later position: without a crash positions
//! only grow.

use crate::sync::atomic::Ordering;

use super::lead::Leader;
use super::recover::erase_behind;
use super::ring::Ring;
use super::{Log, LogCore, Lsn, block, durable_mark};
use crate::Error;
use crate::io_context::{Block, Role, flush};
use crate::layout::LogExtent;
use crate::task::{Waker, park, waker};

/// Bytes that are copied at a time.
const COPY_BYTES: u64 = 1 << 20;

/// The task that waits for the right to write in order to move the log.
#[derive(Default)]
pub(super) struct Mover {
    waker: Option<Waker>,
    leader: Option<Leader>,
    /// The ring that the log is moving to, once everything is known to fit there: from then on appends must
    /// have room in it, too.
    to: Option<Ring>,
}

impl Mover {
    /// Gives it the right to write, if it waits, and returns its waker. Otherwise the right comes back.
    #[expect(clippy::result_large_err, reason = "the leader is passed on, it is no error")]
    pub fn offer(&mut self, leader: Leader) -> Result<Waker, Leader> {
        match self.waker.take() {
            Some(waker) => {
                self.leader = Some(leader);
                Ok(waker)
            }
            None => Err(leader),
        }
    }

    /// The end of the room in the ring that the log is moving to.
    pub fn room_until(&self, tail: Lsn) -> Option<Lsn> {
        self.to.map(|to| to.room_until(tail))
    }

    /// Ends its wait after a failure.
    pub fn give_up(&mut self) -> Option<Waker> {
        self.waker.take()
    }
}

impl Log {
    /// The log's place on its device, durable marks included.
    pub fn place(&self) -> LogExtent {
        self.shared.state().ring.whole()
    }

    /// Whether the ring is shorter than this, and may become longer.
    pub fn is_growing(&self, bytes: u64) -> bool {
        let shared = &*self.shared;
        let state = shared.state();
        let is_growing = shared.record_bytes_max > state.ring.record_limit_bytes();
        is_growing && state.ring.whole().bytes < bytes && state.growth_refused == 0
    }

    /// Length that the ring's place must have for a record that waits; 0 if none does.
    pub fn wanted_bytes(&self) -> u64 {
        self.shared.wanted_bytes.load(Ordering::Acquire)
    }

    /// Moves the log to `place`, overwriting it. `make_current` gets the position up to which everything is
    /// durable, and makes recovery read from `place`. It returns whether the log has moved: it stays if its
    /// needed part is too long for the place, or cannot be read.
    ///
    /// # Errors
    /// Those of `make_current`; of the device, and [`Error::Poisoned`]. Then it is unknown where recovery
    /// will read.
    pub fn move_to(
        &self,
        place: LogExtent,
        make_current: impl FnOnce(Lsn) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let shared = &*self.shared;
        let mut leader = shared.lead_to_move()?;
        let _nobody_else_can_lead = shared.poison.guard("the log was moved");
        let to = Ring::at(place, leader.ring.block_bytes as u32);
        let copied = shared.copy_all(leader.ring, to).map_err(|error| shared.poison.by(error));
        let moved = match copied {
            Ok(Some(durable)) if planted!(LogMovedBeforeSuperblock) => {
                shared.go_on_in(&mut leader, to, durable);
                shared.hand_over(leader);
                return make_current(durable).map(|()| true).map_err(|error| shared.poison.by(error));
            }
            Ok(Some(durable)) => {
                let made = make_current(durable).and_then(|()| shared.poison.check());
                made.map(|()| shared.go_on_in(&mut leader, to, durable)).map(|()| true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        shared.state().mover.to = None;
        shared.hand_over(leader);
        // The ring may have more room by now.
        shared.wake_for_room(|refused| refused);
        moved.map_err(|error| shared.poison.by(error))
    }

    /// Called when the device has no room for a longer ring. Appends that wait for one fail if that happens
    /// repeatedly.
    pub fn refuse_to_grow(&self) {
        self.shared.state().growth_refused += 1;
        self.shared.wake_for_room(|refused| refused);
    }
}

impl LogCore {
    fn lead_to_move(&self) -> Result<Leader, Error> {
        loop {
            {
                let mut state = self.live_state()?;
                let offered = state.mover.leader.take();
                if let Some(leader) = offered.or_else(|| state.leader.take()) {
                    state.mover.waker = None;
                    return Ok(leader);
                }
                state.mover.waker = Some(waker());
            }
            park();
        }
    }

    /// Copies all blocks from the tail on, makes them durable, and returns their end. `None` if they cannot
    /// be read or are too long.
    fn copy_all(&self, from: Ring, to: Ring) -> Result<Option<Lsn>, Error> {
        let written = Lsn(self.written.load(Ordering::Acquire));
        let tail = from.block(Lsn(self.tail.load(Ordering::Acquire)));
        {
            // Records that are appended meanwhile need room, too.
            let mut state = self.state();
            if to.next_block(state.open.end()) > to.room_until(tail) {
                return Ok(None);
            }
            state.mover.to = Some(to);
        }
        if !self.copy(from, to, tail, written)? {
            return Ok(None);
        }
        if !planted!(MovedOntoStaleCopies) {
            let window_bytes = from.window_bytes().max(to.window_bytes());
            erase_behind(&self.devices, to, self.store, written, window_bytes)?;
        }
        flush(&self.devices, Role::Log).map_err(|failed| failed.error("flush the log's new place"))?;
        self.note_durable(written)?;
        durable_mark::write(&self.devices, to, self.store, written)?;
        Ok(Some(written))
    }

    fn go_on_in(&self, leader: &mut Leader, to: Ring, written: Lsn) {
        leader.move_to(to, written);
        self.state().ring = to;
        self.wanted_bytes.store(0, Ordering::Release);
    }

    /// Copies the blocks from position `at` up to `end`. `false` if one does not verify.
    fn copy(&self, from: Ring, to: Ring, mut at: Lsn, end: Lsn) -> Result<bool, Error> {
        while at < end {
            let length = COPY_BYTES.min(end.0 - at.0).min(from.until_wrap(at)).min(to.until_wrap(at));
            let mut blocks = Block::new(length as usize)?;
            if blocks.read(&self.devices, Role::Log, from.place(at)).is_err() {
                return Ok(false);
            }
            let positions = (at.0..).step_by(from.block_bytes as usize).map(Lsn);
            let is_whole = |(bytes, lsn)| block::open(bytes, self.store, lsn).is_ok();
            if !blocks.bytes().chunks_exact(from.block_bytes as usize).zip(positions).all(is_whole) {
                return Ok(false);
            }
            blocks.write(&self.devices, Role::Log, to.place(at))?;
            at = Lsn(at.0 + length);
        }
        Ok(true)
    }
}
