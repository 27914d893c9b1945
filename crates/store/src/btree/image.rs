//! Searches that read single blocks of nodes that are not in memory (see [`division`](super::division)).
//!
//! A search reads the first block of a node. Its directory has the block of the key's part; that block has
//! come with the first one if the request was wide enough, or else it is read now. While P searches are under
//! way each of them reads single blocks, as in a tree whose nodes are blocks. A single search reads a node of
//! P blocks by one request, as in a tree of large nodes.
//!
//! Directories are also kept by themselves, like records without pages, so that a search that comes again
//! reads the block that it needs and no other, and the directories of many nodes have room in little memory.

use super::division::{briefly, part_at, place_in};
use super::form::InBlocks;
use super::node::Node;
use super::tree::BTree;
use crate::Error;
use crate::hash::hash;
use crate::header::{Header, PAGE_HEADER_BYTES, PageId};
use crate::pool::{Access, ImageBlock, OptimisticGuard, RecordKey};
use crate::segment::blocks::Divided;
use crate::segment::{BlockRead, BroughtBlocks, ImagePlace};

/// Of the searches that find the first block of a node in memory, one in this number has the whole node
/// loaded, if there is unused memory: in a page that is in memory, searches are faster.
const WHOLE_ONE_IN: u64 = 16;

/// A part of a node's image.
pub(super) struct Part {
    block: ImageBlock,
    within: u32,
    length: u32,
    /// The image that it is a part of.
    pub image: ImagePlace,
}

impl Part {
    /// The node that the part is.
    pub fn node(&self) -> Node<'_> {
        Node::new(self.block.page().part(self.within, self.length))
    }
}

/// A node on the way down: in memory, or on the device.
enum Stand<'a> {
    Page(OptimisticGuard<'a>),
    Image(ImagePlace),
}

/// The end of a descent through blocks.
pub(super) enum Above<'a> {
    /// The root, which is a leaf.
    Root(OptimisticGuard<'a>),
    /// The node above the leaf, and the leaf.
    Parent(Parent<'a>),
}

/// A node of level 1, and the child that covers the key.
pub(super) struct Parent<'a> {
    stand: Stand<'a>,
    pub child: PageId,
}

/// A leaf that was found through blocks.
pub(super) enum FoundLeaf<'a> {
    Page(OptimisticGuard<'a>),
    Part(Part),
}

impl BTree {
    fn holds(&self, stand: &Stand<'_>) -> bool {
        match stand {
            Stand::Page(guard) => guard.is_valid(),
            Stand::Image(image) => self.pool.is_image_current(image),
        }
    }

    /// Whether the parent of a leaf is unchanged.
    pub(super) fn is_parent_valid(&self, parent: &Parent<'_>) -> bool {
        self.holds(&parent.stand)
    }

