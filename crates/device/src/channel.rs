//! The I/O channel: one per worker, never shared, no locks.

use crate::{ChannelWaker, Error, Nanos};

/// Operations of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read `length_bytes` at `offset_bytes` into memory.
    Read,
    /// Write; durable only after a later [`Op::Flush`].
    Write,
    /// Write that completes when it is durable, by the kernel's `RWF_DSYNC` (force unit access where the
    /// drive has it).
    WriteDsync,
    /// Write followed by a flush as one request; completes when both have. One submission on `io_uring` (a
    /// linked pair).
    WriteThenFlush,
    /// Make every completed write durable (`fdatasync`).
    Flush,
    /// Tell the device that the range is no longer needed. Its content afterwards is unspecified.
    Discard,
}

impl Op {
    /// Whether the request moves data between memory and the device.
    pub fn moves_data(self) -> bool {
        !matches!(self, Self::Flush | Self::Discard)
    }

    /// Whether the request needs a device opened for writing.
    pub fn modifies(self) -> bool {
        !matches!(self, Self::Read | Self::Flush)
    }
}

/// One request. `tag` comes back in its [`Completion`].
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Operation.
    pub op: Op,
    /// First byte on the device; a multiple of the geometry's offset alignment. Ignored for a flush.
    pub offset_bytes: u64,
    /// Length; a multiple of the offset alignment. Ignored for a flush.
    pub length_bytes: u32,
    /// Memory for reads and writes, aligned to the geometry's memory alignment. Null for flush and discard.
    pub memory: *mut u8,
    /// The caller's own number.
    pub tag: u64,
}

/// Result of one request.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The request's tag.
    pub tag: u64,
    /// `Ok` if the whole request was done; short transfers are continued inside the channel. Otherwise the
    /// errno; end of device in the middle of a request is `EIO`.
    pub result: Result<(), i32>,
    /// When the request was handed to the device: at submission, or later if it waited for room in the queue.
    pub submitted: Nanos,
    /// When the channel saw that it was done.
    pub completed: Nanos,
}

impl Completion {
    /// Time from submission to completion.
    pub fn latency(&self) -> Nanos {
        self.completed.since(self.submitted)
    }
}

/// A queue of requests to one device, used by one thread.
///
/// Nothing is allocated, locked or copied per request. Dropping a channel waits for its requests in flight.
pub trait Channel {
    /// Queues a request; it reaches the device with the next [`Channel::poll`] or [`Channel::wait`].
    ///
    /// # Errors
    /// [`Error::QueueFull`] if `depth` requests are in flight: reap first, then submit again.
    /// [`Error::Request`] if the request breaks alignment, reaches over the end or writes to a device opened
    /// read-only.
    ///
    /// # Safety
    /// `memory` must be valid for `length_bytes` (for reads: writable and not otherwise accessed; for writes:
    /// not modified) until the completion has been reaped or the channel dropped.
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error>;

    /// Hands queued requests to the device and appends completions that are ready; does not block. It returns
    /// how many were appended. It appends no more than `completions` has spare capacity for, so that a caller
    /// with room for `depth` never allocates.
    ///
    /// # Errors
    /// [`Error::Os`] if the kernel refuses the queue itself; failures of single requests come as completions.
    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error>;

    /// Like [`Channel::poll`], but blocks until at least `at_least` completions were appended or `until` on
    /// the channel's clock has passed. With nothing in flight it lets the time pass until then, if given, or
    /// returns at once. Signals and a [`ChannelWaker`] may end it earlier.
    ///
    /// # Errors
    /// As [`Channel::poll`].
    fn wait(
        &mut self,
        at_least: usize,
        until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error>;

    /// Returns a handle that lets other threads end this channel's waits from now on. A wait that is ended
    /// returns with the completions it has, even if there are none and `until` has not come. Devices with
    /// simulated time have no such handle (`None`): no wait of theirs lasts any real time.
    fn waker(&mut self) -> Option<ChannelWaker> {
        None
    }

    /// The time on the device's clock.
    fn now(&self) -> Nanos;

    /// Requests submitted and not yet reaped.
    fn in_flight(&self) -> usize;

    /// The most requests that may be in flight.
    fn depth(&self) -> usize;
}
