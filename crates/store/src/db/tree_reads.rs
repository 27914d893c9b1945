//! Reading a tree as it is now.

use std::ops::RangeBounds;

use super::cursor::Cursor;
use super::iter::Iter;
use super::readable::Readable;
use super::reader::ValueReader;
use super::tree::Tree;
use super::value::Value;
use crate::Error;

impl Tree {
    /// The value of `key`.
    ///
    /// # Errors
    /// As [`Readable::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>, Error> {
        self.db.get(self, key)
    }

    /// Puts the value of `key` into the caller's memory. Returns whether the key exists.
    ///
    /// # Errors
    /// As [`Readable::get_into`].
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool, Error> {
        self.db.get_into(self, key, value)
    }

    /// The values of several keys, read at the same time.
    ///
    /// # Errors
    /// As [`Readable::get_many`].
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>, Error> {
        self.db.get_many(self, keys)
    }

    /// Brings all pages into memory that reading and changing these keys takes, with overlapping reads, and
    /// waits for them. Transactions that begin afterwards are short, so that few others conflict with them.
    /// Look-ups alone may find a record in memory without its page; the transaction would then wait for that
    /// in its commit.
    ///
    /// Pages may leave memory again before they are used, if the cache is small or much else is read.
    ///
    /// # Errors
    /// As [`Readable::get`].
    ///
    /// ```
    /// # use flashgrain::{Db, Readable};
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let accounts = db.tree("accounts")?;
    /// accounts.insert("ada", "7")?;
    /// accounts.prefetch(["ada", "ben"])?;
    /// db.transaction(|transaction| {
    ///     let all = transaction.get(&accounts, "ada")?.unwrap_or_default();
    ///     transaction.insert(&accounts, "ben", all)?;
    ///     transaction.remove(&accounts, "ada")
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefetch<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<(), Error> {
        let keys: Vec<K> = keys.into_iter().collect();
        let core = self.core();
        core.prefetch(core.named_tree(self)?, &keys)
    }

    /// Whether the key exists.
    ///
    /// # Errors
    /// As [`Readable::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.db.contains_key(self, key)
    }

    /// The record with the smallest key.
    ///
    /// # Errors
    /// As [`Readable::get`].
    pub fn first_key_value(&self) -> Result<Option<(Value, Value)>, Error> {
        self.db.first_key_value(self)
    }

    /// The record with the largest key.
    ///
    /// # Errors
    /// As [`Readable::get`].
    pub fn last_key_value(&self) -> Result<Option<(Value, Value)>, Error> {
        self.db.last_key_value(self)
    }

    /// All records in key order, as of now.
    ///
    /// # Errors
    /// As [`Readable::iter`].
    pub fn iter(&self) -> Result<Iter, Error> {
        self.db.iter(self)
    }

    /// The records whose keys lie in `range`, as of now.
    ///
    /// # Errors
    /// As [`Readable::iter`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Iter, Error> {
        self.db.range(self, range)
    }

    /// The records whose keys begin with `prefix`, as of now.
    ///
    /// # Errors
    /// As [`Readable::iter`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter, Error> {
        self.db.prefix(self, prefix)
    }

    /// A cursor over the records that are there now.
    ///
    /// # Errors
    /// As [`Readable::iter`].
    pub fn cursor(&self) -> Result<Cursor, Error> {
        self.db.cursor(self)
    }

    /// The value of `key`, as of now, to be read piece by piece.
    ///
    /// # Errors
    /// As [`Readable::reader`].
    pub fn reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>, Error> {
        self.db.reader(self, key)
    }
}
