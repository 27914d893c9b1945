//! Binary records of `blktrace`, `struct blk_io_trace` of Linux, in the byte order of the machine that wrote
//! them:
//!
//! ```text
//!  0 magic 0x65617400 + version 7, u32     28 action, u32: what happened, and to what << 16
//!  4 sequence, u32                         32 process, u32
//!  8 time, ns, u64                         36 device, u32: major << 20 | minor
//! 16 sector, u64                           40 processor, u32
//! 24 bytes, u32                            44 error, u16
//!                                          46 length of what follows the record, u16
//! ```

use std::io::{self, BufRead, Read};

use super::sectors;
use crate::{Address, Error, Format, Layer, Names, Operation, Request};

const RECORD_BYTES: usize = 48;
const MAGIC: u32 = 0x6561_7407;
const ISSUE: u32 = 7;
const IS_WRITE: u32 = 1 << 17;
const IS_FLUSH: u32 = 1 << 18;
const IS_PASSED_THROUGH: u32 = 1 << 25;
const IS_NOTE: u32 = 1 << 26;
const IS_DISCARD: u32 = 1 << 29;

/// Reads records.
pub(crate) struct Records {
    is_big_endian: bool,
    offset_bytes: u64,
}

pub(crate) fn is_begin(head: &[u8]) -> bool {
    head.starts_with(&MAGIC.to_le_bytes()) || head.starts_with(&MAGIC.to_be_bytes())
}

impl Records {
    pub(crate) fn new(head: &[u8]) -> Self {
        Self { is_big_endian: head.starts_with(&MAGIC.to_be_bytes()), offset_bytes: 0 }
    }

    /// The next request; `None` at the end.
    pub(crate) fn next(
        &mut self,
        source: &mut impl BufRead,
        names: &mut Names,
    ) -> Result<Option<Request>, Error> {
        loop {
            if source.fill_buf()?.is_empty() {
                return Ok(None);
            }
            let mut record = [0; RECORD_BYTES];
            let begin = self.offset_bytes;
            source.read_exact(&mut record).map_err(|error| self.cut_off(error))?;
            if self.u32(&record, 0) != MAGIC {
                return Err(self.damaged(begin, "the magic number of a record of version 7"));
            }
            let extra = u64::from(self.u16(&record, 46));
            if io::copy(&mut source.by_ref().take(extra), &mut io::sink())? < extra {
                return Err(self.damaged(begin, "as many bytes after the record as it says"));
            }
            self.offset_bytes += RECORD_BYTES as u64 + extra;
            if let Some(operation) = self.operation(&record) {
                let request = self.request(&record, operation, names);
                return request.map(Some).ok_or_else(|| self.damaged(begin, "a sector on a device"));
            }
        }
    }

    /// The operation of an issued request; `None` for all other records.
    fn operation(&self, record: &[u8; RECORD_BYTES]) -> Option<Operation> {
        let action = self.u32(record, 28);
        if action & 0xffff != ISSUE || action & (IS_NOTE | IS_PASSED_THROUGH) != 0 {
            return None;
        }
        Some(match action {
            _ if action & IS_DISCARD != 0 => Operation::Discard,
            _ if action & IS_FLUSH != 0 && self.u32(record, 24) == 0 => Operation::Flush,
            _ if action & IS_WRITE != 0 => Operation::Write,
            _ => Operation::Read,
        })
    }

    fn request(
        &self,
        record: &[u8; RECORD_BYTES],
        operation: Operation,
        names: &mut Names,
    ) -> Option<Request> {
        let device = self.u32(record, 36);
        let name = names.id(&format!("{},{}", device >> 20, device & 0xf_ffff));
        let length_bytes = u64::from(self.u32(record, 24));
        // A flush has the sector "none", which is no place on the device.
        let sector = if length_bytes == 0 { 0 } else { self.u64(record, 16) };
        Some(Request {
            time_ns: self.u64(record, 8),
            layer: Layer::Drive,
            operation,
            on_device: Some(Address { name, offset_bytes: sectors(sector)? }),
            in_file: None,
            length_bytes,
            process: Some(self.u32(record, 32)),
            latency_ns: None,
        })
    }

    fn cut_off(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged(self.offset_bytes, "a record of 48 bytes"),
            _ => Error::Read(error),
        }
    }

    fn damaged(&self, offset_bytes: u64, expected: &'static str) -> Error {
        Error::Record { format: Format::Blktrace, offset_bytes, expected }
    }

    fn field<const N: usize>(&self, record: &[u8; RECORD_BYTES], at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&record[at..at + N]);
        if self.is_big_endian {
            bytes.reverse();
        }
        bytes
    }

    fn u16(&self, record: &[u8; RECORD_BYTES], at: usize) -> u16 {
        u16::from_le_bytes(self.field(record, at))
    }

    fn u32(&self, record: &[u8; RECORD_BYTES], at: usize) -> u32 {
        u32::from_le_bytes(self.field(record, at))
    }

    fn u64(&self, record: &[u8; RECORD_BYTES], at: usize) -> u64 {
        u64::from_le_bytes(self.field(record, at))
    }
}
