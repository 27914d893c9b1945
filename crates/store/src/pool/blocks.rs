//! Blocks of owned segments in memory: frames of the pool in addition to its pages, under the same clock.
//!
//! A block never changes, and each user of one has a share of it, so that readers take no latch. The clock
//! evicts a block like a page that has not been used for half a turn, unless it has shares. In
//! [`Meta::page`](super::Meta) its frame has the block's *tag*, which no page has as its number.
//!
//! The blocks of a segment that is given up are not removed at once: no later use of the segment has the same
//! opening sequence, so they are not asked for again and leave in time.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::frames::{Frame, Frames};
use super::waiters::{Waiters, changed};
use super::{Access, HOT, Pool, SCANNED};
use crate::Error;
use crate::class::{CLASSES, class_bytes};
use crate::hash::mix;
use crate::header::PageId;
use crate::page::Page;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::task::park;

/// Bit of all tags; no page has such a number.
const TAG: u64 = 1 << 63;

/// Blocks that were used once take at most this part of the budget, or one of each part of the table.
const ONCE_DIVISOR: u64 = 16;

/// Parts of the table, by tag, each with a lock.
const PARTS: usize = 64;

/// A block of an owned segment, or of a page's image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockId {
    /// The segment's opening sequence, which no other use of a segment has that the block could be in.
    pub opening: u64,
    /// Where in an owned segment it begins; of an image, [`IN_IMAGE`] with the place on the device.
    pub start: u64,
}

/// In the place of a block of an image.
pub(super) const IN_IMAGE: u64 = 1 << 63;

impl BlockId {
    fn tag(self) -> u64 {
        mix(mix(self.opening) ^ self.start) | TAG
    }
}

/// Whether a frame with this number holds a block.
#[inline]
pub(super) fn is_block(id: u64) -> bool {
    id & TAG != 0
}

/// The content of a block, in a frame.
struct CachedBlock {
    frames: Arc<Frames>,
    frame: Frame,
    /// Whether the frame has another user by now.
    is_given_away: bool,
    length: usize,
    id: BlockId,
    shares: AtomicU32,
}

/// A share of a block, which stays in memory as long as it has shares.
pub(crate) struct BlockShare(Arc<CachedBlock>);

impl BlockShare {
    /// The block's content.
    #[inline]
    pub fn content(&self) -> &[u8] {
        self.0.content()
    }

    /// The same as a page, or a part of one.
    #[inline]
    pub fn page(&self) -> Page<'_> {
        self.0.frames.page(self.0.frame).part(0, self.0.length as u32)
    }

    /// Bytes of memory that it takes.
    pub(super) fn frame_bytes(&self) -> u64 {
        class_bytes(self.0.frame.class())
    }

    fn of(block: &Arc<CachedBlock>) -> Self {
        block.shares.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(block))
    }
}

impl Clone for BlockShare {
    fn clone(&self) -> Self {
        Self::of(&self.0)
    }
}

impl Drop for BlockShare {
    fn drop(&mut self) {
        if self.0.shares.fetch_sub(1, Ordering::Release) == 1 {
            // The block may leave memory now, and a thread may wait for that.
            changed();
            self.0.frames.wake_one();
        }
    }
}

impl CachedBlock {
    #[inline]
    fn content(&self) -> &[u8] {
        // SAFETY: the frame has that many bytes, which were written before this was made. No thread writes
        // them as long as it lives: the frame belongs to it alone.
        unsafe { std::slice::from_raw_parts(self.frames.memory(self.frame), self.length) }
    }

    /// Its frame, for the next user.
    fn into_frame(mut self) -> Frame {
        self.frames.meta(self.frame).page.store(0, Ordering::Release);
        self.is_given_away = true;
        self.frame
    }
}

impl Drop for CachedBlock {
    fn drop(&mut self) {
        if !self.is_given_away {
            self.frames.meta(self.frame).page.store(0, Ordering::Release);
            self.frames.give_back(&[self.frame]);
        }
    }
}

/// Tags are mixed already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |all, byte| all << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, tag: u64) {
        self.0 = tag;
    }
}

#[derive(Default)]
struct Part {
    blocks: HashMap<u64, Arc<CachedBlock>, BuildHasherDefault<AsIs>>,
    /// Tags of blocks that are being read.
    loading: Vec<u64>,
    /// Tags of blocks that were asked for once when they came in, oldest first.
    once: VecDeque<u64>,
}

