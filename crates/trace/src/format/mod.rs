//! The formats of traces, one file for each.

mod blkparse;
pub(crate) mod blktrace;
mod fio;
mod mqsim;
mod msr;
pub(crate) mod own;
pub(crate) mod strace;
pub(crate) mod vscsi;

use std::fmt;

pub use own::TraceWriter;

use crate::{Losses, Names, Operation, Request};

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The output of `blkparse`, with its default line format.
    Blkparse,
    /// Binary records of `blktrace`, `struct blk_io_trace` of Linux.
    Blktrace,
    /// An iolog of `fio`, version 2.
    Fio2,
    /// An iolog of `fio`, version 3, which has times.
    Fio3,
    /// CSV of the MSR Cambridge traces.
    MsrCambridge,
    /// The output of `strace`.
    Strace,
    /// Requests of MQSim and DiskSim.
    Mqsim,
    /// Binary records of the CloudPhysics traces.
    CloudPhysics,
    /// Flashgrain's own.
    Own,
}

impl Format {
    /// The format of a trace that begins with `head`; `None` if it is none that is known.
    pub fn recognise(head: &[u8]) -> Option<Self> {
        if blktrace::is_begin(head) {
            return Some(Self::Blktrace);
        }
        let text = String::from_utf8_lossy(head);
        let says_something = |line: &&str| !line.is_empty() && !strace::is_aside(line);
        let first = text.lines().map(str::trim).find(says_something)?;
        match first {
            own::HEAD => Some(Self::Own),
            "fio version 2 iolog" => Some(Self::Fio2),
            "fio version 3 iolog" => Some(Self::Fio3),
            _ if msr::is_line(first) => Some(Self::MsrCambridge),
            _ if blkparse::is_line(first) => Some(Self::Blkparse),
            _ if strace::is_line(first) => Some(Self::Strace),
            _ if mqsim::is_line(first) => Some(Self::Mqsim),
            _ => vscsi::version(head).map(|_| Self::CloudPhysics),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Blkparse => "blkparse",
            Self::Blktrace => "blktrace",
            Self::Fio2 => "fio iolog (version 2)",
            Self::Fio3 => "fio iolog (version 3)",
            Self::MsrCambridge => "MSR Cambridge",
            Self::Strace => "strace",
            Self::Mqsim => "MQSim",
            Self::CloudPhysics => "CloudPhysics",
            Self::Own => "Flashgrain",
        })
    }
}

/// The kind of a line of text.
pub(crate) enum Line {
    Request(Request),
    /// Something that is no request and may stand there.
    Other,
    /// Everything after this line is a summary.
    End,
    /// None of these, with the expected form.
    Wrong(&'static str),
}

/// Reads the lines of one text format.
pub(crate) enum LineReader {
    Blkparse,
    Fio(fio::Iolog),
    Msr(msr::Csv),
    Strace(Box<strace::Calls>),
    Mqsim(mqsim::Requests),
    Own(own::Records),
}

/// No kernel takes reads or writes of this length: such a number is no length.
const TRANSFER_BYTES_TOO_MANY: u64 = 1 << 32;

impl LineReader {
    /// The reader of `format`; `None` if it is no text.
    pub(crate) fn new(format: Format) -> Option<Self> {
        match format {
            Format::Blkparse => Some(Self::Blkparse),
            Format::Blktrace | Format::CloudPhysics => None,
            Format::Fio2 => Some(Self::Fio(fio::Iolog::new(false))),
            Format::Fio3 => Some(Self::Fio(fio::Iolog::new(true))),
            Format::MsrCambridge => Some(Self::Msr(msr::Csv::default())),
            Format::Strace => Some(Self::Strace(Box::default())),
            Format::Mqsim => Some(Self::Mqsim(mqsim::Requests::default())),
            Format::Own => Some(Self::Own(own::Records::default())),
        }
    }

    pub(crate) fn line(&mut self, text: &str, names: &mut Names) -> Line {
        if text.is_empty() {
            return Line::Other;
        }
        let line = match self {
            Self::Blkparse => blkparse::line(text, names),
            Self::Fio(iolog) => iolog.line(text, names),
            Self::Msr(csv) => csv.line(text, names),
            Self::Strace(calls) => calls.line(text, names),
            Self::Mqsim(requests) => requests.line(text, names),
            Self::Own(records) => records.line(text, names),
        };
        match line {
            Line::Request(Request {
                operation: Operation::Read | Operation::Write,
                length_bytes: TRANSFER_BYTES_TOO_MANY..,
                ..
            }) => Line::Wrong("a read or write of less than 4 GiB"),
            line => line,
        }
    }

    /// A request of an earlier line that was not yielded yet.
    pub(crate) fn waiting(&mut self) -> Option<Request> {
        match self {
            Self::Strace(calls) => calls.waiting(),
            _ => None,
        }
    }

    /// Losses so far.
    pub(crate) fn losses(&self) -> Losses {
        match self {
            Self::Strace(calls) => calls.losses(),
            Self::Own(records) => records.losses.clone(),
            _ => Losses::default(),
        }
    }

    /// Notes for people in the trace.
    pub(crate) fn notes(&self) -> &[String] {
        match self {
            Self::Own(records) => &records.notes,
            _ => &[],
        }
    }

    /// The part that must follow before the trace may end, if any.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        match self {
            Self::Own(records) if !records.is_complete => Some("the line `end`: the recording was cut off"),
            _ => None,
        }
    }
}

/// The bytes of sectors of 512 bytes; `None` if they are more than a number holds.
fn sectors(count: u64) -> Option<u64> {
    count.checked_mul(512)
}
