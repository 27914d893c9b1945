//! Segments that checkpoints make free.
//!
//! A segment without live images is pending until a checkpoint of its epoch is durable; a segment of the page
//! table, until a page table is durable that begins after it. Then it is discarded, if that is wanted, and
//! free.

use super::Location;
use super::changes::Changes;
use super::space::Space;
use crate::epoch::Epoch;
use crate::io_context::{self, Devices, Role};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::task::Executor;

/// See the module. Checkpoints report their progress to it.
pub(crate) struct Reclaim {
    devices: Devices,
    executor: Executor,
    space: Arc<Space>,
    changes: Arc<Changes>,
    discards: AtomicBool,
    freed_bytes: AtomicU64,
}

impl Reclaim {
    pub(super) fn new(
        devices: Devices,
        executor: Executor,
        space: &Arc<Space>,
        changes: &Arc<Changes>,
    ) -> Self {
        let (space, changes) = (Arc::clone(space), Arc::clone(changes));
        let (discards, freed_bytes) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { devices, executor, space, changes, discards, freed_bytes }
    }

    /// Has freed segments discarded on the device. Not for files: it would give their blocks back to the file
    /// system.
    pub fn set_discards(&self, discards: bool) {
        self.discards.store(discards, Ordering::Release);
    }

    /// Bytes of the segments that were freed.
    pub(super) fn freed_bytes(&self) -> u64 {
        self.freed_bytes.load(Ordering::Relaxed)
    }

    /// Images released from now on belong to this epoch. Called at a checkpoint's cut.
    pub fn begin_epoch(&self, epoch: Epoch) {
        self.space.set_epoch(epoch);
    }

    /// A checkpoint begins or ends writing pages. Meanwhile pages may take segments from the reserve, as the
    /// checkpoint makes segments free.
    pub fn set_checkpointing(&self, checkpointing: bool) {
        self.space.set_checkpointing(checkpointing);
        if !checkpointing {
            // If the checkpoint failed for lack of room, another one is still needed, and waiters must check
            // whether there is hope.
            self.changes.segments_changed();
            self.changes.wake_all();
        }
    }

    /// Has all waiters for room check again whether there is hope.
    pub fn wake_waiters(&self) {
        self.changes.wake_all();
    }

    /// This number of checkpoints has failed one after the other, with no commit in between, in a store
    /// without a log. See [`Space::need`](super::space::Space::need).
    pub fn set_checkpoints_failed(&self, times: u32) {
        self.space.set_checkpoints_failed(times);
    }

    /// Sets the bytes that the page table takes when it is written as a whole. Room is reserved for them.
    pub fn set_map_bytes(&self, bytes: u64) {
        self.space.set_map_bytes(bytes);
    }

    /// Whether the page table takes too many segments, which are free when it is written as a whole.
    pub fn is_map_long(&self) -> bool {
        self.space.is_map_long()
    }

    /// The checkpoint of this epoch is durable: segments that nothing refers to since then, or earlier, are
    /// free.
    pub fn free_pending(self: &Arc<Self>, epoch: Epoch) {
        self.free(self.space.free_pending(epoch));
    }

    /// A page table that begins with the image at `first` is durable and needs no older one: segments of the
    /// page table that were opened before are free.
    pub fn release_map_before(self: &Arc<Self>, first: Location) {
        self.free(self.space.release_map_before(first));
    }

    /// Makes segments free, to which nothing refers any more.
    pub(super) fn free(self: &Arc<Self>, segments: Vec<usize>) {
        let bytes = segments.iter().map(|index| self.space.sizes().length(*index)).sum();
        self.freed_bytes.fetch_add(bytes, Ordering::Relaxed);
        if segments.is_empty() || !self.discards.load(Ordering::Acquire) {
            segments.into_iter().for_each(|index| self.space.freed(index));
            self.changes.segments_changed();
            self.changes.wake_all();
            return;
        }
        let own = Arc::clone(self);
        self.executor.spawn(move || {
            for index in segments {
                own.discard(index);
                own.space.freed(index);
                own.changes.wake_all();
            }
            own.changes.segments_changed();
            own.changes.wake_all();
        });
    }

    /// Tells the device that a segment's content is no longer needed. After a failure nothing is discarded
    /// any more.
    fn discard(&self, index: usize) {
        let range = self.space.range(index);
        let length = (range.end - range.start) as u32;
        if self.discards.load(Ordering::Acquire)
            && io_context::discard(&self.devices, Role::Data, range.start, length).is_err()
        {
            self.discards.store(false, Ordering::Release);
        }
    }
}
