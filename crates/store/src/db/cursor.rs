//! A position between records that can be moved.

use super::range::Range;
use super::source::{Records, View};
use super::value::Value;
use crate::Error;
use crate::index::{Direction, behind};

/// A position in a tree that moves both ways and to any key; made by
/// [`Readable::cursor`](crate::Readable::cursor). It owns a snapshot.
///
/// The position lies between records: [`Cursor::next`] returns the record after it and steps over that,
/// [`Cursor::prev`] the one before it.
///
/// ```
/// # use flashgrain::{Db, Readable};
/// # fn main() -> Result<(), flashgrain::Error> {
/// # let db = Db::in_memory(64 << 20)?;
/// # let tree = db.tree("letters")?;
/// for letter in ["a", "c", "e"] {
///     tree.insert(letter, "")?;
/// }
/// let mut cursor = db.cursor(&tree)?;
/// cursor.seek("b");
/// assert_eq!(cursor.next()?.unwrap().0, "c");
/// assert_eq!(cursor.prev()?.unwrap().0, "c");
/// assert_eq!(cursor.prev()?.unwrap().0, "a");
/// assert!(cursor.prev()?.is_none());
/// # Ok(())
/// # }
/// ```
pub struct Cursor {
    view: View,
    position: Position,
    records: Option<(Direction, Records)>,
}

/// Between which records the cursor is.
#[derive(Clone, Debug)]
enum Position {
    Start,
    Before(Vec<u8>),
    Behind(Vec<u8>),
    End,
}

impl Cursor {
    pub(super) fn new(view: View) -> Self {
        Self { view, position: Position::Start, records: None }
    }

    /// To just before `key`, whether such a record exists or not.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        self.move_to(Position::Before(key.as_ref().to_vec()));
    }

    /// To just after `key`, whether such a record exists or not.
    pub fn seek_behind(&mut self, key: impl AsRef<[u8]>) {
        self.move_to(Position::Behind(key.as_ref().to_vec()));
    }

    /// To before the first record.
    pub fn seek_start(&mut self) {
        self.move_to(Position::Start);
    }

    /// To the end, after the last record.
    pub fn seek_end(&mut self) {
        self.move_to(Position::End);
    }

    /// Returns the record after the position, and steps over it. `None` at the end.
    ///
    /// # Errors
    /// As [`Readable::get`](crate::Readable::get); the position stays, so the next call tries the same record
    /// again. [`Cursor::seek_behind`] its key passes it.
    #[expect(
        clippy::should_implement_trait,
        reason = "a cursor has no one direction, and may go on after its end"
    )]
    pub fn next(&mut self) -> Result<Option<(Value, Value)>, Error> {
        self.step(Direction::Forward)
    }

    /// Returns the record before the position, and steps over it. `None` at the start.
    ///
    /// # Errors
    /// As [`Readable::get`](crate::Readable::get); the position stays.
    pub fn prev(&mut self) -> Result<Option<(Value, Value)>, Error> {
        self.step(Direction::Backward)
    }

    fn move_to(&mut self, position: Position) {
        (self.position, self.records) = (position, None);
    }

    fn step(&mut self, direction: Direction) -> Result<Option<(Value, Value)>, Error> {
        let Some(range) = self.position.range(direction) else { return Ok(None) };
        let records = match self.records.take() {
            Some((same, records)) if same == direction => records,
            _ => Records::new(&self.view, &range, direction),
        };
        let (_, records) = self.records.insert((direction, records));
        let found = records.next();
        match (&found, direction) {
            (Ok(Some((key, _))), Direction::Forward) => self.position = Position::Behind(key.to_vec()),
            (Ok(Some((key, _))), Direction::Backward) => self.position = Position::Before(key.to_vec()),
            (Ok(None), Direction::Forward) => self.position = Position::End,
            (Ok(None), Direction::Backward) => self.position = Position::Start,
            (Err(_), _) => self.records = None,
        }
        found
    }
}

impl Position {
    /// The range of keys in this direction; `None` if it is empty.
    fn range(&self, direction: Direction) -> Option<Range> {
        let bound = match self {
            Self::Start | Self::End => Vec::new(),
            Self::Before(key) => key.clone(),
            Self::Behind(key) => behind(key),
        };
        match (self, direction) {
            (Self::Start, Direction::Backward) | (Self::End, Direction::Forward) => None,
            (Self::Start, Direction::Forward) | (Self::End, Direction::Backward) => Some(Range::default()),
            (_, Direction::Forward) => Some(Range { lower: bound, upper: None }),
            (_, Direction::Backward) => Some(Range { lower: Vec::new(), upper: Some(bound) }),
        }
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cursor").field("position", &self.position).finish_non_exhaustive()
    }
}
