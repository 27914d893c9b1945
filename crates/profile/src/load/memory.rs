//! Memory for requests whose content does not matter.

use std::sync::Arc;

use flashgrain_device::Arena;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::Error;

/// The most memory that one channel's requests use; beyond that they share it.
const BYTES_MAX: u64 = 32 << 20;

/// Direct I/O never needs more than a page of alignment.
const ALIGN_BYTES: u64 = 4096;

/// An arena whose content no code reads while requests are in flight: only devices read and write it, so
/// requests may share its bytes. Writes send random bytes, so that a drive that compresses has nothing to
/// gain.
pub(super) struct Scratch {
    arena: Arc<Arena>,
    slot_bytes: u64,
    slots: u64,
}

impl Scratch {
    /// Room for `streams` requests of `request_bytes`, or for as many as fit; with random bytes if there are
    /// `writes`.
    pub(super) fn new(request_bytes: u64, streams: u32, writes: bool, seed: u64) -> Result<Self, Error> {
        let slot_bytes = request_bytes.next_multiple_of(ALIGN_BYTES);
        let slots = u64::from(streams).min(BYTES_MAX / slot_bytes).max(1);
        let mut arena = Arena::new(usize::try_from(slots * slot_bytes).unwrap_or(usize::MAX))?;
        let used = usize::try_from(slots * slot_bytes).unwrap_or(usize::MAX);
        if let Some(bytes) = arena.bytes_mut().get_mut(..used).filter(|_| writes) {
            Pcg64::seed_from_u64(seed).fill_bytes(bytes);
        }
        Ok(Self { arena: Arc::new(arena), slot_bytes, slots })
    }

    pub(super) fn arena(&self) -> Arc<Arena> {
        Arc::clone(&self.arena)
    }

    /// Memory for the requests of a stream.
    #[inline]
    pub(super) fn of(&self, stream: usize) -> *mut u8 {
        let slot = stream as u64 % self.slots;
        self.arena.as_ptr().wrapping_add((slot * self.slot_bytes) as usize)
    }
}
