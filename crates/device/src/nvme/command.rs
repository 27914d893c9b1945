//! Commands of the NVM command set, as the kernel takes them for passthrough.
//!
//! The layout is `struct nvme_uring_cmd`, and `struct nvme_passthru_cmd` but for its last field, of
//! linux/nvme_ioctl.h. The double words are those of the NVM Command Set specification 1.0, section 3.2.

use std::io;
use std::os::fd::RawFd;

/// `NVME_IOCTL_ID` of linux/nvme_ioctl.h: the namespace's number.
const IOCTL_ID: libc::Ioctl = 0x4e40_u32 as libc::Ioctl;
/// `NVME_IOCTL_ADMIN_CMD`: a command to the controller's admin queue.
const IOCTL_ADMIN: libc::Ioctl = 0xc048_4e41_u32 as libc::Ioctl;
/// `NVME_IOCTL_IO_CMD`: a command to the namespace, blocking.
const IOCTL_IO: libc::Ioctl = 0xc048_4e43_u32 as libc::Ioctl;

/// `NVME_URING_CMD_IO`: a command to the namespace by `IORING_OP_URING_CMD`.
pub(crate) const URING_IO: u32 = 0xc048_4e80;

/// Bytes of `struct nvme_uring_cmd`.
const COMMAND_BYTES: usize = 72;

/// Room for a command in a submission entry of 128 bytes.
const ENTRY_BYTES: usize = 80;

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const DATASET_MANAGEMENT: u8 = 0x09;
const IDENTIFY: u8 = 0x06;

/// Force unit access: the write is on the medium before it completes (double word 12).
const FORCE_UNIT_ACCESS: u32 = 1 << 30;
/// The ranges are no longer needed (double word 11 of dataset management).
const DEALLOCATE: u32 = 1 << 2;

/// One command.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    double_words_2_and_3: [u32; 2],
    metadata: u64,
    data: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    /// Double words 10 to 15.
    double_words: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<Command>() == COMMAND_BYTES);

/// Blocks of a namespace: the first, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub first: u64,
    pub count: u32,
}

/// The range of a dataset management command, in the drive's byte order.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range([u8; 16]);

impl Range {
    /// No attributes, the number of blocks, and the first.
    pub fn new(blocks: Blocks) -> Self {
        let mut bytes = [0; 16];
        bytes[4..8].copy_from_slice(&blocks.count.to_le_bytes());
        bytes[8..].copy_from_slice(&blocks.first.to_le_bytes());
        Self(bytes)
    }
}

impl Command {
    /// Reads `blocks` into `memory`, `bytes` long.
    pub fn read(namespace: u32, blocks: Blocks, memory: *mut u8, bytes: u32) -> Self {
        Self::transfer(READ, namespace, blocks, memory, bytes)
    }

    /// Writes `memory`; with `durable`, past the drive's volatile cache.
    pub fn write(namespace: u32, blocks: Blocks, memory: *mut u8, bytes: u32, durable: bool) -> Self {
        let mut command = Self::transfer(WRITE, namespace, blocks, memory, bytes);
        if durable {
            command.double_words[2] |= FORCE_UNIT_ACCESS;
        }
        command
    }

    /// Makes every completed write durable.
    pub fn flush(namespace: u32) -> Self {
        Self { opcode: FLUSH, namespace, ..Self::default() }
    }

    /// Tells the drive that the blocks of `range` are no longer needed.
    pub fn discard(namespace: u32, range: *const Range) -> Self {
        Self {
            opcode: DATASET_MANAGEMENT,
            namespace,
            data: range as u64,
            data_bytes: size_of::<Range>() as u32,
            // The number of ranges less one, which is zero, and their attribute.
            double_words: [0, DEALLOCATE, 0, 0, 0, 0],
            ..Self::default()
        }
    }

    fn transfer(opcode: u8, namespace: u32, blocks: Blocks, memory: *mut u8, bytes: u32) -> Self {
        let [low, high] = [blocks.first as u32, (blocks.first >> 32) as u32];
        Self {
            opcode,
            namespace,
            data: memory as u64,
            data_bytes: bytes,
            // The drive counts from zero.
            double_words: [low, high, blocks.count.saturating_sub(1) & 0xffff, 0, 0, 0],
            ..Self::default()
        }
    }

    /// The command as a submission entry holds it.
    pub fn entry_bytes(self) -> [u8; ENTRY_BYTES] {
        // SAFETY: both are plain bytes of this size, and `Command` has no padding: its fields add up to it.
        let bytes: [u8; COMMAND_BYTES] = unsafe { std::mem::transmute(self) };
        let mut entry = [0; ENTRY_BYTES];
        entry[..COMMAND_BYTES].copy_from_slice(&bytes);
        entry
    }

