//! The array: channels, chips, dies. It knows operations and timings, but no content.

mod array;
mod channel;
mod server;
mod timing;

pub(crate) use array::Flash;

/// Operations on flash cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlashKind {
    /// Command, sensing, transfer out.
    Read,
    /// Command and transfer in, programming.
    Program,
    /// Command, erasing.
    Erase,
}

/// Why an operation is made; it decides its priority and where waiting for it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A host's read or write.
    Host,
    /// A translation page.
    Mapping,
    /// Garbage collection and wear levelling.
    Collect,
}

/// One operation on one die. Pages of the same row on several planes go together where the drive has
/// multi-plane commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlashOp {
    pub kind: FlashKind,
    pub cause: Cause,
    /// Goes before everything but the running operation: a die that is out of free blocks must collect.
    pub urgent: bool,
    /// Dies are numbered channels first, then chips, then dies of a chip: die `d` is on channel `d %
    /// channels` and in chip `d % (channels * chips_per_channel)`, counted over all channels.
    pub die: u32,
    /// Row (page of a block, on all planes): its page type decides the latency.
    pub row: u32,
    /// Bytes over the channel.
    pub transfer_bytes: u32,
    /// The translation layer's own number.
    pub token: u64,
}

impl FlashOp {
    /// Whether it is a read other than of garbage collection; such reads can go first.
    fn is_foreground_read(&self) -> bool {
        self.kind == FlashKind::Read && self.cause != Cause::Collect
    }
}

/// An operation that is done, and where its time went: the three spans add up from submission to now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlashDone {
    pub op: FlashOp,
    /// Waiting for the die, its chip or its channel.
    pub wait_ns: u64,
    /// Of that, not part of it: while the die worked for garbage collection.
    pub collect_ns: u64,
    /// Command, cells and transfer.
    pub medium_ns: u64,
    /// Of that: the transfer of the read data, at its end.
    pub out_ns: u64,
}
