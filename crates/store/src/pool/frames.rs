//! Memory for pages: one range of addresses per size class, of which no more is backed by memory than the budget allows.
//!
//! Each range could hold the whole budget, so no size class can run out of addresses while another has memory to spare; which class has how much
//! memory follows from use (Umbra's variable-size pages). Memory of frames that are given up for another class goes back to the kernel.

use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::latch::Latch;
use crate::page::Page;

/// Smallest page.
pub(crate) const SMALLEST_PAGE_BYTES: u64 = 4 << 10;

/// Sizes of pages: 4 KiB to 1 MiB.
pub(crate) const CLASSES: usize = 9;

const INDEX_BITS: u32 = 28;

/// A place for a page: its size class and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame(u32);

impl Frame {
    fn new(class: usize, index: u32) -> Self {
        Self((class as u32) << INDEX_BITS | index)
    }

    /// From a swip.
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// For a swip.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Its size class.
    pub fn class(self) -> usize {
        (self.0 >> INDEX_BITS) as usize
    }

    fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
}

/// Bytes of a page of this class.
pub(crate) fn class_bytes(class: usize) -> u64 {
    SMALLEST_PAGE_BYTES << class
}

/// What is known of the page in a frame.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Meta {
    /// Guards the page and what refers to it.
    pub latch: Latch,
    /// Which page it is.
    pub page: AtomicU64,
    /// The frame that the page's parent was in when last seen.
    pub parent: AtomicU32,
    /// For the eviction.
    pub state: AtomicU8,
}

/// See the module.
pub(crate) struct Frames {
    classes: [Class; CLASSES],
    budget_bytes: u64,
    used_bytes: AtomicU64,
}

struct Class {
    pages: Mapping,
    metas: Mapping,
    count: u32,
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    /// Given back, and still backed by memory.
    warm: Vec<u32>,
    /// Given back, and not backed.
    cold: Vec<u32>,
    /// From here on frames were never used.
    fresh: u32,
}

impl Frames {
    /// Frames for pages of `budget_bytes` in all.
    pub fn new(budget_bytes: u64) -> io::Result<Self> {
        let class = |class: usize| -> io::Result<Class> {
            let count = (budget_bytes / class_bytes(class)).min(1 << INDEX_BITS);
            Ok(Class {
                pages: Mapping::reserve(count * class_bytes(class))?,
                metas: Mapping::reserve(count * size_of::<Meta>() as u64)?,
                count: count as u32,
                free: Mutex::default(),
            })
        };
        let classes: Vec<Class> = (0..CLASSES).map(class).collect::<io::Result<_>>()?;
        let classes = classes.try_into().map_err(|_| io::Error::other("as many classes as there are"))?;
        Ok(Self { classes, budget_bytes, used_bytes: AtomicU64::new(0) })
    }

    /// Bytes of frames that are taken.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// A frame of the class, unless the budget is used up. Its content is whatever was there.
    pub fn take(&self, class: usize) -> Option<Frame> {
        let bytes = class_bytes(class);
        let taken = self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            (used + bytes <= self.budget_bytes).then_some(used + bytes)
        });
        taken.ok()?;
        let owner = &self.classes[class];
        let mut free = owner.free.lock().unwrap_or_else(PoisonError::into_inner);
        let index = free.warm.pop().or_else(|| free.cold.pop()).or_else(|| {
            let fresh = free.fresh;
            (fresh < owner.count).then(|| {
                free.fresh += 1;
                fresh
            })
        });
        match index {
            Some(index) => Some(Frame::new(class, index)),
            None => {
                self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
                None
            }
        }
    }

    /// Gives a frame back.
    pub fn give_back(&self, frame: Frame) {
        let class = &self.classes[frame.class()];
        class.free.lock().unwrap_or_else(PoisonError::into_inner).warm.push(frame.index() as u32);
        self.used_bytes.fetch_sub(class_bytes(frame.class()), Ordering::Relaxed);
    }

    /// Gives the memory of free frames back to the kernel, so that together with the used ones they keep to the budget.
    pub fn trim(&self) {
        for (number, class) in self.classes.iter().enumerate() {
            let mut free = class.free.lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(index) = free.warm.pop() {
                class.pages.give_up(u64::from(index) * class_bytes(number), class_bytes(number));
                free.cold.push(index);
            }
        }
    }

    /// The bytes of a frame. A frame that does not exist gives those of none.
    #[inline]
    pub fn page(&self, frame: Frame) -> Page<'_> {
        let Some(class) = self.classes.get(frame.class()) else { return Page::new(&[]) };
        let words = class_bytes(frame.class()) as usize / 4;
        if frame.index() >= class.count as usize {
            return Page::new(&[]);
        }
        // SAFETY: the range is mapped as long as `self` lives, and it holds `count` pages of that many words; words are only used atomically.
        Page::new(unsafe {
            std::slice::from_raw_parts(
                class.pages.start.cast::<AtomicU32>().add(frame.index() * words),
                words,
            )
        })
    }

    /// Where a device reads a page to or writes it from.
    pub fn memory(&self, frame: Frame) -> *mut u8 {
        let class = &self.classes[frame.class()];
        class.pages.start.wrapping_add(frame.index() * class_bytes(frame.class()) as usize)
    }

    /// What is known of the page in a frame. The frame exists.
    #[inline]
    pub fn meta(&self, frame: Frame) -> &Meta {
        let class = &self.classes[frame.class()];
        assert!(frame.index() < class.count as usize, "a frame that exists");
        // SAFETY: the range is mapped and holds `count` of them; zeroed memory is a valid `Meta`, which is only changed atomically.
        unsafe { &*class.metas.start.cast::<Meta>().add(frame.index()) }
    }
}

