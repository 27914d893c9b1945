//! An iterator's position: on a record within bounds, or on none.

use flashgrain::{Cursor, Error, Value};

/// The side that the cursor came to its record from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// A position that moves both ways. After an error it is on no record.
pub struct Walk {
    cursor: Cursor,
    /// The first key that it may be on.
    lower: Option<Vec<u8>>,
    /// The first key after those that it may be on.
    upper: Option<Vec<u8>>,
    record: Option<(Value, Value, Direction)>,
}

impl Walk {
    /// On no record yet.
    pub fn new(cursor: Cursor, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Self {
        let (lower, upper) = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
        Self { cursor, lower, upper, record: None }
    }

    /// Key and value of the record that it is on.
    pub fn record(&self) -> Option<(&Value, &Value)> {
        self.record.as_ref().map(|(key, value, _)| (key, value))
    }

    /// To no record.
    pub fn leave(&mut self) {
        self.record = None;
    }

    /// To the first record.
    ///
    /// # Errors
    /// Those of [`Cursor::next`].
    pub fn seek_first(&mut self) -> Result<(), Error> {
        match &self.lower {
            Some(lower) => self.cursor.seek(lower),
            None => self.cursor.seek_start(),
        }
        self.step(Direction::Forward)
    }

    /// To the last record.
    ///
    /// # Errors
    /// Those of [`Cursor::next`].
    pub fn seek_last(&mut self) -> Result<(), Error> {
        match &self.upper {
            Some(upper) => self.cursor.seek(upper),
            None => self.cursor.seek_end(),
        }
        self.step(Direction::Backward)
    }

    /// To the first record whose key is not smaller.
    ///
    /// # Errors
    /// Those of [`Cursor::next`].
    pub fn seek(&mut self, key: &[u8]) -> Result<(), Error> {
        if self.lower.as_deref().is_some_and(|lower| key < lower) {
            return self.seek_first();
        }
        self.cursor.seek(key);
        self.step(Direction::Forward)
    }

    /// To the last record whose key is not larger.
    ///
    /// # Errors
    /// Those of [`Cursor::next`].
    pub fn seek_back(&mut self, key: &[u8]) -> Result<(), Error> {
        if self.upper.as_deref().is_some_and(|upper| key >= upper) {
            return self.seek_last();
        }
        self.cursor.seek_behind(key);
        self.step(Direction::Backward)
    }

    /// To the next record; on no record it stays there.
    ///
    /// # Errors
    /// Those of [`Cursor::next`].
    pub fn next(&mut self) -> Result<(), Error> {
        match &self.record {
            None => return Ok(()),
            Some((key, _, Direction::Backward)) => self.cursor.seek_behind(key),
            Some((_, _, Direction::Forward)) => {}
        }
        self.step(Direction::Forward)
    }

    /// To the record before; on no record it stays there.
    ///
    /// # Errors
    /// Those of [`Cursor::next`].
    pub fn prev(&mut self) -> Result<(), Error> {
        match &self.record {
            None => return Ok(()),
            Some((key, _, Direction::Forward)) => self.cursor.seek(key),
            Some((_, _, Direction::Backward)) => {}
        }
        self.step(Direction::Backward)
    }

    fn step(&mut self, direction: Direction) -> Result<(), Error> {
        self.record = None;
        let found = match direction {
            Direction::Forward => self.cursor.next()?,
            Direction::Backward => self.cursor.prev()?,
        };
        let is_within = |key: &Value| {
            self.lower.as_ref().is_none_or(|lower| key[..] >= lower[..])
                && self.upper.as_ref().is_none_or(|upper| key[..] < upper[..])
        };
        self.record = found.filter(|(key, _)| is_within(key)).map(|(key, value)| (key, value, direction));
        Ok(())
    }
}
