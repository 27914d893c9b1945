//! Memory of pages outside of the pool's budget.

use std::alloc::{Layout, handle_alloc_error};

use super::mapping::Mapping;
use crate::page::Page;

/// Memory for several pages of one size, for as long as this lives. The kernel backs only the part that is
/// used: a page that nothing was written to takes no memory.
pub(crate) struct Unlent {
    mapping: Mapping,
    page_bytes: u32,
    pages: usize,
}

impl Unlent {
    /// Pages that are all zeros. As with any allocation, the process ends if there are no addresses for it.
    pub fn new(page_bytes: u32, pages: usize) -> Self {
        let bytes = page_bytes as usize * pages;
        let mapping = Mapping::reserve(bytes as u64, false);
        let mapping = mapping.unwrap_or_else(|_| {
            handle_alloc_error(Layout::from_size_align(bytes, 1).unwrap_or(Layout::new::<u8>()))
        });
        Self { mapping, page_bytes, pages }
    }

    /// One of the pages.
    #[inline]
    pub fn page(&self, number: usize) -> Page<'_> {
        assert!(number < self.pages, "a page of the memory");
        let start = self.mapping.start().wrapping_add(number * self.page_bytes as usize);
        // SAFETY: the page lies within the mapping, which lives as long as this and is only ever accessed
        // as words like these. It is aligned, as are the mapping and the length of a page.
        let words = unsafe { std::slice::from_raw_parts(start.cast(), self.page_bytes as usize / 4) };
        Page::new(words)
    }

    /// Bytes of it that the kernel has backed.
    #[cfg(test)]
    pub fn backed_bytes(&self) -> u64 {
        let bytes = self.page_bytes as usize * self.pages;
        let page_bytes = backing_page_bytes();
        let mut backed = vec![0_u8; bytes.div_ceil(page_bytes as usize)];
        // SAFETY: the range is the whole mapping, and there is a byte for each of its pages.
        let done = unsafe { libc::mincore(self.mapping.start().cast(), bytes, backed.as_mut_ptr().cast()) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        backed.iter().filter(|page| **page & 1 != 0).count() as u64 * page_bytes
    }
}

/// Bytes that the kernel backs at a time.
#[cfg(test)]
pub(crate) fn backing_page_bytes() -> u64 {
    // SAFETY: asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).expect("the kernel has pages")
}