/// The blocks in memory, by their tags.
pub(super) struct Blocks {
    parts: Box<[Padded]>,
}

#[derive(Default)]
#[repr(align(128))]
struct Padded {
    part: Mutex<Part>,
    /// The threads and tasks that wait for a block that another one reads, by its tag.
    waiters: Waiters,
}

/// A block that is being read. On every path other readers stop waiting when this is dropped.
struct Loading<'a> {
    blocks: &'a Blocks,
    tag: u64,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.blocks.part(self.tag).loading.retain(|tag| *tag != self.tag);
        changed();
        self.blocks.waiters(self.tag).wake_all(self.tag);
    }
}

impl Part {
    /// A block came in that is perhaps used once only. Returns another one that has come in so before the
    /// last `once_max` and was not used since: it leaves memory.
    fn note_once(&mut self, tag: u64, once_max: usize) -> Option<Arc<CachedBlock>> {
        self.once.push_back(tag);
        let oldest = if self.once.len() > once_max { self.once.pop_front() } else { None }?;
        let Entry::Occupied(entry) = self.blocks.entry(oldest) else { return None };
        let block = entry.get();
        let is_used = block.frames.meta(block.frame).state.load(Ordering::Relaxed) == HOT;
        // Shares are given out under the lock, or by the holder of one.
        let is_shared = block.shares.load(Ordering::Acquire) > 0;
        (!is_used && !is_shared).then(|| entry.remove())
    }
}

impl Blocks {
    pub fn new() -> Self {
        Self { parts: (0..PARTS).map(|_| Padded::default()).collect() }
    }

    fn part(&self, tag: u64) -> MutexGuard<'_, Part> {
        self.parts[tag as usize % PARTS].part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiters(&self, tag: u64) -> &Waiters {
        &self.parts[tag as usize % PARTS].waiters
    }

    /// Has the caller read the block, unless another one does or it is there.
    fn begin(&self, tag: u64) -> Option<Loading<'_>> {
        let mut part = self.part(tag);
        if part.blocks.contains_key(&tag) || part.loading.contains(&tag) {
            return None;
        }
        part.loading.push(tag);
        Some(Loading { blocks: self, tag })
    }

    /// Waits until the block is not being read.
    fn wait(&self, tag: u64) {
        while self.part(tag).loading.contains(&tag) {
            let _place = self.waiters(tag).enter(tag);
            if self.part(tag).loading.contains(&tag) {
                park();
            }
        }
    }

    /// The frame of a block that leaves memory; `None` if the block has shares.
    pub fn evict(&self, tag: u64) -> Option<Frame> {
        let mut part = self.part(tag);
        let Entry::Occupied(entry) = part.blocks.entry(tag) else { return None };
        // Shares are given out under the lock, or by the holder of one.
        if entry.get().shares.load(Ordering::Acquire) > 0 {
            return None;
        }
        // The thread that has just dropped the last share may be about to forget the block, and gives the
        // frame back.
        Arc::into_inner(entry.remove()).map(CachedBlock::into_frame)
    }

    fn find(&self, id: BlockId) -> Option<BlockShare> {
        let tag = id.tag();
        self.part(tag).blocks.get(&tag).filter(|block| block.id == id).map(BlockShare::of)
    }
}

impl Pool {
    /// The block, if it is in memory.
    #[inline]
    pub fn block(&self, id: BlockId) -> Option<BlockShare> {
        let block = self.known_block(id);
        if block.is_none() {
            self.pages.count_miss();
        }
        block
    }

    /// The same, and it does not count as missed if it is not there.
    pub fn known_block(&self, id: BlockId) -> Option<BlockShare> {
        let block = self.blocks.find(id)?;
        self.pages.count_hit();
        let state = &block.0.frames.meta(block.0.frame).state;
        if state.load(Ordering::Relaxed) != HOT {
            state.store(HOT, Ordering::Relaxed);
        }
        Some(block)
    }