/// Addresses that the kernel backs with zeroed memory when they are first used.
struct Mapping {
    start: *mut u8,
    length: usize,
}

// SAFETY: a mapping is memory that belongs to nobody else; how it is shared is up to those who make references into it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn reserve(bytes: u64) -> io::Result<Self> {
        let length = usize::try_from(bytes.max(1)).map_err(io::Error::other)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: asks for new memory and touches none that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast(), length })
    }

    /// The range is zeros from now on, and takes no memory.
    fn give_up(&self, offset: u64, bytes: u64) {
        // SAFETY: the range lies within the mapping and belongs to a free frame, to which nobody refers.
        unsafe { libc::madvise(self.start.add(offset as usize).cast(), bytes as usize, libc::MADV_DONTNEED) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `reserve`; nothing refers into it any more, as references borrow from the owner.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_shared_by_all_classes() {
        let frames = Frames::new(1 << 20).unwrap();
        let large = frames.take(8).unwrap();
        assert_eq!(frames.take(0), None);
        frames.give_back(large);
        let small: Vec<Frame> = std::iter::from_fn(|| frames.take(0)).collect();
        assert_eq!((small.len(), frames.used_bytes()), (256, 1 << 20));
        assert_eq!(frames.take(8), None);
    }

    #[test]
    fn frames_do_not_overlap_and_trimmed_ones_are_zeros() {
        let frames = Frames::new(1 << 20).unwrap();
        let taken: Vec<Frame> = [0, 0, 1, 2, 0, 4].map(|class| frames.take(class).unwrap()).into();
        for (number, frame) in taken.iter().enumerate() {
            let page = frames.page(*frame);
            assert_eq!(u64::from(page.len_bytes()), class_bytes(frame.class()));
            (0..page.len_bytes()).step_by(4).for_each(|at| page.set_word(at, number as u32 + 1));
            frames.meta(*frame).page.store(number as u64, Ordering::Relaxed);
        }
        for (number, frame) in taken.iter().enumerate() {
            let page = frames.page(*frame);
            assert!((0..page.len_bytes()).step_by(4).all(|at| page.word(at) == number as u32 + 1));
            assert_eq!(frames.meta(*frame).page.load(Ordering::Relaxed), number as u64);
        }
        frames.give_back(taken[2]);
        frames.trim();
        assert_eq!(frames.take(1), Some(taken[2]));
        assert_eq!(frames.page(taken[2]).word(100), 0);
    }

    #[test]
    fn a_frame_that_does_not_exist_has_no_bytes() {
        let frames = Frames::new(1 << 20).unwrap();
        assert_eq!(frames.page(Frame::from_bits(u32::MAX)).len_bytes(), 0);
        assert_eq!(frames.page(Frame::from_bits(1 << 20)).len_bytes(), 0);
    }
}
