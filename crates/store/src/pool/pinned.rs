//! Blocks that stay in memory for as long as their user wants, within a part of the budget.

use super::Pool;
use super::blocks::BlockShare;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The part of the budget, in eighths, that pinned blocks take at most: half may be lent to memtables, and
/// pages need the rest.
const PINNED_EIGHTHS: u64 = 3;

/// Bytes of all pinned blocks.
#[derive(Default)]
pub(super) struct Pins(AtomicU64);

/// A block that stays in memory as long as this lives.
pub(crate) struct PinnedBlock {
    block: BlockShare,
    pins: Arc<Pins>,
}

impl Pool {
    /// Keeps a block in memory, unless too much is kept so.
    pub fn try_pin(&self, block: &BlockShare) -> Option<PinnedBlock> {
        let most = self.pages.budget_bytes() / 8 * PINNED_EIGHTHS;
        let more = |pinned| Some(pinned + block.frame_bytes()).filter(|pinned| *pinned <= most);
        self.pins.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(PinnedBlock { block: block.clone(), pins: Arc::clone(&self.pins) })
    }
}

impl Drop for PinnedBlock {
    fn drop(&mut self) {
        self.pins.0.fetch_sub(self.block.frame_bytes(), Ordering::Relaxed);
    }
}