    /// The block, which `read` reads if it is neither in memory nor being read.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn block_or(
        &self,
        id: BlockId,
        access: Access,
        read: &mut dyn FnMut() -> Result<Vec<u8>, Error>,
    ) -> Result<Result<BlockShare, Vec<u8>>, Error> {
        loop {
            if let Some(block) = self.block(id) {
                return Ok(Ok(block));
            }
            match self.blocks.begin(id.tag()) {
                Some(_loading) => {
                    let content = read()?;
                    return Ok(self.keep_block(id, access, &content).ok_or(content));
                }
                None => self.blocks.wait(id.tag()),
            }
        }
    }

    /// Keeps the content of a block that was read. It may wait for memory. `None` if it finds none, as when
    /// all is in use: the caller may have shares of other blocks.
    pub fn keep_block(&self, id: BlockId, access: Access, content: &[u8]) -> Option<BlockShare> {
        let class = (0..CLASSES).find(|class| class_bytes(*class) as usize >= content.len())?;
        let frame = match planted!(BlockWaitsForBlocks) {
            true => self.evictor().take_frame(class).ok()?,
            false => self.evictor().take_frame_beside_others(class).ok()??,
        };
        let frames = Arc::clone(self.pages.shared_frames());
        // SAFETY: the frame was taken just now, so that no other thread uses its memory, and is long enough.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), frames.memory(frame), content.len()) };
        let tag = id.tag();
        frames.publish(PageId(tag), frame, if access == Access::Scan { SCANNED } else { HOT });
        let (length, shares) = (content.len(), AtomicU32::new(0));
        let block = Arc::new(CachedBlock { frames, frame, is_given_away: false, length, id, shares });
        let share = BlockShare::of(&block);
        let once_max = self.pages.budget_bytes() / class_bytes(0) / ONCE_DIVISOR / PARTS as u64;
        let mut part = self.blocks.part(tag);
        let before = part.blocks.insert(tag, block);
        let pushed_out = match access {
            Access::Scan => part.note_once(tag, once_max.max(1) as usize),
            Access::Normal => None,
        };
        drop(part);
        // Outside of the lock: they may give their frames back.
        drop((before, pushed_out));
        Some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::testing::pool_over;

    fn id(start: u64) -> BlockId {
        BlockId { opening: 7, start }
    }

    fn content(start: u64) -> Vec<u8> {
        (0..4000).map(|at| (start + at) as u8).collect()
    }

    #[test]
    fn blocks_that_are_used_stay_and_others_make_room() {
        let pool = pool_over(&Arc::default(), 1 << 20);
        let used = pool.keep_block(id(0), Access::Normal, &content(0)).unwrap();
        for start in 1..2000 {
            assert_eq!(
                pool.keep_block(id(start), Access::Normal, &content(start)).unwrap().content(),
                content(start)
            );
            // Often enough for the clock.
            assert!(pool.block(id(1)).is_some_and(|block| block.content() == content(1)), "{start}");
        }
        let there = (2..2000).filter(|start| pool.block(id(*start)).is_some()).count();
        assert!((100..260).contains(&there), "{there}");
        // The first has a share, though it was not asked for again.
        assert_eq!((used.content(), pool.block(id(0)).is_some()), (&content(0)[..], true));
        assert!(pool.block(BlockId { opening: 8, start: 0 }).is_none());
    }

    /// The frames of the first are all shared: more blocks are not kept, and a waiter for a frame gets that
    /// of a share that is dropped.
    #[test]
    fn nobody_waits_for_memory_with_shares_of_it_in_hand() {
        let pool = pool_over(&Arc::default(), 1 << 20);
        let kept: Vec<_> = (0..2000)
            .map_while(|start| pool.keep_block(id(start), Access::Normal, &content(start)))
            .collect();
        assert!((100..260).contains(&kept.len()), "{}", kept.len());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.reserve(0).map(drop));
            while !pool.pages.frames().is_awaited() {
                std::thread::yield_now();
            }
            drop(kept);
            waiting.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_block_that_is_kept_again_takes_the_place_of_the_first() {
        let pool = pool_over(&Arc::default(), 1 << 20);
        let first = pool.keep_block(id(0), Access::Normal, &content(0)).unwrap();
        let second = pool.keep_block(id(0), Access::Normal, &content(0)).unwrap();
        assert_eq!(first.content(), second.content());
        drop(first);
        assert!(Arc::ptr_eq(&second.0, &pool.block(id(0)).unwrap().0));
        assert!(pool.keep_block(id(1), Access::Normal, &vec![1; 2 << 20]).is_none());
    }
}
