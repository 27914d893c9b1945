//! Reading and writing memory of one's own, for the few places that move whole blocks now and then: no
//! `unsafe` for the caller, one allocation per block.

use std::sync::atomic::AtomicU32;

use flashgrain_device::{Arena, Op};

use super::current::{read, write};
use super::devices::{Devices, Role};
use crate::Error;
use crate::page::Page;

/// Bytes that a device can read into and write from. Zeros at first.
pub(crate) struct Block {
    memory: Arena,
    length_bytes: usize,
}

impl Block {
    /// A block of `length_bytes` zeros.
    pub fn new(length_bytes: usize) -> Result<Self, Error> {
        Ok(Self { memory: Arena::new(length_bytes)?, length_bytes })
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[..self.length_bytes]
    }

    /// Its bytes as a page.
    pub fn page(&mut self) -> Page<'_> {
        // SAFETY: the arena is that long, aligned to 4096, initialised, and borrowed exclusively; every bit
        // pattern is an `AtomicU32`.
        Page::new(unsafe {
            std::slice::from_raw_parts(self.memory.as_ptr().cast::<AtomicU32>(), self.length_bytes / 4)
        })
    }

    /// Fills itself from `offset_bytes` on.
    pub fn read(&mut self, devices: &Devices, role: Role, offset_bytes: u64) -> Result<(), Error> {
        self.read_some(devices, role, offset_bytes, self.length_bytes as u32)
    }

    /// Reads its first `length_bytes`, or all of it, from `offset_bytes` on.
    pub fn read_some(
        &mut self,
        devices: &Devices,
        role: Role,
        offset_bytes: u64,
        length_bytes: u32,
    ) -> Result<(), Error> {
        let length = length_bytes.min(self.length_bytes as u32);
        // SAFETY: the arena has that many bytes, aligned to 4096, and is borrowed exclusively until the read
        // has been answered.
        let done = unsafe { read(devices, role, offset_bytes, self.memory.as_ptr(), length) };
        done.map_err(|failure| failure.error(format!("read {length} bytes at byte {offset_bytes}")))
    }

    /// Writes itself at `offset_bytes`; durable after a flush.
    pub fn write(&self, devices: &Devices, role: Role, offset_bytes: u64) -> Result<(), Error> {
        self.write_some(devices, role, offset_bytes, self.length_bytes as u32)
    }

    /// Writes its first `length_bytes`, or all of it, likewise.
    pub fn write_some(
        &self,
        devices: &Devices,
        role: Role,
        offset_bytes: u64,
        length_bytes: u32,
    ) -> Result<(), Error> {
        let (memory, length) = (self.memory.as_ptr(), length_bytes.min(self.length_bytes as u32));
        // SAFETY: as for `read`.
        let done = unsafe { write(devices, role, Op::Write, offset_bytes, memory, length) };
        done.map_err(|failure| failure.error(format!("write {length} bytes at byte {offset_bytes}")))
    }
}
