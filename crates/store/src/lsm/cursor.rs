//! Cursors over the tables of a run.

use std::ops::Bound;

use super::levels::Run;
use super::table::Table;
use super::table_cursor::{Reading, TableCursor};
use crate::Error;
use crate::buffered::{Cursor, Hidden, KeyInterval, Start, place_of};
use crate::index::{Direction, Version};
use crate::log::Timestamp;
use crate::pool::Pool;
use crate::sync::Arc;
use crate::task::Executor;

/// How cursors read tables.
#[derive(Clone)]
pub(super) struct Reader {
    pub pool: Arc<Pool>,
    pub executor: Executor,
    pub reading: Reading,
}

impl Hidden {
    /// Whether all versions of a table are removed.
    fn has_all_of(&self, table: &Table) -> bool {
        let fragment = self.ranges.of(&table.summary.first_key);
        let of = fragment.filter(|fragment| fragment.contains(KeyInterval::of(table)));
        let removed_at = of.and_then(|fragment| fragment.newest(self.at));
        removed_at.is_some_and(|removed_at| Timestamp(table.summary.newest) < removed_at)
    }
}

/// See [`Cursor`].
pub(super) struct RunCursor {
    run: Run,
    reader: Reader,
    /// Tables that are not even read.
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

    /// Goes to the first version of the present table, or of the next ones, that there is.
    fn enter(&mut self, mut place: Option<(&[u8], Timestamp)>) -> Result<(), Error> {
        self.inside = None;
        while let Some(table) = self.run.get(self.table) {
            if !self.hidden.as_ref().is_some_and(|hidden| hidden.has_all_of(table)) {
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
