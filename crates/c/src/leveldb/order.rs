//! Whether a program's comparator orders the keys as the store does.
//!
//! Invariant: of the keys in a database each two that are next to each other by bytes are in the same order
//! by the comparator. A write looks at the neighbours of its keys, one write at a time, and a removal keeps
//! it. As an order is transitive, the comparator then agrees on all keys of the database. A read looks at the
//! neighbours of the key that it asks for, so its answer is the one that the comparator stands for: a key
//! that is the same by another order alone is found to be a neighbour that is not larger.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashgrain::{Readable, Tree};

use super::comparator::Comparator;
use super::message::Message;

/// The order that a program asks for.
pub enum Order {
    /// That of bytes, as the store has it.
    Bytes,
    /// A comparator's, as long as it is the same, and the lock of checked writes.
    Checked(Arc<Comparator>, Mutex<()>),
}

impl Order {
    /// The order of options without a comparator, or of this one.
    pub fn new(comparator: Option<Arc<Comparator>>) -> Self {
        comparator.map_or(Self::Bytes, |comparator| Self::Checked(comparator, Mutex::new(())))
    }

    /// The same order for another reader.
    pub fn share(&self) -> Self {
        match self {
            Self::Bytes => Self::Bytes,
            Self::Checked(comparator, _) => Self::new(Some(Arc::clone(comparator))),
        }
    }

    /// Whether keys are looked at, as a program has a comparator.
    pub fn is_checked(&self) -> bool {
        matches!(self, Self::Checked(..))
    }

    /// Held while keys are checked and written.
    pub fn lock(&self) -> Option<MutexGuard<'_, ()>> {
        match self {
            Self::Bytes => None,
            // A panic leaves nothing half done under it.
            Self::Checked(_, lock) => Some(lock.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Refuses a comparator that has another order for two keys than bytes have.
    ///
    /// # Errors
    /// [`Message::invalid`].
    pub fn check_pair(&self, smaller: &[u8], larger: &[u8]) -> Result<(), Message> {
        let Self::Checked(comparator, _) = self else { return Ok(()) };
        if comparator.compare(smaller, larger) == Some(Ordering::Less)
            && comparator.compare(larger, smaller) == Some(Ordering::Greater)
        {
            return Ok(());
        }
        let name = comparator.name().unwrap_or_default();
        let (smaller, larger) = (smaller.escape_ascii(), larger.escape_ascii());
        Err(Message::invalid(format!(
            "the comparator {name} does not have \"{smaller}\" before \"{larger}\": keys are ordered by their bytes, and no other order is supported"
        )))
    }

    /// Looks at the neighbours of a key.
    ///
    /// # Errors
    /// Those of [`Order::check_pair`], and of reads.
    pub fn check_key(&self, from: &impl Readable, tree: &Tree, key: &[u8]) -> Result<(), Message> {
        if !self.is_checked() {
            return Ok(());
        }
        let mut cursor = from.cursor(tree)?;
        cursor.seek(key);
        if let Some((before, _)) = cursor.prev()? {
            self.check_pair(&before, key)?;
        }
        cursor.seek_behind(key);
        if let Some((after, _)) = cursor.next()? {
            self.check_pair(key, &after)?;
        }
        Ok(())
    }

    /// Looks at keys that are to be written together, which it sorts.
    ///
    /// # Errors
    /// As [`Order::check_key`].
    pub fn check_keys(&self, from: &impl Readable, tree: &Tree, mut keys: Vec<&[u8]>) -> Result<(), Message> {
        if !self.is_checked() {
            return Ok(());
        }
        keys.sort_unstable();
        keys.dedup();
        keys.windows(2).try_for_each(|pair| self.check_pair(pair[0], pair[1]))?;
        keys.iter().try_for_each(|key| self.check_key(from, tree, key))
    }
}
