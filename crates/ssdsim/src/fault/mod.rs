//! Faults: the misbehaviour of a drive, and its time.
//!
//! A [`Fault`] has a kind ([`FaultKind`]), a trigger ([`Trigger`]), a range and a repetition. It is injected
//! into a running [`SimDevice`](crate::SimDevice) with `inject`, or stands in a drive's TOML file as a
//! `[[fault]]` section with the same fields as the text form:
//!
//! ```toml
//! [[fault]]
//! kind = "read-error"
//! at = { nth = 3 }
//! offset_bytes = 1048576
//! length_bytes = 4096
//! repeat = "sticky"
//! ```
//!
//! Faults concern *commands*: requests, or on a stripe set the parts of a request that lie on one drive. A
//! command suffers at most one fault: the first in the order of injection whose turn it is. Everything random
//! is drawn from the device's seed, from a generator of its own, so a fault changes nothing but its own
//! effect.
//!
//! Losses that are no drive's fault are not modelled here: a file whose length or name is not durable is the
//! file system's business.

mod plan;
mod power;
mod text;

use std::ops::Range;

use flashgrain_device::{Nanos, Op};
use serde::{Deserialize, Serialize};

pub(crate) use plan::{NO_FAULT, Plan};
pub use power::{PowerCut, Survivors, Tear};

/// Kinds of faults.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The power fails. With [`Trigger::Nth`] it fails when the command reaches the drive: a write is then on
    /// the link, anything else has no effect.
    PowerCut(PowerCut),
    /// The drive does not answer any more, until power is switched off and on; its bytes stay. Answers are as
    /// after a power cut.
    DeviceGone,
    /// A read fails with `EIO`.
    ReadError {
        /// So many bytes are in memory nevertheless; the rest of the memory is as it was.
        done_bytes: u32,
    },
    /// A write fails with `EIO`.
    WriteError {
        /// So many bytes, whole sectors, are written nevertheless.
        done_bytes: u32,
    },
    /// A write fails with `ENOSPC`; nothing is written.
    NoSpace,
    /// A flush fails with `EIO`.
    FlushError {
        /// The fate of the data that the flush should have made durable.
        data: FlushLoss,
    },
    /// A flush is acknowledged and not done; a durable write is done like any other write. The bytes may
    /// become durable later by themselves.
    IgnoredFlush,
    /// A write is acknowledged and not done.
    LostWrite,
    /// A write goes to another place of the drive, durably; its own place stays as it was.
    MisdirectedWrite {
        /// How far away; round the drive's end. Whole sectors.
        by_bytes: i64,
    },
    /// A read returns the bytes of another place of the drive.
    MisdirectedRead {
        /// How far away; round the drive's end. Whole sectors.
        by_bytes: i64,
    },
    /// A read returns the content from when the fault was injected. Sticky and over everything, this is a
    /// drive that has gone back in time.
    StaleRead,
    /// A bit of the fault's range changes on the drive.
    FlipAtRest {
        /// Number of the bit in the range: bit `i % 8` of byte `i / 8`; `None`: any.
        bit: Option<u64>,
    },
    /// A bit changes on the way: of a read only in memory, of a write on the drive, not in memory.
    FlipInFlight {
        /// Number of the bit in the command, counted as in [`FaultKind::FlipAtRest`] and modulo its length;
        /// `None`: any.
        bit: Option<u64>,
    },
    /// A discard leaves something other than zeros.
    AfterDiscard {
        /// Content of the range after the discard.
        leaves: Discarded,
    },
    /// A command takes longer.
    Stall {
        /// Additional time.
        span: Nanos,
        /// Whether the drive's command processor stands still, so that later commands wait as well.
        whole_drive: bool,
    },
}

/// Effect of a failed flush on data that it should have made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushLoss {
    /// Nothing: the next flush makes it durable.
    Kept,
    /// It is gone at once: reads return the content of the medium.
    Dropped,
    /// It is read as if all were well, but no later flush makes it durable: a page cache that takes a page
    /// for clean after it failed to write it behaves so.
    Undurable,
}

/// Content of a range after its discard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discarded {
    /// The old data.
    Old,
    /// Random bytes.
    Garbage,
}

