//! Reading: the same from a store, a snapshot and a transaction.

use std::ops::RangeBounds;
use std::task::Poll;

use super::cursor::Cursor;
use super::iter::Iter;
use super::range::Range;
use super::reader::ValueReader;
use super::source::Source;
use super::tree::Tree;
use super::value::Value;
use crate::Error;
use crate::index::{each_brought, waiting};

/// Sources of records: [`Db`](crate::Db) has all commits so far, [`Snapshot`](crate::Snapshot) those before
/// it was taken, and [`Transaction`](crate::Transaction) those before it began, and its own writes.
///
/// ```
/// use flashgrain::{Db, Readable};
///
/// fn count(from: &impl Readable, tree: &flashgrain::Tree) -> Result<usize, flashgrain::Error> {
///     let mut count = 0;
///     for record in from.iter(tree)? {
///         let (_key, _value) = record?;
///         count += 1;
///     }
///     Ok(count)
/// }
///
/// # fn main() -> Result<(), flashgrain::Error> {
/// let db = Db::in_memory(64 << 20)?;
/// let tree = db.tree("fruit")?;
/// tree.insert("apple", "red")?;
/// let before = db.snapshot()?;
/// tree.insert("banana", "yellow")?;
/// assert_eq!((count(&db, &tree)?, count(&before, &tree)?), (2, 1));
/// # Ok(())
/// # }
/// ```
pub trait Readable: Source {
    /// The value of `key`.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`] if it must be read from a device and cannot be;
    /// [`Error::Poisoned`] if a commit that failed half-way may have changed it; [`Error::OtherStore`],
    /// [`Error::OtherOpening`] and [`Error::TreeDropped`] for a handle that belongs to no tree of the store
    /// as it is open now.
    fn get(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Value>, Error> {
        let lookup = self.lookup(tree)?;
        waiting(|may| lookup.get(key.as_ref(), may))
    }

    /// As [`Readable::get`], into the caller's memory, which spares an allocation: `value` becomes the value,
    /// and is empty if there is none. It returns whether there is one. After an error `value` may hold
    /// anything.
    ///
    /// # Errors
    /// As [`Readable::get`].
    fn get_into(&self, tree: &Tree, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool, Error> {
        let lookup = self.lookup(tree)?;
        waiting(|may| {
            value.clear();
            lookup.get_into(key.as_ref(), may, value)
        })
    }

    /// A reader of the value of `key`, piece by piece: whatever the value's length, little of it is in
    /// memory. It reads the value as of now, as of the snapshot, or as of the transaction, whatever others
    /// write meanwhile.
    ///
    /// # Errors
    /// As [`Readable::get`].
    ///
    /// ```
    /// # use flashgrain::{Db, Readable};
    /// use std::io::{Read, Seek, SeekFrom};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let films = db.tree("films")?;
    /// films.insert_from("sevens", std::io::repeat(7).take(3 << 20))?;
    /// let mut reader = db.reader(&films, "sevens")?.ok_or("there is no such film")?;
    /// let mut end = Vec::new();
    /// reader.seek(SeekFrom::End(-3))?;
    /// reader.read_to_end(&mut end)?;
    /// assert_eq!(end, [7, 7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    fn reader(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>, Error> {
        ValueReader::of(self.view(tree)?, key.as_ref())
    }

    /// The values of several keys, in the order of the keys. Reads from the device overlap, so this is faster
    /// than one [`Readable::get`] after the other.
    ///
    /// From a [`Db`](crate::Db) each value is the one committed at a moment of its own; take a
    /// [`Snapshot`](crate::Snapshot) if they have to fit together.
    ///
    /// # Errors
    /// As [`Readable::get`].
    ///
    /// ```
    /// # use flashgrain::{Db, Readable};
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// # let fruit = db.tree("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.insert("banana", "yellow")?;
    /// let colours = db.snapshot()?.get_many(&fruit, ["banana", "cherry", "apple"])?;
    /// assert_eq!(colours[0].as_deref(), Some(&b"yellow"[..]));
    /// assert_eq!(colours[1], None);
    /// # Ok(())
    /// # }
    /// ```
    fn get_many<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>, Error> {
        let keys: Vec<K> = keys.into_iter().collect();
        let mut values = vec![None; keys.len()];
        let lookup = self.lookup(tree)?;
        tree.state.tree.index.find_together(&mut keys.iter().map(AsRef::as_ref));
        each_brought(&keys, |place, key, may| {
            Ok(match lookup.get(key.as_ref(), may)? {
                Poll::Pending => false,
                Poll::Ready(value) => {
                    values[place] = value;
                    true
                }
            })
        })?;
        Ok(values)
    }

    /// Whether the key exists. Its value is not read, however long it is.
    ///
    /// # Errors
    /// As [`Readable::get`].
    fn contains_key(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let lookup = self.lookup(tree)?;
        waiting(|may| lookup.contains(key.as_ref(), may))
    }

    /// The record with the smallest key.
    ///
    /// # Errors
    /// As [`Readable::get`].
    fn first_key_value(&self, tree: &Tree) -> Result<Option<(Value, Value)>, Error> {
        self.iter(tree)?.next().transpose()
    }

    /// The record with the largest key.
    ///
    /// # Errors
    /// As [`Readable::get`].
    fn last_key_value(&self, tree: &Tree) -> Result<Option<(Value, Value)>, Error> {
        self.iter(tree)?.next_back().transpose()
    }

    /// All records in key order, from either end. The iterator owns a snapshot of its own and borrows
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::Poisoned`] after a commit that failed half-way; those of [`Readable::get`]
    /// about handles. Later errors are items of the iterator.
    fn iter(&self, tree: &Tree) -> Result<Iter, Error> {
        self.view(tree).map(|view| Iter::new(view, Range::default()))
    }

    /// The records whose keys lie in `range`, in key order, from either end. A range that ends before it
    /// begins is empty.
    ///
    /// # Errors
    /// As [`Readable::iter`].
    ///
    /// ```
    /// # use flashgrain::{Db, Readable};
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// # let tree = db.tree("numbers")?;
    /// for number in 0..100_u32 {
    ///     tree.insert(number.to_be_bytes(), "x")?;
    /// }
    /// let mut few = db.range(&tree, 10_u32.to_be_bytes()..=12_u32.to_be_bytes())?;
    /// assert_eq!(few.next().unwrap()?.0, 10_u32.to_be_bytes());
    /// assert_eq!(few.next_back().unwrap()?.0, 12_u32.to_be_bytes());
    /// assert_eq!(few.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    fn range<K: AsRef<[u8]>>(&self, tree: &Tree, range: impl RangeBounds<K>) -> Result<Iter, Error> {
        self.view(tree).map(|view| Iter::new(view, Range::of(&range)))
    }

    /// The records whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`Readable::iter`].
    fn prefix(&self, tree: &Tree, prefix: impl AsRef<[u8]>) -> Result<Iter, Error> {
        let prefix = prefix.as_ref();
        self.view(tree)
            .map(|view| Iter::new(view, Range { lower: prefix.to_vec(), upper: behind_prefix(prefix) }))
    }

    /// A cursor that can be moved both ways and to any key. It owns a snapshot of its own.
    ///
    /// # Errors
    /// As [`Readable::iter`].
    fn cursor(&self, tree: &Tree) -> Result<Cursor, Error> {
        Ok(Cursor::new(self.view(tree)?))
    }
}

impl<S: Source> Readable for S {}

/// The smallest key after all that begin with `prefix`, if there is one.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix.get(..=kept)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(behind_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(behind_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(behind_prefix(b"\xff"), None);
        assert_eq!(behind_prefix(b""), None);
    }
}
