//! Range tombstones in the blocks of tables.

use super::block::{Block, BlockBuilder};
use crate::buffered::RangeTombstones;
use crate::index::Version;

impl RangeTombstones {
    /// Blocks of at most `block_bytes` each, unless a single removal takes more. A record's key is where a
    /// fragment begins, and its value where it ends.
    pub(super) fn encode(&self, block_bytes: usize) -> Vec<Vec<u8>> {
        let (mut blocks, mut block) = (Vec::new(), BlockBuilder::default());
        for fragment in self.fragments() {
            for removed_at in &fragment.removed_at {
                let is_full = block.len_bytes_with(&fragment.lower, &fragment.upper) > block_bytes;
                if is_full && !block.is_empty() {
                    blocks.push(block.finish());
                }
                block.push(&fragment.lower, Version::tombstone(*removed_at), &fragment.upper);
            }
        }
        if !block.is_empty() {
            blocks.push(block.finish());
        }
        blocks
    }

    /// Adds those of a block; `None` if it is damaged.
    pub(super) fn decode(&mut self, block: &Block) -> Option<()> {
        let mut are_whole = true;
        let is_whole = block.each_from(None, |lower, record| {
            let upper = block.value(record);
            are_whole &= lower < upper && record.version.is_tombstone();
            self.add(lower, upper, record.version.timestamp());
            are_whole
        });
        (is_whole && are_whole).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::buffered::range_testing::{key, of};

    proptest! {
        #[test]
        fn they_come_back_from_blocks(
            removals_ in proptest::collection::vec((key(), key(), 1_u64..20), 0..12),
            block_bytes in 1_usize..200,
        ) {
            let all = of(&removals_);
            let mut back = RangeTombstones::default();
            for block in all.encode(block_bytes) {
                prop_assert!(back.decode(&Block::of(block).unwrap()).is_some());
            }
            prop_assert_eq!(back, all);
        }

        #[test]
        fn nonsense_is_no_panic(bytes: Vec<u8>) {
            if let Some(block) = Block::of(bytes) {
                let _any_answer = RangeTombstones::default().decode(&block);
            }
        }
    }
}
