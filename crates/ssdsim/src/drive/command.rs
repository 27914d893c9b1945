//! A command on its way through a drive.

use flashgrain_device::Op;

use crate::fault::NO_FAULT;

/// Time that a command spent in each stage, nanoseconds. The sum of all stages is its latency.
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
    /// Number of the drive.
    pub drive: u16,
    /// Never `WriteThenFlush`: that is a write, and then a flush.
    pub op: Op,
    /// First byte on the drive.
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
    pub remaining_bytes: u32,
    /// When those that have are at the host, as far as the command's own bandwidth decides.
    pub paced_ns: u64,
    /// The version that the bytes of a write have in the content.
    pub version: u64,
    /// For the medium: parts of the command that are still to be done.
    pub parts: u32,
    /// Time in each stage so far.
    pub stages: Stages,
    /// Errno, or 0.
    pub errno: i32,
    /// Number, in the plan of faults, of the fault that the command suffers.
    pub fault: u32,
}

impl Command {
    /// A command as it is handed to a drive.
    pub fn new(
        request: u32,
        drive: u16,
        op: Op,
        offset_bytes: u64,
        length_bytes: u32,
        memory: *mut u8,
        now_ns: u64,
    ) -> Self {
        Self {
            request,
            drive,
            op: if op == Op::WriteThenFlush { Op::Write } else { op },
            offset_bytes,
            length_bytes,
            memory: Memory(memory),
            submitted_ns: now_ns,
            started_ns: now_ns,
            remaining_bytes: length_bytes,
            paced_ns: 0,
            version: 0,
            parts: 0,
            stages: Stages::default(),
            errno: 0,
            fault: NO_FAULT,
        }
    }

    /// Whether no fault happens to it.
    #[inline]
    pub fn is_well(&self) -> bool {
        self.fault == NO_FAULT
    }

    /// Whether it is a write whose data are crossing the link.
    pub fn is_on_link(&self) -> bool {
        matches!(self.op, Op::Write | Op::WriteDsync) && self.version == 0 && self.stages.link > 0
    }

    /// The data of a write.
    ///
    /// # Safety
    /// The command is a write whose request is in flight.
    #[inline]
    pub unsafe fn bytes<'a>(&self) -> &'a [u8] {
        // SAFETY: the caller of `Channel::submit` promised that the memory is valid and not modified while
        // the request is in flight.
        unsafe { std::slice::from_raw_parts(self.memory.0, self.length_bytes as usize) }
    }
}

/// Memory that the channel's caller lends until completion (see `Channel::submit`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory(pub *mut u8);

// SAFETY: the pointer is only followed while its request is in flight, for which the caller of `submit`
// promised that it is valid and not used otherwise; which thread follows it does not matter.
unsafe impl Send for Memory {}
