//! The CloudPhysics traces: records of VMware's vscsi layer, little endian, of one of two versions:
//!
//! ```text
//!            version 1, 32 bytes          version 2, 40 bytes
//!  0         number, u32                  SCSI command, u16; version << 8, u16
//!  4         bytes, u32                   number, u32
//!  8         scatter list entries, u32    bytes, u32
//! 12         command, u16; version, u16   scatter list entries, u32
//! 16         block of 512 bytes, u64      block, u64
//! 24         time, µs, u64                time, µs, u64
//! 32                                      latency, µs, u64
//! ```

use std::io::BufRead;

use super::sectors;
use crate::{Address, Error, Format, Layer, Names, Operation, Request};

const RECORD_BYTES_MAX: usize = 40;

/// Reads records.
pub(crate) struct Records {
    version: u8,
    offset_bytes: u64,
    first_time: Option<u64>,
}

/// Whether two records of a version begin a trace, as far as it is that long.
fn has_version(head: &[u8], version: u8) -> bool {
    let (length, at) = layout(version);
    let is_record = |number: usize| {
        let Some(record) = head.get(number * length..(number + 1) * length) else { return number > 0 };
        let command = if version == 1 { at - 2 } else { 0 };
        record[at + 1] == version && record[command + 1] == 0
    };
    is_record(0) && is_record(1)
}

/// The bytes of a record, and where its version is.
fn layout(version: u8) -> (usize, usize) {
    if version == 1 { (32, 14) } else { (RECORD_BYTES_MAX, 2) }
}

/// The version of the trace that begins with `head`, if it is one.
pub(crate) fn version(head: &[u8]) -> Option<u8> {
    [2, 1].into_iter().find(|version| has_version(head, *version))
}

impl Records {
    pub fn new(version: u8) -> Self {
        Self { version, offset_bytes: 0, first_time: None }
    }

    /// The next request; `None` at the end.
    pub fn next(&mut self, source: &mut impl BufRead, names: &mut Names) -> Result<Option<Request>, Error> {
        loop {
            if source.fill_buf()?.is_empty() {
                return Ok(None);
            }
            let (length, at) = layout(self.version);
            let mut record = [0; RECORD_BYTES_MAX];
            source.read_exact(&mut record[..length]).map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => self.damaged("a whole record"),
                _ => Error::Read(error),
            })?;
            if record[at + 1] != self.version {
                return Err(self.damaged("a record of the same version as before"));
            }
            let request = self.request(&record, names);
            self.offset_bytes += length as u64;
            match request {
                Some(request) => return Ok(Some(request)),
                None => continue,
            }
        }
    }

    /// A read or write; other commands are none.
    fn request(&mut self, record: &[u8; RECORD_BYTES_MAX], names: &mut Names) -> Option<Request> {
        let (command_at, length_at) = if self.version == 1 { (12, 4) } else { (0, 8) };
        let operation = match u16::from_le_bytes(bytes(record, command_at)) {
            0x08 | 0x28 | 0xa8 | 0x88 => Operation::Read,
            0x0a | 0x2a | 0xaa | 0x8a => Operation::Write,
            0x35 | 0x91 => Operation::Flush,
            0x42 => Operation::Discard,
            _ => return None,
        };
        let time = u64::from_le_bytes(bytes(record, 24));
        let first = *self.first_time.get_or_insert(time);
        let offset_bytes = sectors(u64::from_le_bytes(bytes(record, 16)))?;
        let latency = (self.version == 2).then(|| u64::from_le_bytes(bytes(record, 32)));
        Some(Request {
            time_ns: time.saturating_sub(first).saturating_mul(1000),
            layer: Layer::Drive,
            operation,
            on_device: Some(Address { name: names.id("vscsi"), offset_bytes }),
            in_file: None,
            length_bytes: u64::from(u32::from_le_bytes(bytes(record, length_at))),
            process: None,
            latency_ns: latency.map(|micros| micros.saturating_mul(1000)),
        })
    }

    fn damaged(&self, expected: &'static str) -> Error {
        Error::Record { format: Format::CloudPhysics, offset_bytes: self.offset_bytes, expected }
    }
}

fn bytes<const N: usize>(record: &[u8; RECORD_BYTES_MAX], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}