    /// Runs it on the namespace of `fd`, blocking.
    ///
    /// Returns the drive's status, zero for success.
    ///
    /// # Safety
    /// `data` is memory that the command may use for `data_bytes`, or null.
    pub unsafe fn run(mut self, fd: RawFd) -> io::Result<u16> {
        // SAFETY: the kernel reads one command and writes its last field; the caller vouches for its memory.
        status_of(unsafe { libc::ioctl(fd, IOCTL_IO, &raw mut self) })
    }
}

/// The number of the namespace of `fd`.
pub(crate) fn namespace_number(fd: RawFd) -> io::Result<u32> {
    // SAFETY: this call takes no memory of ours.
    let number = unsafe { libc::ioctl(fd, IOCTL_ID) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    u32::try_from(number).map_err(io::Error::other)
}

/// Structures that a drive describes itself by (`CNS` of the identify command).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structure {
    Namespace = 0,
    Controller = 1,
}

/// Bytes of each.
pub(crate) const STRUCTURE_BYTES: usize = 4096;

/// Asks the drive of `fd` for a description. The status is not zero if the drive refuses.
pub(crate) fn identify(fd: RawFd, namespace: u32, structure: Structure) -> io::Result<(u16, Vec<u8>)> {
    let mut answer = vec![0; STRUCTURE_BYTES];
    let mut command = Command {
        opcode: IDENTIFY,
        namespace: if structure == Structure::Namespace { namespace } else { 0 },
        data: answer.as_mut_ptr() as u64,
        data_bytes: STRUCTURE_BYTES as u32,
        double_words: [structure as u32, 0, 0, 0, 0, 0],
        ..Command::default()
    };
    // SAFETY: the drive writes at most `data_bytes` into `answer`, the kernel the command's last field.
    let status = status_of(unsafe { libc::ioctl(fd, IOCTL_ADMIN, &raw mut command) })?;
    Ok((status, answer))
}

fn status_of(result: libc::c_int) -> io::Result<u16> {
    match u16::try_from(result) {
        Ok(status) => Ok(status),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(entry: &[u8], offset: usize) -> u32 {
        u32::from_ne_bytes(entry[offset..offset + 4].try_into().unwrap())
    }

    fn long(entry: &[u8], offset: usize) -> u64 {
        u64::from_ne_bytes(entry[offset..offset + 8].try_into().unwrap())
    }

    /// The offsets are those of linux/nvme_ioctl.h.
    #[test]
    fn a_read_is_laid_out_as_the_kernel_reads_it() {
        let blocks = Blocks { first: 0x1_2345_6789, count: 8 };
        let entry = Command::read(7, blocks, 0xabcd_0000 as *mut u8, 4096).entry_bytes();
        assert_eq!((entry[0], word(&entry, 4)), (2, 7));
        assert_eq!((long(&entry, 16), long(&entry, 24)), (0, 0xabcd_0000));
        assert_eq!((word(&entry, 32), word(&entry, 36)), (0, 4096));
        assert_eq!((word(&entry, 40), word(&entry, 44)), (0x2345_6789, 1));
        assert_eq!((word(&entry, 48), word(&entry, 64)), (7, 0));
        assert_eq!(entry[72..], [0; 8]);
    }

    #[test]
    fn only_durable_writes_go_past_the_cache() {
        let blocks = Blocks { first: 1, count: 0x1_0000 };
        let plain = Command::write(1, blocks, std::ptr::null_mut(), 0, false).entry_bytes();
        let durable = Command::write(1, blocks, std::ptr::null_mut(), 0, true).entry_bytes();
        assert_eq!((plain[0], word(&plain, 48)), (1, 0xffff));
        assert_eq!(word(&durable, 48), 0x4000_ffff);
    }

    #[test]
    fn a_flush_names_its_namespace_and_nothing_else() {
        let entry = Command::flush(3).entry_bytes();
        assert_eq!(word(&entry, 4), 3);
        assert!(entry.iter().enumerate().all(|(at, byte)| *byte == 0 || at == 4));
    }

    #[test]
    fn a_discard_carries_one_range() {
        let range = Range::new(Blocks { first: 0x0102_0304_0506, count: 0x0a0b_0c0d });
        assert_eq!(range.0, [0, 0, 0, 0, 0x0d, 0x0c, 0x0b, 0x0a, 6, 5, 4, 3, 2, 1, 0, 0]);
        let entry = Command::discard(1, &raw const range).entry_bytes();
        assert_eq!((entry[0], long(&entry, 24)), (9, &raw const range as u64));
        assert_eq!((word(&entry, 36), word(&entry, 40), word(&entry, 44)), (16, 0, 4));
    }
}
