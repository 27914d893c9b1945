//! Pages by number, in a tree of three levels, whose parts may be shared by several tables (images of a
//! drive) until one of them is written.

use std::sync::Arc;

/// Bytes of a page.
pub(super) const PAGE_BYTES: usize = 4096;

/// A page's bytes.
pub(super) type Page = [u8; PAGE_BYTES];

/// Pages of a leaf: a single page in the middle of nowhere then needs little memory in addition to its bytes.
const LEAF_PAGES: u64 = 16;

/// Leaves of a node: 32 MiB.
const NODE_LEAVES: u64 = 512;

const NODE_PAGES: u64 = NODE_LEAVES * LEAF_PAGES;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// Storage of one page.
#[derive(Clone, Debug)]
pub(super) struct PageStorage {
    /// Its newest bytes; `None`: zeros.
    pub page: Option<Arc<Page>>,
    /// The newest of its writes that a power cut may undo, or [`NONE`].
    pub unsettled: u32,
}

const EMPTY: PageStorage = PageStorage { page: None, unsettled: NONE };

#[derive(Clone)]
struct Leaf([PageStorage; LEAF_PAGES as usize]);

#[derive(Clone)]
struct Node([Option<Arc<Leaf>>; NODE_LEAVES as usize]);

/// See the module.
#[derive(Clone)]
pub(super) struct Table {
    nodes: Vec<Option<Arc<Node>>>,
}

/// Places of a page in a node's leaves and in a leaf's slots.
#[inline]
fn places(page: u64) -> (usize, usize, usize) {
    ((page / NODE_PAGES) as usize, (page % NODE_PAGES / LEAF_PAGES) as usize, (page % LEAF_PAGES) as usize)
}

impl Table {
    /// Room for `pages` pages; none is stored.
    pub fn new(pages: u64) -> Self {
        Self { nodes: (0..pages.div_ceil(NODE_PAGES)).map(|_| None).collect() }
    }

    /// The slot of `page`, if it was ever asked for to be written.
    #[inline]
    pub fn get(&self, page: u64) -> Option<&PageStorage> {
        let (node, leaf, slot) = places(page);
        Some(&self.nodes[node].as_ref()?.0[leaf].as_ref()?.0[slot])
    }

    /// The slot of `page`, to be changed, if there is one.
    #[inline]
    pub fn get_mut(&mut self, page: u64) -> Option<&mut PageStorage> {
        let (node, leaf, slot) = places(page);
        let node = Arc::make_mut(self.nodes[node].as_mut()?);
        Some(&mut Arc::make_mut(node.0[leaf].as_mut()?).0[slot])
    }

    /// The slot of `page`, to be filled.
    #[inline]
    pub fn entry(&mut self, page: u64) -> &mut PageStorage {
        let (node, leaf, slot) = places(page);
        let node = self.nodes[node].get_or_insert_with(|| Arc::new(Node([const { None }; _])));
        let leaf = Arc::make_mut(node).0[leaf].get_or_insert_with(|| Arc::new(Leaf([EMPTY; _])));
        &mut Arc::make_mut(leaf).0[slot]
    }

    /// Empties the slots of `pages`, giving those that hold something to `give_up` first. Pages that were
    /// never written cost next to nothing.
    pub fn clear(&mut self, pages: std::ops::Range<u64>, mut give_up: impl FnMut(&mut PageStorage)) {
        let mut page = pages.start;
        while page < pages.end {
            let (at, leaf_at, _) = places(page);
            let leaf_end = (page / LEAF_PAGES + 1) * LEAF_PAGES;
            let Some(node) = &mut self.nodes[at] else {
                page = (page / NODE_PAGES + 1) * NODE_PAGES;
                continue;
            };
            if node.0[leaf_at].is_some() {
                let place = &mut Arc::make_mut(node).0[leaf_at];
                if let Some(leaf) = place {
                    for slot in &mut Arc::make_mut(leaf).0[(page % LEAF_PAGES) as usize
                        ..(pages.end.min(leaf_end) - page / LEAF_PAGES * LEAF_PAGES) as usize]
                    {
                        give_up(slot);
                        *slot = EMPTY;
                    }
                }
                if page.is_multiple_of(LEAF_PAGES) && leaf_end <= pages.end {
                    *place = None;
                }
            }
            page = leaf_end;
        }
    }

    /// Every page that has bytes, in order.
    pub fn pages(&self) -> impl Iterator<Item = (u64, &Arc<Page>)> {
        self.nodes.iter().enumerate().filter_map(|(at, node)| Some((at, node.as_ref()?))).flat_map(
            |(at, node)| {
                let first = at as u64 * NODE_PAGES;
                node.0.iter().enumerate().filter_map(|(at, leaf)| Some((at, leaf.as_ref()?))).flat_map(
                    move |(at, leaf)| {
                        let first = first + at as u64 * LEAF_PAGES;
                        leaf.0
                            .iter()
                            .enumerate()
                            .filter_map(move |(at, slot)| Some((first + at as u64, slot.page.as_ref()?)))
                    },
                )
            },
        )
    }
}
