//! Reading, the same from a store, a snapshot and a transaction, behind one type.

use std::ops::Bound;

use flashgrain::{Error, Iter, Readable, Tree, Value};

use crate::byte_string::ByteString;

/// Bounds of keys.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A source of records.
pub trait Reads: Sync {
    /// The value of `key`.
    fn get(&self, tree: &Tree, key: &[u8]) -> Result<Option<Value>, Error>;
    /// The values of several keys, in their order.
    fn get_many(&self, tree: &Tree, keys: &[ByteString]) -> Result<Vec<Option<Value>>, Error>;
    /// Whether there is such a key.
    fn contains(&self, tree: &Tree, key: &[u8]) -> Result<bool, Error>;
    /// The records of a range.
    fn range(&self, tree: &Tree, bounds: Bounds) -> Result<Iter, Error>;
}

impl<R: Readable + Sync> Reads for R {
    fn get(&self, tree: &Tree, key: &[u8]) -> Result<Option<Value>, Error> {
        Readable::get(self, tree, key)
    }

    fn get_many(&self, tree: &Tree, keys: &[ByteString]) -> Result<Vec<Option<Value>>, Error> {
        Readable::get_many(self, tree, keys)
    }

    fn contains(&self, tree: &Tree, key: &[u8]) -> Result<bool, Error> {
        self.contains_key(tree, key)
    }

    fn range(&self, tree: &Tree, bounds: Bounds) -> Result<Iter, Error> {
        Readable::range(self, tree, bounds)
    }
}
