//! What is on its way through a drive.

use flashgrain_device::Op;

/// Where a command's time went, nanoseconds. Together they are its latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stages {
    /// In the host's queue, because the drive holds no more commands.
    pub queue: u64,
    /// Waiting for the command processor, command processing, doorbell and completion, splitting and joining.
    pub controller: u64,
    /// On the link, waiting for it included.
    pub link: u64,
    /// Looking up the mapping: controller, and translation pages read from flash.
    pub mapping: u64,
    /// Waiting for a chip, its channel, or room in the write cache.
    pub wait: u64,
    /// Of that: waiting while garbage was collected. Not part of `wait`.
    pub collect: u64,
    /// The medium and its channel at work: sensing, programming, seeking, transferring.
    pub medium: u64,
}

impl Stages {
    /// The latency.
    pub fn sum(&self) -> u64 {
        self.queue + self.controller + self.link + self.mapping + self.wait + self.collect + self.medium
    }
}

/// A request, or the part of it that lies on one drive of a stripe set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// The request that it is part of.
    pub request: u32,
    /// Which drive.
    pub drive: u16,
    /// `WriteThenFlush` has become a write with `flush_after`.
    pub op: Op,
    /// On the drive.
    pub offset_bytes: u64,
    /// Length.
    pub length_bytes: u32,
    /// Its part of the request's memory.
    pub memory: Memory,
    /// When it was handed to the drive.
    pub submitted_ns: u64,
    /// When the medium began with it.
    pub started_ns: u64,
    /// Bytes of a read that have not reached the link.
    pub bytes_left: u32,
    /// The version that the bytes of a write have in the content.
    pub version: u64,
    /// For the medium: parts of the command that are still to be done.
    pub parts: u32,
    /// Where its time went.
    pub stages: Stages,
    /// Errno, or 0.
    pub errno: i32,
}

/// Memory that the channel's caller lends until completion (see `Channel::submit`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory(pub *mut u8);

// SAFETY: the pointer is only followed while its request is in flight, for which the caller of `submit` promised that it is valid and
// not used otherwise; which thread follows it does not matter.
unsafe impl Send for Memory {}