/// Commands of one sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// All to which the kind of fault applies.
    #[default]
    Any,
    /// Reads.
    Read,
    /// Writes, durable ones included.
    Write,
    /// Flushes.
    Flush,
    /// Discards.
    Discard,
}

/// When a fault happens. Power cuts, vanishing devices and bit flips at rest happen by themselves at an event
/// or a time, and at once with [`Trigger::Always`] and [`Operation::Any`]; everything else happens to the
/// next command that matches from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// From the beginning.
    #[default]
    Always,
    /// From the n-th command on that matches kind, operation and range, counted from 1 in the order in which
    /// the drive takes them up.
    Nth(u64),
    /// At this number of events since the start of the simulation (see
    /// [`SimDevice::events`](crate::SimDevice::events)).
    Event(u64),
    /// From this time on, nanoseconds.
    TimeNs(u64),
    /// To every matching command with this probability.
    Probability(f64),
}

/// Number of times that a fault happens once it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeat {
    /// To one command.
    #[default]
    Once,
    /// To this number of commands.
    Times(u64),
    /// To all.
    Sticky,
}

/// One fault: its kind, its trigger, its range and its repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "text::Flat", into = "text::Flat")]
pub struct Fault {
    /// Kind of fault.
    pub kind: FaultKind,
    /// Restricts the fault to some of the commands that its kind applies to.
    pub operation: Operation,
    /// The trigger.
    pub at: Trigger,
    /// Commands that touch these bytes of the device; flushes always do.
    pub range: Range<u64>,
    /// Number of times.
    pub repeat: Repeat,
}

impl Fault {
    /// To the next command that `kind` applies to, anywhere, once.
    pub fn new(kind: FaultKind) -> Self {
        Self {
            kind,
            operation: Operation::Any,
            at: Trigger::Always,
            range: 0..u64::MAX,
            repeat: Repeat::Once,
        }
    }

    /// Only to commands of one sort.
    #[must_use]
    pub fn on(self, operation: Operation) -> Self {
        Self { operation, ..self }
    }

    /// Not before this.
    #[must_use]
    pub fn at(self, at: Trigger) -> Self {
        Self { at, ..self }
    }

    /// Only to commands that touch this.
    #[must_use]
    pub fn within(self, range: Range<u64>) -> Self {
        Self { range, ..self }
    }

    /// More than once.
    #[must_use]
    pub fn repeat(self, repeat: Repeat) -> Self {
        Self { repeat, ..self }
    }

    /// Whether a command of this sort and place can suffer from it.
    fn concerns(&self, op: Op, range: &Range<u64>) -> bool {
        self.kind.applies_to(op)
            && self.operation.includes(op)
            && (range.is_empty() || (range.start < self.range.end && self.range.start < range.end))
    }
}

impl FaultKind {
    /// Whether a command of this sort can suffer from it.
    fn applies_to(&self, op: Op) -> bool {
        match self {
            Self::PowerCut(_) | Self::DeviceGone | Self::FlipAtRest { .. } | Self::Stall { .. } => true,
            Self::ReadError { .. } | Self::MisdirectedRead { .. } | Self::StaleRead => op == Op::Read,
            Self::WriteError { .. } | Self::NoSpace | Self::LostWrite | Self::MisdirectedWrite { .. } => {
                Operation::Write.includes(op)
            }
            Self::FlushError { .. } => op == Op::Flush,
            Self::IgnoredFlush => matches!(op, Op::Flush | Op::WriteDsync),
            Self::FlipInFlight { .. } => op == Op::Read || Operation::Write.includes(op),
            Self::AfterDiscard { .. } => op == Op::Discard,
        }
    }

    /// Whether it happens to the drive rather than to a command.
    pub(crate) fn strikes_by_itself(&self) -> bool {
        matches!(self, Self::PowerCut(_) | Self::DeviceGone | Self::FlipAtRest { .. })
    }
}

impl Operation {
    fn includes(self, op: Op) -> bool {
        match self {
            Self::Any => true,
            Self::Read => op == Op::Read,
            Self::Write => matches!(op, Op::Write | Op::WriteDsync | Op::WriteThenFlush),
            Self::Flush => op == Op::Flush,
            Self::Discard => op == Op::Discard,
        }
    }
}
