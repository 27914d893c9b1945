//! A piece: the records that a scan returns at a time.

use crate::Error;

/// The smallest key after `key`.
pub(crate) fn behind(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

/// The shortest key that lies after the first, and not after the second.
pub(crate) fn separator(before: &[u8], mut behind: Vec<u8>) -> Vec<u8> {
    let common = before.iter().zip(&behind).take_while(|(one, other)| one == other).count();
    behind.truncate(common + 1);
    behind
}

/// Direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The scan goes from small keys to large ones.
    Forward,
    /// The scan goes from large keys to small ones.
    Backward,
}

impl Direction {
    /// Whether going from key `before` to `bound` makes progress in this direction. A backward scan has no
    /// `before` at its first step.
    pub fn is_further(self, bound: &[u8], before: Option<&[u8]>) -> bool {
        before.is_none_or(|before| match self {
            Self::Forward => bound > before,
            Self::Backward => bound < before,
        })
    }
}

/// Records of a leaf, in key order. Its memory is used again by the next step of the scan.
#[derive(Default)]
pub(crate) struct Piece {
    bytes: Vec<u8>,
    /// The offsets of each record's key, of its value, and of the value's end.
    places: Vec<[u32; 3]>,
}

/// Decision about a record in a [`Piece`].
pub(crate) enum Fate {
    Stays,
    Goes,
    /// It gets another value.
    Becomes(Vec<u8>),
}

impl Piece {
    /// Has `judge` decide on each record, by key and value.
    pub fn decide(
        &mut self,
        mut judge: impl FnMut(&[u8], &[u8]) -> Result<Fate, Error>,
    ) -> Result<(), Error> {
        let mut kept = 0;
        for index in 0..self.places.len() {
            let [key, value, end] = self.places[index];
            let key_and_value = self.bytes[key as usize..end as usize].split_at((value - key) as usize);
            let place = match judge(key_and_value.0, key_and_value.1)? {
                Fate::Goes => continue,
                Fate::Stays => [key, value, end],
                Fate::Becomes(other) => {
                    let start = self.bytes.len() as u32;
                    self.bytes.extend_from_within(key as usize..value as usize);
                    self.bytes.extend_from_slice(&other);
                    [start, start + (value - key), self.bytes.len() as u32]
                }
            };
            self.places[kept] = place;
            kept += 1;
        }
        self.places.truncate(kept);
        Ok(())
    }

    /// Records.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has no records.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A record's key and value.
    pub fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let [key, value, end] = self.places.get(index)?.map(|place| place as usize);
        Some((&self.bytes[key..value], &self.bytes[value..end]))
    }

    /// All bytes, and of each record the offsets of its key, of its value, and of the value's end.
    pub fn parts(&self) -> (&[u8], &[[u32; 3]]) {
        (&self.bytes, &self.places)
    }

    /// Keys and values in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Forgets all records, not their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// Appends a record.
    #[cfg(test)]
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.push_by(|bytes| bytes.extend_from_slice(key), |bytes| bytes.extend_from_slice(value));
    }

    /// Appends a record. The closures append its key and value.
    #[inline]
    pub fn push_by(&mut self, key: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len() as u32;
        key(&mut self.bytes);
        let middle = self.bytes.len() as u32;
        value(&mut self.bytes);
        self.places.push([start, middle, self.bytes.len() as u32]);
    }
}
