//! Addresses that the kernel backs with zeroed memory when they are first used.

use std::io;

use flashgrain_device::Origin;

/// See the module.
pub(super) struct Mapping {
    start: *mut u8,
    length: usize,
    origin: Origin,
}

// SAFETY: a mapping is memory that belongs to it alone; how it is shared is up to the code that makes
// references into it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves that many bytes of addresses. With `huge` the kernel may back them by pages of 2 MiB, which
    /// avoids most TLB misses. Without, it backs no more than the small pages that are used.
    pub fn reserve(bytes: u64, huge: bool) -> io::Result<Self> {
        let length = usize::try_from(bytes.max(1)).map_err(io::Error::other)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: asks for new memory and touches none that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page_size = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: advice on the mapping just made; failure is harmless and ignored.
        unsafe { libc::madvise(start, length, page_size) };
        // A forked child has no use for the pages. If it had them, the first write of either process to a
        // page would copy it, and a read under way would go to the other process' copy. SAFETY: as above.
        unsafe { libc::madvise(start, length, libc::MADV_DONTFORK) };
        Ok(Self { start: start.cast(), length, origin: Origin::here() })
    }

    /// Its first byte.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// The range is zeros from now on, and takes no memory. No other thread uses it meanwhile.
    pub fn give_up(&self, offset: usize, bytes: usize) {
        assert!(offset <= self.length && bytes <= self.length - offset, "a range of the mapping");
        // SAFETY: the range lies within the mapping, and no caller relies on its content.
        unsafe { libc::madvise(self.start.add(offset).cast(), bytes, libc::MADV_DONTNEED) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            // A forked child may have something else at these addresses.
            return;
        }
        // SAFETY: made by `reserve`; nothing refers into it any more, as references borrow from the owner.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
