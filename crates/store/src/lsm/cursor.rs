//! Cursors over the tables of a run.

use std::ops::Bound;

use super::levels::Run;
use super::reader::Reader;
use super::table::Table;
use super::table_cursor::TableCursor;
use crate::Error;
use crate::buffered::{Cursor, Hidden, KeyInterval, Removals, Removed, Start, place_of};
use crate::index::{Direction, Version};
use crate::log::Timestamp;

impl Removals for Table {
    /// Only of removals that were read before.
    fn around(&self, key: &[u8], at: Timestamp) -> Removed {
        self.known_range_tombstones().map(|ranges| ranges.around(key, at)).unwrap_or_default()
    }
}

/// See [`Cursor`].
pub(super) struct RunCursor {
    run: Run,
    reader: Reader,
    /// Ranges that hide whole tables, which are not even read.
    hidden: Option<Hidden>,
    direction: Direction,
    /// Number of the table, and the cursor in it; `None` at the end.
    table: usize,
    inside: Option<TableCursor>,
}

impl RunCursor {
    pub fn new(run: Run, reader: &Reader, direction: Direction, start: Start<'_>) -> Result<Self, Error> {
        Self::without(run, reader, direction, start, None)
    }

    /// Without tables that are hidden as a whole.
    pub fn without(
        run: Run,
        reader: &Reader,
        direction: Direction,
        start: Start<'_>,
        hidden: Option<Hidden>,
    ) -> Result<Self, Error> {
        let table = match (start, direction) {
            (Bound::Unbounded, Direction::Forward) => 0,
            (Bound::Unbounded, Direction::Backward) => run.len().saturating_sub(1),
            (Bound::Included(key) | Bound::Excluded(key), Direction::Forward) => {
                let ends_at = |last: &[u8]| last == key && planted!(ScanSkipsLastKeyOfTable);
                let is_before = |last: &[u8]| last < key || ends_at(last);
                run.partition_point(|table| is_before(&table.summary.last_key))
            }
            (Bound::Included(key) | Bound::Excluded(key), Direction::Backward) => {
                run.partition_point(|table| table.summary.first_key.as_slice() <= key).wrapping_sub(1)
            }
        };
        let reader = reader.clone();
        let mut cursor = Self { run, reader, hidden, direction, table, inside: None };
        cursor.enter(place_of(start, direction))?;
        Ok(cursor)
    }

    /// Goes to the first version of the present table, or of the next one that has any.
    fn enter(&mut self, mut place: Option<(&[u8], Timestamp)>) -> Result<(), Error> {
        self.inside = None;
        while let Some(table) = self.run.get(self.table) {
            let newest = Timestamp(table.summary.newest);
            let is_hidden = |hidden: &Hidden| hidden.has_all(KeyInterval::of(table), newest);
            if !self.hidden.as_ref().is_some_and(is_hidden) {
                let inside = TableCursor::new(table, &self.reader, self.direction, place)?;
                if inside.get().is_some() {
                    self.inside = Some(inside);
                    return Ok(());
                }
            }
            place = None;
            self.next_table();
        }
        Ok(())
    }

    fn next_table(&mut self) {
        self.table = match self.direction {
            Direction::Forward => self.table + 1,
            Direction::Backward => self.table.wrapping_sub(1),
        };
    }
}

impl Cursor for RunCursor {
    fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        self.inside.as_ref()?.get()
    }

    fn advance(&mut self) -> Result<(), Error> {
        let Some(inside) = &mut self.inside else { return Ok(()) };
        match inside.advance() {
            Err(_) if planted!(ReadErrorEndsTable) => self.inside = None,
            advanced => advanced?,
        }
        if self.inside.as_ref().is_none_or(|inside| inside.get().is_none()) {
            self.next_table();
            self.enter(None)?;
        }
        Ok(())
    }

    fn let_go(&mut self) {
        self.inside.iter_mut().for_each(TableCursor::let_go);
    }
}
