//! The B+-tree as an ordered map.

use std::sync::Arc;

use super::ordered_map::{OrderedMap, Pieces};
use crate::Error;
use crate::btree::{BTree, Change, Scan};
use crate::header::PageId;
use crate::index::{Census, Direction, LeafHint, Limits, Piece};

/// A walk through a tree.
struct Leaves {
    tree: Arc<BTree>,
    scan: Scan,
}

impl Pieces for Leaves {
    fn next(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        self.tree.step(&mut self.scan, piece)
    }
}

impl OrderedMap for BTree {
    #[inline]
    fn get(&self, key: &[u8], into: &mut Vec<u8>, hint: &mut Option<LeafHint>) -> Result<bool, Error> {
        Self::get(self, key, into, hint)
    }

    #[inline]
    fn get_resident(&self, key: &[u8], into: &mut Vec<u8>, hint: &mut Option<LeafHint>) -> Option<bool> {
        Self::get_resident(self, key, into, hint)
    }

    #[inline]
    fn read(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        Self::read(self, key, into)
    }

    #[inline]
    fn read_resident(&self, key: &[u8], into: &mut Vec<u8>) -> Option<bool> {
        Self::read_resident(self, key, into)
    }

    #[inline]
    fn head(&self, key: &[u8], hint: &mut Option<LeafHint>) -> Result<Option<u64>, Error> {
        Self::head(self, key, hint)
    }

    fn find_together(&self, keys: &mut dyn Iterator<Item = &[u8]>) {
        self.find_leaves(keys);
    }

    #[inline]
    fn is_valid(&self, hint: Option<LeafHint>) -> bool {
        Self::is_valid(self, hint)
    }

    fn update<'v>(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<(), Error> {
        Self::update(self, key, decide)
    }

    #[inline]
    fn change_at(&self, key: &[u8], hint: &mut Option<LeafHint>, change: Change<'_>) -> Result<(), Error> {
        Self::change_at(self, key, hint, change)
    }

    fn scan(
        self: Arc<Self>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        ahead: u32,
    ) -> Box<dyn Pieces> {
        Box::new(Leaves { tree: self, scan: Scan::new(direction, lower, upper, ahead) })
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            key_bytes: self.key_bytes_max(),
            value_bytes: self.value_bytes_max(),
            node_bytes: self.node_bytes(),
        }
    }

    fn walk(
        &self,
        page: &mut dyn FnMut(PageId),
        record: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<Census, Error> {
        Self::walk(self, page, record)
    }

    fn is_cut_off(&self) -> Result<bool, Error> {
        Self::is_cut_off(self)
    }

    fn clear(&self, go_on: &dyn Fn() -> Result<(), Error>) -> Result<(), Error> {
        Self::clear(self, go_on)
    }

    fn destroy(&self) -> Result<(), Error> {
        self.free_all()
    }
}
