//! Reading a record and writing it as one: compare-and-swap, updates, writes that return the previous value.
//!
//! A write that returns the previous value has to read it, and to be validated against others;
//! [`Tree::insert`] and [`Tree::remove`] need neither, and stay as fast as they are. So these are calls of
//! their own.

use super::readable::Readable;
use super::tree::Tree;
use super::value::Value;
use crate::Error;

/// A compare-and-swap that found another value than it expected. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record has another value than the one that was expected")]
#[non_exhaustive]
pub struct CompareAndSwapError {
    /// The present value; `None` if there is no such record.
    pub current: Option<Value>,
}

/// Decision about a record.
enum Outcome {
    Stays,
    Becomes(Value),
    Goes,
}

impl Tree {
    /// As [`Tree::insert`], and returns the value that was there before. It reads that first: where it does
    /// not matter, `insert` is faster.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    ///
    /// ```
    /// # use flashgrain::Db;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let fruit = db.tree("fruit")?;
    /// assert_eq!(fruit.replace("apple", "green")?, None);
    /// assert_eq!(fruit.replace("apple", "red")?.unwrap(), "green");
    /// assert_eq!(fruit.take("apple")?.unwrap(), "red");
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Option<Value>, Error> {
        self.exchange(key.as_ref(), |_| Outcome::Becomes(Value::from(value.as_ref())))
    }

    /// As [`Tree::remove`], and returns the value that was removed; `None`, and nothing is written, if there
    /// was none. It reads the value first: where it does not matter, `remove` is faster.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>, Error> {
        self.exchange(key.as_ref(), |old| if old.is_some() { Outcome::Goes } else { Outcome::Stays })
    }

    /// Gives `key` the value that `change` makes of the one that is there, or removes it if that is `None`;
    /// returns the previous value. `change` is called again with the new value if another thread has written
    /// the record meanwhile. If it gives the value that is there already, nothing is written.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    ///
    /// ```
    /// # use flashgrain::Db;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let words = db.tree("words")?;
    /// for word in ["so", "what", "so"] {
    ///     words.update(word, |count| {
    ///         let count = count.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    ///         Some((count + 1).to_le_bytes())
    ///     })?;
    /// }
    /// assert_eq!(words.get("so")?.unwrap(), 2_u64.to_le_bytes());
    /// # Ok(())
    /// # }
    /// ```
    pub fn update<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<Option<Value>, Error> {
        self.exchange(key.as_ref(), |old| match (old, change(old)) {
            (None, None) => Outcome::Stays,
            (Some(old), Some(new)) if old == new.as_ref() => Outcome::Stays,
            (_, Some(new)) => Outcome::Becomes(Value::from(new.as_ref())),
            (Some(_), None) => Outcome::Goes,
        })
    }

    /// Gives `key` the value `new`, or removes it if that is `None`, if its value is `expected`; `None`
    /// expects that there is no such record. The inner result says whether it was; its error has the present
    /// value.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    ///
    /// ```
    /// # use flashgrain::Db;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let locks = db.tree("locks")?;
    /// assert!(locks.compare_and_swap("door", None, Some(b"ada"))?.is_ok());
    /// let refused = locks.compare_and_swap("door", None, Some(b"ben"))?.unwrap_err();
    /// assert_eq!(refused.current.unwrap(), "ada");
    /// assert!(locks.compare_and_swap("door", Some(b"ada"), None)?.is_ok());
    /// assert!(!locks.contains_key("door")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Result<(), CompareAndSwapError>, Error> {
        let found = self.exchange(key.as_ref(), |old| match new {
            _ if old != expected => Outcome::Stays,
            Some(new) => Outcome::Becomes(Value::from(new)),
            None if old.is_some() => Outcome::Goes,
            None => Outcome::Stays,
        })?;
        Ok(if found.as_deref() == expected { Ok(()) } else { Err(CompareAndSwapError { current: found }) })
    }

    /// Reads a record, and does with it as `decide` says, atomically. Returns the value that was read.
    fn exchange(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> Outcome,
    ) -> Result<Option<Value>, Error> {
        loop {
            let mut transaction = self.db.begin()?;
            let old = transaction.get(self, key)?;
            match decide(old.as_deref()) {
                Outcome::Stays => {}
                Outcome::Becomes(value) => transaction.insert(self, key, value)?,
                Outcome::Goes => transaction.remove(self, key)?,
            }
            match transaction.commit() {
                // Another thread was faster: at least one commit has got further.
                Err(Error::Conflict) => {}
                done => return done.map(|()| old),
            }
        }
    }
}
