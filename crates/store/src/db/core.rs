//! What the handles need of everything below them, in one place.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use flashgrain_profile::DeviceProfile;

use super::place::Site;
use super::tree::TreeOptions;
use super::value::Value;
use crate::catalog::{IndexKind, TreeId};
use crate::layout::Overrides;
use crate::options::Options;
use crate::task::JoinHandle;
use crate::{Decision, Durability, Error};

/// A tree that is in use.
pub(crate) struct TreeState {
    pub id: TreeId,
    pub name: String,
    pub kind: IndexKind,
    pub node_bytes: u32,
}

/// The writes of a batch or transaction, by tree and key; `None` removes.
pub(crate) type Writes = BTreeMap<(TreeId, Vec<u8>), Option<Value>>;

/// A point in time whose versions are kept while it lives.
pub(crate) struct Pinned {}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// Records next to each other, in key order, as a scan returns them.
#[derive(Default)]
pub(crate) struct Piece {
    pub records: Vec<(Value, Value)>,
    /// Where the scan goes on; `None` at its end. A piece may be empty and yet not the last.
    pub next: Option<Bound<Vec<u8>>>,
}

/// See the module.
pub(crate) struct Core {}

/// What a check has looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// Trees, without the catalog.
    pub trees: u64,
    /// Their nodes.
    pub nodes: u64,
    /// Their records, tombstones that a snapshot still needs included.
    pub records: u64,
    /// Pages of large values.
    pub overflow_pages: u64,
}

/// What goes on inside a store, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {}

impl Core {
    /// The value of `key`, now or as of `at`.
    pub fn get(&self, _tree: &TreeState, _key: &[u8], _at: Option<&Pinned>) -> Result<Option<Value>, Error> {
        todo!()
    }

    /// The records of the leaf at which a scan from `from` begins, or goes on, as of `at`. `read_ahead`: how many pieces the caller expects to take.
    pub fn scan(
        &self,
        _tree: &TreeState,
        _at: &Pinned,
        _from: Bound<&[u8]>,
        _direction: Direction,
        _read_ahead: u32,
        _piece: &mut Piece,
    ) -> Result<(), Error> {
        todo!()
    }

    /// Keeps what is visible now.
    pub fn pin(&self) -> Result<Arc<Pinned>, Error> {
        todo!()
    }

    pub fn create(
        _site: &Site,
        _profile: Option<&DeviceProfile>,
        _overrides: &Overrides,
        _options: &Options,
    ) -> Result<Arc<Self>, Error> {
        todo!()
    }

    pub fn open(_site: &Site, _options: &Options) -> Result<Arc<Self>, Error> {
        todo!()
    }

    /// All writes or none. With `since`, only if none of the keys has changed since then.
    pub fn commit(
        &self,
        _writes: Writes,
        _since: Option<&Pinned>,
        _durability: Durability,
    ) -> Result<(), Error> {
        todo!()
    }

    /// Refuses keys and values that a tree does not take.
    pub fn check_write(&self, _tree: &TreeState, _key: &[u8], _value: Option<&[u8]>) -> Result<(), Error> {
        todo!()
    }

    pub fn key_bytes_max(&self, _tree: &TreeState) -> usize {
        todo!()
    }

    /// Of commits that do not say.
    pub fn durability(&self) -> Durability {
        todo!()
    }

    pub fn tree(&self, _name: &str, _options: &TreeOptions) -> Result<Arc<TreeState>, Error> {
        todo!()
    }

    pub fn existing_tree(&self, _name: &str) -> Option<Arc<TreeState>> {
        todo!()
    }

    pub fn tree_names(&self) -> Vec<String> {
        todo!()
    }

    pub fn drop_tree(&self, _name: &str) -> Result<(), Error> {
        todo!()
    }

    pub fn spawn<T: Send + 'static>(&self, _work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        todo!()
    }

    pub fn sync(&self) -> Result<(), Error> {
        todo!()
    }

    pub fn checkpoint(&self) -> Result<(), Error> {
        todo!()
    }

    pub fn stats(&self) -> Stats {
        todo!()
    }

    pub fn check(&self) -> Result<Check, Error> {
        todo!()
    }

    pub fn decisions(&self) -> &[Decision] {
        todo!()
    }

    pub fn close(&self) -> Result<(), Error> {
        todo!()
    }
}
