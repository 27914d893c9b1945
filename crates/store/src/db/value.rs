//! Keys and values as they are handed out.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// The bytes of a key or a value: a slice that is shared, not copied, when it is cloned.
///
/// The records of an iterator share one allocation per leaf: keeping one of them keeps up to a node's worth
/// of bytes. Use `to_vec` to keep a few of many.
///
/// ```
/// use flashgrain::Value;
///
/// let value = Value::from("apple");
/// assert_eq!(value, "apple");
/// assert_eq!(value.len(), 5);
/// let same_bytes = value.clone();
/// assert_eq!(same_bytes.to_vec(), b"apple");
/// ```
#[derive(Clone)]
pub struct Value {
    shared: Arc<[u8]>,
    start: u32,
    length: u32,
}

impl Value {
    /// The part of `shared` that begins at `start` and has `length` bytes; empty if it has no such part.
    pub(crate) fn part(shared: &Arc<[u8]>, start: usize, length: usize) -> Self {
        if start.checked_add(length).is_none_or(|end| end > shared.len()) {
            return Self::default();
        }
        Self { shared: Arc::clone(shared), start: start as u32, length: length as u32 }
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        let start = self.start as usize;
        self.shared.get(start..start + self.length as usize).unwrap_or_default()
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Borrow<[u8]> for Value {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Default for Value {
    fn default() -> Self {
        Self { shared: Arc::from([]), start: 0, length: 0 }
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self { shared: Arc::from(bytes), start: 0, length: bytes.len() as u32 }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::from(text.as_bytes())
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Self {
        value.to_vec()
    }
}

impl<Other: AsRef<[u8]> + ?Sized> PartialEq<Other> for Value {
    fn eq(&self, other: &Other) -> bool {
        self.as_slice() == other.as_ref()
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "b\"{}\"", self.as_slice().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_and_compare_by_bytes() {
        let shared: Arc<[u8]> = Arc::from(&b"keyvalue"[..]);
        let (key, value) = (Value::part(&shared, 0, 3), Value::part(&shared, 3, 5));
        assert_eq!((key.as_slice(), value.as_slice()), (&b"key"[..], &b"value"[..]));
        assert!(key < value && key == "key" && format!("{value:?}") == "b\"value\"");
        assert_eq!(Arc::strong_count(&shared), 3);
        assert!(Value::part(&shared, 4, 5).is_empty() && Value::part(&shared, usize::MAX, 2).is_empty());
    }
}
