//! Compares the summaries of tables with their contents: merges, scans and dropping rely on the summaries
//! alone.

use std::ops::Bound;

use super::cursor::RunCursor;
use super::levels::Run;
use super::reader::Reader;
use super::table::{Summary, Table};
use crate::Error;
use crate::buffered::{Cursor, Fragment};
use crate::index::{Direction, Version};
use crate::sync::Arc;

/// A cursor over all versions of a run that ends with an error at the first table that is not as its summary
/// says.
pub(super) struct Compared {
    cursor: RunCursor,
    rest: Rest,
}

/// The tables of a run that have not ended, and the summary found of the first of them.
struct Rest {
    run: Run,
    table: usize,
    found: Summary,
}

impl Compared {
    pub fn new(run: &Run, reader: &Reader) -> Result<Self, Error> {
        let cursor = RunCursor::new(run.clone(), reader, Direction::Forward, Bound::Unbounded)?;
        let is_apart = |one: &Arc<Table>, next: &Arc<Table>| one.summary.last_key <= next.summary.first_key;
        if let Some(pair) = run.windows(2).find(|pair| !is_apart(&pair[0], &pair[1])) {
            return Err(pair[0].out_of_step("keys after the next table's first one".into()));
        }
        let mut rest = Rest { run: run.clone(), table: 0, found: Summary::default() };
        rest.note(cursor.get())?;
        Ok(Self { cursor, rest })
    }
}

impl Cursor for Compared {
    fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        self.cursor.get()
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.cursor.advance()?;
        self.rest.note(self.cursor.get())
    }

    fn let_go(&mut self) {
        self.cursor.let_go();
    }
}

impl Rest {
    /// Takes the next version in, or that there is none.
    fn note(&mut self, next: Option<(&[u8], Version, &[u8])>) -> Result<(), Error> {
        while let Some(table) = self.run.get(self.table) {
            let Some((key, version, _)) = next.filter(|(key, ..)| *key <= table.summary.last_key.as_slice())
            else {
                compare(table, &std::mem::take(&mut self.found))?;
                self.table += 1;
                continue;
            };
            if key < table.summary.first_key.as_slice() {
                return Err(table.out_of_step(format!("the key {key:02x?}")));
            }
            self.found.count(version);
            return Ok(());
        }
        match (next, self.run.last()) {
            (Some((key, ..)), Some(last)) => Err(last.out_of_step(format!("the key {key:02x?}"))),
            _ => Ok(()),
        }
    }
}

/// Checks that a table's contents agree with its summary.
fn compare(table: &Table, found: &Summary) -> Result<(), Error> {
    let ranges = table.range_tombstones()?;
    let removed_at = ranges.fragments().iter().filter_map(|range| range.removed_at.first()).max();
    let Summary { first_key, last_key, .. } = &table.summary;
    let is_within = |range: &Fragment| range.lower >= *first_key && range.last_key() <= last_key.as_slice();
    if let Some(range) = ranges.fragments().iter().find(|range| !is_within(range)) {
        return Err(
            table.out_of_step(format!("a removal of the range {:02x?} to {:02x?}", range.lower, range.upper))
        );
    }
    let counts = |own: &Summary| (own.records, own.tombstones, own.overflows);
    let newest = found.newest.max(removed_at.map_or(0, |at| at.0));
    let Summary { range_tombstones, newest: noted, .. } = table.summary;
    if counts(&table.summary) == counts(found) && (range_tombstones, noted) == (ranges.count() as u64, newest)
    {
        return Ok(());
    }
    Err(table.out_of_step(format!(
        "records, removals and overflow values {:?}, {} removals of ranges, the newest of commit {newest}",
        counts(found),
        ranges.count()
    )))
}

#[cfg(test)]
mod tests {
    use super::super::table::Places;
    use super::*;
    use crate::log::Timestamp;

    /// A run of tables with these keys. Each is said to have some versions, the newest of commit 9.
    fn rest(tables: &[(u8, u8, u64)]) -> Rest {
        let table = |(first, last, records): &(u8, u8, u64)| {
            let (first_key, last_key) = (vec![*first], vec![*last]);
            let summary = Summary { first_key, last_key, records: *records, newest: 9, ..Summary::default() };
            Arc::new(Table::new(Vec::new(), Vec::new(), Places::default(), summary))
        };
        Rest { run: tables.iter().map(table).collect(), table: 0, found: Summary::default() }
    }

    /// Whether the tables are as they are said to be if they have these versions.
    fn is_so(tables: &[(u8, u8, u64)], versions: &[(u8, Version)]) -> bool {
        let mut rest = rest(tables);
        let each = |(key, version): &(u8, Version)| rest.note(Some((&[*key], *version, &[])));
        versions.iter().try_for_each(each).and_then(|()| rest.note(None)).is_ok()
    }

    #[test]
    fn a_table_has_what_its_summary_says() {
        let (new, old) = (Version::put(Timestamp(9)), Version::put(Timestamp(8)));
        let tables = [(1, 4, 2), (5, 9, 1)];
        assert!(is_so(&tables, &[(1, new), (4, old), (7, new)]));
        // Too few, too many, older ones, and other keys.
        assert!(!is_so(&tables, &[(1, new), (4, old)]));
        assert!(!is_so(&tables, &[(1, new), (7, new)]));
        assert!(!is_so(&tables, &[(1, new), (2, old), (4, old), (7, new)]));
        assert!(!is_so(&tables, &[(1, old), (4, old), (7, new)]));
        assert!(!is_so(&tables, &[(0, new), (4, old), (7, new)]));
        assert!(!is_so(&tables, &[(1, new), (4, old), (7, new), (10, new)]));
        // Of another kind.
        assert!(!is_so(&tables, &[(1, Version::tombstone(Timestamp(9))), (4, old), (7, new)]));
        let overflow = Version::overflow(Timestamp(9));
        assert!(!is_so(&tables, &[(1, overflow), (4, old), (7, new)]));
    }
}
