//! The formats of traces, one file for each.

mod blkparse;
pub(crate) mod blktrace;
mod fio;
mod msr;
mod strace;

use std::fmt;

use crate::{Names, Request};

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// What `blkparse` prints, with its default line format.
    Blkparse,
    /// Binary records of `blktrace`, `struct blk_io_trace` of Linux.
    Blktrace,
    /// An iolog of `fio`, version 2.
    Fio2,
    /// An iolog of `fio`, version 3, which has times.
    Fio3,
    /// CSV of the MSR Cambridge traces.
    MsrCambridge,
    /// What `strace` prints of one process.
    Strace,
}

impl Format {
    /// The format of a trace that begins with `head`; `None` if it is none that is known.
    pub fn recognise(head: &[u8]) -> Option<Self> {
        if blktrace::is_begin(head) {
            return Some(Self::Blktrace);
        }
        let text = String::from_utf8_lossy(head);
        let first = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        match first {
            "fio version 2 iolog" => Some(Self::Fio2),
            "fio version 3 iolog" => Some(Self::Fio3),
            _ if msr::is_line(first) => Some(Self::MsrCambridge),
            _ if blkparse::is_line(first) => Some(Self::Blkparse),
            _ if strace::is_line(first) => Some(Self::Strace),
            _ => None,
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
        })
    }
}

/// What a line of text is.
pub(crate) enum Line {
    Request(Request),
    /// Something that is no request and may stand there.
    Other,
    /// Everything after this line is a summary.
    End,
    /// None of these; what it should have been.
    Wrong(&'static str),
}

/// Reads the lines of one text format.
pub(crate) enum LineReader {
    Blkparse,
    Fio(fio::Iolog),
    Msr(msr::Csv),
    Strace(strace::Calls),
}

impl LineReader {
    /// The reader of `format`; `None` if it is no text.
    pub(crate) fn new(format: Format) -> Option<Self> {
        match format {
            Format::Blkparse => Some(Self::Blkparse),
            Format::Blktrace => None,
            Format::Fio2 => Some(Self::Fio(fio::Iolog::new(false))),
            Format::Fio3 => Some(Self::Fio(fio::Iolog::new(true))),
            Format::MsrCambridge => Some(Self::Msr(msr::Csv::default())),
            Format::Strace => Some(Self::Strace(strace::Calls::default())),
        }
    }

    pub(crate) fn line(&mut self, text: &str, names: &mut Names) -> Line {
        if text.is_empty() {
            return Line::Other;
        }
        match self {
            Self::Blkparse => blkparse::line(text, names),
            Self::Fio(iolog) => iolog.line(text, names),
            Self::Msr(csv) => csv.line(text, names),
            Self::Strace(calls) => calls.line(text, names),
        }
    }
}

/// The bytes of sectors of 512 bytes; `None` if they are more than a number holds.
fn sectors(count: u64) -> Option<u64> {
    count.checked_mul(512)
}
