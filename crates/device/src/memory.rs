//! Aligned memory for I/O.

use std::ptr::NonNull;

use crate::Error;

/// Up to this length an arena takes ordinary pages.
const SMALL_BYTES: usize = 64 << 10;

/// An ordinary page.
const PAGE_BYTES: usize = 4 << 10;

/// A fixed piece of page-aligned memory, zeroed, from the kernel; the unit that is registered with a channel.
#[derive(Debug)]
pub struct Arena {
    start: NonNull<u8>,
    length_bytes: usize,
}

// SAFETY: an arena is plain memory with no thread affinity; all access goes through raw pointers whose users keep the
// contract of `Channel::submit`.
unsafe impl Send for Arena {}
// SAFETY: as above; `&Arena` only hands out a raw pointer and a length.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps `length_bytes`, rounded up to whole 2 MiB so that huge pages may back it; to whole pages if it is small, as hundreds of
    /// threads with a request each would otherwise hold hundreds of huge pages.
    ///
    /// # Errors
    /// [`Error::Os`] if the kernel has no memory to give.
    pub fn new(length_bytes: usize) -> Result<Self, Error> {
        let huge = length_bytes > SMALL_BYTES;
        let length_bytes = length_bytes.max(1).next_multiple_of(if huge { 2 << 20 } else { PAGE_BYTES });
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                if huge {
                    // SAFETY: advice on the mapping just made; failure is harmless and ignored.
                    unsafe { libc::madvise(start.as_ptr().cast(), length_bytes, libc::MADV_HUGEPAGE) };
                }
                Ok(Self { start, length_bytes })
            }
            _ => Err(Error::last_os(format!("map {length_bytes} bytes of memory for I/O"))),
        }
    }

    /// The first byte. Dereferencing is up to the caller's discipline with requests in flight.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes.
    pub fn len_bytes(&self) -> usize {
        self.length_bytes
    }

    /// All bytes, to prepare them before any channel sees the arena.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `length_bytes` long, readable, writable and initialised (zero); `&mut self` means that no
        // channel holds the arena (they hold it through an `Arc`), so nothing else accesses it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length_bytes) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: `start` and `length_bytes` are those of the mapping made in `new`; the last owner is going.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length_bytes) };
    }
}
