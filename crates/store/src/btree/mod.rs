//! B+-trees over the pool: search, change, iterate. Values are bytes; what they mean is up to the transactions above.

mod node;
mod reshape;

use std::sync::Arc;

use crate::Error;
use crate::header::PageId;
use crate::pool::Pool;
pub(crate) use node::{Full, Node};
pub(crate) use reshape::{Cut, cut, merge, split};

/// What to do with a key, having seen its value.
pub(crate) enum Change<'v> {
    /// Nothing.
    Keep,
    /// Give it this value.
    Put(&'v [u8]),
    /// Take it out.
    Remove,
}

/// A tree. Its root stays on the same page.
pub(crate) struct BTree {
    pool: Arc<Pool>,
    root: PageId,
    class: usize,
    volatile: bool,
}

/// The records of a part of a leaf, in key order, and where to go on.
#[derive(Default)]
pub(crate) struct Piece {
    // keys and values in one buffer that is used again
}

impl BTree {
    /// A new, empty tree with nodes of size class `class`.
    pub fn create(_pool: &Arc<Pool>, _class: usize, _volatile: bool) -> Result<Self, Error> {
        todo!()
    }

    /// The tree with this root.
    pub fn open(_pool: &Arc<Pool>, _root: PageId, _class: usize) -> Self {
        todo!()
    }

    /// Appends the value of `key` to `into`; `false` if there is none.
    pub fn get(&self, _key: &[u8], _into: &mut Vec<u8>) -> Result<bool, Error> {
        todo!()
    }

    /// Looks at the value of a key and changes it, as one. `decide` may be called several times; it must not wait, and its last answer counts.
    pub fn update<'v>(
        &self,
        _key: &[u8],
        _decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<(), Error> {
        todo!()
    }
}
