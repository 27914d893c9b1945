//! One recorded request.

use crate::NameId;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// Earlier writes become durable.
    Flush,
    /// Bytes are given up.
    Discard,
}

/// Where a request was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// As a system call to a file.
    #[default]
    File,
    /// At a drive.
    Drive,
}

/// Where the first byte of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The name of the device or file.
    pub name: NameId,
    /// The offset from its begin.
    pub offset_bytes: u64,
}

/// One recorded request. An offset in a file is not an address on the drive: a request has either address or
/// both, as far as its trace says, wherever it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was issued, in nanoseconds since an arbitrary moment of the trace.
    pub time_ns: u64,
    /// Where it was seen.
    pub layer: Layer,
    /// Its kind.
    pub operation: Operation,
    /// Its address on a device, if that is known.
    pub on_device: Option<Address>,
    /// Its address in a file, if that is known.
    pub in_file: Option<Address>,
    /// How many bytes; 0 for flushes.
    pub length_bytes: u64,
    /// The number of the process, if that is known.
    pub process: Option<u32>,
    /// How long it took, in nanoseconds, if that is known.
    pub latency_ns: Option<u64>,
}
