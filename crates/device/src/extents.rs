//! Where the bytes of a file are on its block device, as its file system says (`FS_IOC_FIEMAP`).

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::Error;

/// Bytes of a file that lie on its block device without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The offset in the file.
    pub file_offset_bytes: u64,
    /// The offset on the block device of the file system.
    pub device_offset_bytes: u64,
    /// How many bytes there are.
    pub length_bytes: u64,
}

/// How many extents the kernel is asked for at a time.
const EXTENTS_AT_ONCE: usize = 256;

/// `FS_IOC_FIEMAP` of linux/fs.h.
const FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;

/// Write the file out first, so that its bytes have a place.
const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 1;
/// The place is unknown, not yet decided, of other bytes than these (compressed), or inside other data.
const EXTENT_NOWHERE: u32 = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x400;

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct KernelExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// `struct fiemap` of the same.
#[repr(C)]
struct Question {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [KernelExtent; EXTENTS_AT_ONCE],
}

/// The extents of a file that have a place of their own, in the order of their offsets.
///
/// # Errors
/// [`Error::Os`] if the file system does not tell.
pub fn extents(file: &File) -> Result<Vec<Extent>, Error> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let mut question = Question {
            start,
            length: u64::MAX - start,
            flags: FLAG_SYNC,
            mapped: 0,
            room: EXTENTS_AT_ONCE as u32,
            reserved: 0,
            extents: [KernelExtent::default(); EXTENTS_AT_ONCE],
        };
        // SAFETY: the kernel reads the question and writes no more extents than it has room for.
        if unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP, &raw mut question) } != 0 {
            return Err(Error::last_os("ask the file system where a file is (FIEMAP)"));
        }
        let mapped = question.extents.get(..question.mapped as usize).unwrap_or_default();
        for extent in mapped.iter().filter(|extent| extent.flags & EXTENT_NOWHERE == 0) {
            found.push(Extent {
                file_offset_bytes: extent.logical,
                device_offset_bytes: extent.physical,
                length_bytes: extent.length,
            });
        }
        match mapped.last() {
            Some(last) if last.flags & EXTENT_LAST == 0 => start = last.logical.saturating_add(last.length),
            _ => return Ok(found),
        }
    }
}