    /// The present place of a child. The caller checks afterwards whether it is still the child.
    fn stand_on(&self, child: PageId) -> Result<Stand<'_>, Error> {
        if let Some(guard) = self.pool.resident(child) {
            return Ok(Stand::Page(guard));
        }
        match self.pool.image_of(child) {
            Some(image) => Ok(Stand::Image(image)),
            None => self.pool.read(child, Access::Normal).map(Stand::Page),
        }
    }

    /// The node above the leaf that covers `key`; `None` if something on the way has changed meanwhile.
    pub(super) fn above_leaf(&self, key: &[u8], blocks: InBlocks) -> Result<Option<Above<'_>>, Error> {
        let root = self.pool.read(self.root, Access::Normal)?;
        let mut level = Node::new(root.page()).level();
        if level == 0 {
            return Ok(Some(Above::Root(root)));
        }
        let mut stand = Stand::Page(root);
        loop {
            let child = match &stand {
                Stand::Page(guard) => {
                    let node = Node::new(guard.page());
                    node.child(node.child_slot(key))
                }
                Stand::Image(image) => match self.current_part(*image, level, key, blocks)? {
                    Some(part) => part.node().child(part.node().child_slot(key)),
                    None => return Ok(None),
                },
            };
            if !self.holds(&stand) {
                return Ok(None);
            }
            if level == 1 {
                return Ok(Some(Above::Parent(Parent { stand, child })));
            }
            let next = self.stand_on(child);
            if !self.holds(&stand) {
                return Ok(None);
            }
            let next = next?;
            self.check_level(&next, child, level - 1)?;
            (stand, level) = (next, level - 1);
        }
    }

    /// A page in memory has to have the level; the parts of an image are checked later.
    fn check_level(&self, stand: &Stand<'_>, id: PageId, level: u8) -> Result<(), Error> {
        let Stand::Page(guard) = stand else { return Ok(()) };
        let got = Node::new(guard.page()).level();
        if got != level && guard.is_valid() {
            return Err(self.damaged(id, format!("level {level}"), format!("level {got}")));
        }
        Ok(())
    }

    /// The leaf below `parent`; `None` if something has changed meanwhile.
    pub(super) fn leaf_below(
        &self,
        parent: &Parent<'_>,
        key: &[u8],
        blocks: InBlocks,
    ) -> Result<Option<FoundLeaf<'_>>, Error> {
        let leaf = self.stand_on(parent.child);
        if !self.holds(&parent.stand) {
            return Ok(None);
        }
        let leaf = leaf?;
        self.check_level(&leaf, parent.child, 0)?;
        match leaf {
            Stand::Page(guard) => Ok(Some(FoundLeaf::Page(guard))),
            Stand::Image(image) => Ok(self.current_part(image, 0, key, blocks)?.map(FoundLeaf::Part)),
        }
    }

    /// The part of a node's image that covers `key`; `None` if the node is elsewhere by now, or the image is
    /// not in blocks: then the page is in memory next time.
    fn current_part(
        &self,
        image: ImagePlace,
        level: u8,
        key: &[u8],
        blocks: InBlocks,
    ) -> Result<Option<Part>, Error> {
        let found = match self.part_of(image, level, key, blocks) {
            Ok(None) => self.pool.read(image.page, Access::Normal).map(|_| None),
            found => found,
        };
        // If the image is not the page's any more, its segment may have been discarded or used again while it
        // was read.
        match found.is_err() && !self.pool.is_image_current(&image) && !planted!(MovedImageTakenForDamage) {
            true => Ok(None),
            false => found,
        }
    }

    /// The part of a node's image that covers `key`; `None` if the image is not in blocks. A parent that was
    /// valid has led to it.
    fn part_of(
        &self,
        image: ImagePlace,
        level: u8,
        key: &[u8],
        blocks: InBlocks,
    ) -> Result<Option<Part>, Error> {
        let read =
            |number| BlockRead { image, block_bytes: blocks.bytes, number, blocks_max: blocks.per_node };
        let (mut brought, mut bytes) = (None, Vec::new());
        let first = match self.pool.kept_image_block(read(0)) {
            Some(first) => {
                if hash(self.root.0, key).is_multiple_of(WHOLE_ONE_IN) {
                    self.pool.load_if_memory_is_unused(image.page);
                }
                Some(first)
            }
            None if self.recall_directory(image, blocks, &mut bytes) => None,
            None => match self.pool.image_block(read(0), access_to(level), &mut brought)? {
                Some(first) => Some(first),
                None => return Ok(None),
            },
        };
        let Some(first) = first else {
            let Some(at) = place_in(&bytes, key, blocks.bytes) else {
                return Err(self.damaged(image.page, "a directory".into(), format!("{bytes:02x?}")));
            };
            // It is known which block is needed, so that others would not help.
            let read = |number| BlockRead { blocks_max: 1, ..read(number) };
            return self.take_part(read, (None, &mut brought), at, (level, key)).map(Some);
        };
        let page = first.page();
        if page.len_bytes() == 0 {
            return Ok(None);
        }
        let first_part = Header::of(page).back_start;
        let start = match first_part == PAGE_HEADER_BYTES {
            true => first_part,
            false => {
                let directory = page.part(PAGE_HEADER_BYTES, first_part.saturating_sub(PAGE_HEADER_BYTES));
                let directory = Node::new(directory);
                if brought.is_some() {
                    self.keep_directory(image, blocks, (directory, first_part));
                }
                self.part_in(directory, image, level, key)?
            }
        };
        let at = (start, first_part);
        self.take_part(read, (Some(first), &mut brought), at, (level, key)).map(Some)
    }

    /// The part that begins at `start`.
    fn take_part(
        &self,
        read: impl Fn(u32) -> BlockRead,
        (first, brought): (Option<ImageBlock>, &mut Option<BroughtBlocks>),
        (start, first_part): (u32, u32),
        (level, key): (u8, &[u8]),
    ) -> Result<Part, Error> {
        let BlockRead { image, block_bytes, .. } = read(0);
        let divided = Divided { image_bytes: image.location.length_bytes(), first_part };
        let number = start / block_bytes;
        let (Some((within, length)), true) = (part_at(start, block_bytes, divided), start >= first_part)
        else {
            return Err(self.damaged(image.page, "a part of the node".into(), format!("byte {start}")));
        };
        let block = match first.filter(|_| number == 0) {
            Some(first) => Some(first),
            None => self.pool.image_block(read(number), access_to(level), brought)?,
        };
        let Some(block) = block else {
            return Err(self.damaged(image.page, "an image in blocks".into(), "another".into()));
        };
        let part = Part { block, within, length, image };
        let node = part.node();
        if node.level() != level || !node.covers(key) {
            let got = format!("one of level {}, or of other keys", node.level());
            return Err(self.damaged(image.page, format!("a part of level {level} with the key"), got));
        }
        Ok(part)
    }

    /// The byte of the image where the part that covers `key` begins.
    fn part_in(&self, directory: Node<'_>, image: ImagePlace, level: u8, key: &[u8]) -> Result<u32, Error> {
        if directory.level().checked_sub(1) != Some(level) || !directory.covers(key) {
            let got = format!("one of level {}, or of other keys", directory.level());
            return Err(self.damaged(image.page, format!("a directory above level {level}"), got));
        }
        let slot = directory.child_slot(key);
        let slot = if planted!(WrongPartChosen) { slot.saturating_sub(1) } else { slot };
        u32::try_from(directory.child(slot).0)
            .map_err(|_| self.damaged(image.page, "a part of the node".into(), "none".into()))
    }

    fn recall_directory(&self, image: ImagePlace, blocks: InBlocks, into: &mut Vec<u8>) -> bool {
        let key = directory_key(image);
        self.pool.directories().recall(&record_key(blocks, &key), into)
    }

    /// Keeps the directory of an image, whose first part begins there.
    fn keep_directory(&self, image: ImagePlace, blocks: InBlocks, directory: (Node<'_>, u32)) {
        if let Some(bytes) = briefly(directory.0, directory.1) {
            let key = directory_key(image);
            // An image never changes.
            self.pool.directories().keep(&record_key(blocks, &key), &bytes, || true);
        }
    }
}

/// A block of a leaf leaves memory before those of inner nodes, unless it is used again.
fn access_to(level: u8) -> Access {
    if level == 0 { Access::Scan } else { Access::Normal }
}

fn directory_key(image: ImagePlace) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&image.opening.to_le_bytes());
    key[8..].copy_from_slice(&image.location.offset_bytes().to_le_bytes());
    key
}

fn record_key(blocks: InBlocks, key: &[u8; 16]) -> RecordKey<'_> {
    RecordKey { tree: blocks.directories.0, hash: hash(0, key), key }
}
