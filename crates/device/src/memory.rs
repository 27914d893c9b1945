//! Aligned memory for I/O.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::limits::{Limit, limited};
use crate::{Error, Origin};

/// Size of a huge page.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// An ordinary page.
const PAGE_BYTES: usize = 4 << 10;

/// A fixed piece of page-aligned memory, zeroed; the unit that is registered with a channel.
#[derive(Debug)]
pub struct Arena {
    start: NonNull<u8>,
    length_bytes: usize,
    origin: Origin,
}

// SAFETY: an arena is plain memory with no thread affinity; all access goes through raw pointers whose users
// keep the contract of `Channel::submit`.
unsafe impl Send for Arena {}
// SAFETY: as above; `&Arena` only hands out a raw pointer and a length.
unsafe impl Sync for Arena {}

impl Arena {
    /// `length_bytes` of zeroed memory, rounded up to whole pages. Memory of at least a huge page is rounded
    /// up to whole huge pages, which may back it, and is not touched.
    ///
    /// # Errors
    /// [`Error::Os`] if the kernel has no memory to give, [`Error::Limit`] if a limit on the process is the
    /// reason.
    pub fn new(length_bytes: usize) -> Result<Self, Error> {
        let is_huge = length_bytes >= HUGE_PAGE_BYTES;
        let length_bytes =
            length_bytes.max(1).next_multiple_of(if is_huge { HUGE_PAGE_BYTES } else { PAGE_BYTES });
        let start = if is_huge { map(length_bytes) } else { allocate(length_bytes) };
        match start {
            Some(start) => Ok(Self { start, length_bytes, origin: Origin::here() }),
            None => {
                let doing = format!("map {length_bytes} bytes of memory for I/O");
                Err(limited(doing, std::io::Error::last_os_error(), &[Limit::AddressSpace]))
            }
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
        // SAFETY: the memory is `length_bytes` long, readable, writable and initialised (zero); `&mut self`
        // means that no channel holds the arena (they hold it through an `Arc`), so nothing else accesses it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length_bytes) }
    }
}

/// The layout of whole pages.
fn layout(length_bytes: usize) -> Option<Layout> {
    Layout::from_size_align(length_bytes, PAGE_BYTES).ok()
}

/// From the heap: no call of the kernel for each of many small ones.
fn allocate(length_bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: the length is not zero.
    NonNull::new(unsafe { alloc_zeroed(layout(length_bytes)?) })
}

/// Memory mapped by the kernel.
fn map(length_bytes: usize) -> Option<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: an anonymous private mapping at an address of the kernel's choice touches nothing that exists.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), length_bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: advice on the mapping just made; failure is harmless and ignored.
    unsafe { libc::madvise(start, length_bytes, libc::MADV_HUGEPAGE) };
    // In a forked child it would be a copy, and a read under way might go to that.
    // SAFETY: as above.
    unsafe { libc::madvise(start, length_bytes, libc::MADV_DONTFORK) };
    NonNull::new(start.cast())
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.length_bytes >= HUGE_PAGE_BYTES {
            if !self.origin.is_here() {
                // A forked child may have something else at these addresses.
                return;
            }
            // SAFETY: mapped by `new`, in this length; the last owner is going.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.length_bytes) };
        } else if let Some(layout) = layout(self.length_bytes) {
            // SAFETY: allocated by `new` in this layout; the last owner is going.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}
