//! The form of a tree's nodes: their size, and their blocks.

use super::leaf_hints::TreeNumber;
use crate::class::{CLASSES, class_bytes};
use crate::header::PageKind;

/// The nodes of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeForm {
    /// Their size class.
    pub class: usize,
    /// Each has 2 to the power of this many blocks, and a look-up reads some of them; zero if nodes are read
    /// whole.
    pub blocks_log2: u8,
}

impl From<usize> for NodeForm {
    /// Of nodes that are read whole.
    fn from(class: usize) -> Self {
        Self { class, blocks_log2: 0 }
    }
}

impl NodeForm {
    /// Size class of a block.
    pub fn class_of_blocks(self) -> usize {
        self.class.saturating_sub(self.blocks_log2.into())
    }

    /// Whether nodes of this form exist.
    pub fn is_possible(self) -> bool {
        let in_blocks = || self.class_of_blocks() < PageKind::BLOCK_NODES.len();
        usize::from(self.blocks_log2) <= self.class
            && self.class < CLASSES
            && (self.blocks_log2 == 0 || in_blocks())
    }

    /// Kind of the page that a node is.
    pub(super) fn kind(self) -> PageKind {
        let in_blocks = PageKind::BLOCK_NODES.get(self.class_of_blocks());
        in_blocks.filter(|_| self.blocks_log2 > 0).copied().unwrap_or(PageKind::Node)
    }

    /// Bytes of a node that stay free, so that it has as many bytes in blocks as otherwise.
    pub(super) fn spare_bytes(self) -> u32 {
        if self.blocks_log2 == 0 { 0 } else { class_bytes(self.class) as u32 / SPARE_DIVISOR }
    }
}

/// Each block has a header and fences, and on average room for half a record.
const SPARE_DIVISOR: u32 = 8;

/// How the nodes of a tree are divided into blocks.
#[derive(Clone, Copy)]
pub(super) struct InBlocks {
    /// Bytes of a block.
    pub bytes: u32,
    /// Blocks of a node: P of the PDAM.
    pub per_node: u32,
    /// The directories of the tree's nodes among the records without pages.
    pub directories: TreeNumber,
}

impl InBlocks {
    /// Of nodes of this form, if they are in blocks.
    pub fn of(form: NodeForm) -> Option<Self> {
        (form.blocks_log2 > 0).then(|| Self {
            bytes: class_bytes(form.class_of_blocks()) as u32,
            per_node: 1 << form.blocks_log2,
            directories: TreeNumber::new(),
        })
    }
}
