//! Why a trace cannot be read.

use std::io;

use crate::Format;

/// A trace that cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source of the trace failed.
    #[error("the trace cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The first bytes are those of no format.
    #[error(
        "this is no trace that Flashgrain reads; it reads blkparse's text, blktrace's binary files, fio's iologs of version 2 and 3, the MSR Cambridge CSV files, the CloudPhysics vscsi files, MQSim's text, strace's text, and the files of `flashgrain trace record`"
    )]
    Foreign,
    /// Flashgrain's own format, but a later version of it.
    #[error(
        "the trace was written by a newer version of Flashgrain, in version {version} of its format, and this one reads version 1: use the version that has written it, or a newer one"
    )]
    Newer {
        /// The version of the format.
        version: u64,
    },
    /// A line that is no request; requests before it have been yielded.
    #[error("line {line} of the {format} trace: expected {expected}, got `{got}`")]
    Line {
        /// The format of the trace.
        format: Format,
        /// The number of the line, from 1 on.
        line: u64,
        /// The expected form of a line.
        expected: &'static str,
        /// The begin of the line, with its control characters escaped.
        got: String,
    },
    /// A trace without its end; all requests in it have been yielded.
    #[error("the {format} trace is cut off after line {line}: expected {expected}")]
    CutOff {
        /// The format of the trace.
        format: Format,
        /// The number of its last line.
        line: u64,
        /// The expected continuation.
        expected: &'static str,
    },
    /// A binary record that is none; requests before it have been yielded.
    #[error("the {format} trace is damaged or cut off at byte {offset_bytes}: expected {expected}")]
    Record {
        /// The format of the trace.
        format: Format,
        /// Where the record begins.
        offset_bytes: u64,
        /// The expected record.
        expected: &'static str,
    },
}

impl Error {
    /// A stable word for the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Read(_) => "read",
            Self::Foreign => "foreign",
            Self::Newer { .. } => "newer",
            Self::Line { .. } => "line",
            Self::CutOff { .. } => "cut_off",
            Self::Record { .. } => "record",
        }
    }
}
