//! Cursors: versions of one source in the order of a scan, and of several sources together.
//!
//! Forward that is by key, and of a key the newer versions first; backward the other way round.

use super::block::order;
use super::levels::Run;
use super::memtable::{Memtable, OwnVersion};
use super::table::{Entries, Table};
use crate::Error;
use crate::index::{Direction, Version};
use crate::sync::Arc;
use std::cmp::Ordering;
use std::ops::Bound;

/// Where a scan begins: at this key, or behind it in the scan's direction; `None`: at the end.
pub(super) type Start<'a> = Bound<&'a [u8]>;

/// Versions one after the other.
pub(super) trait Cursor {
    /// The present version; `None` if there are no more.
    fn get(&self) -> Option<(&[u8], Version, &[u8])>;

    /// Goes to the next one.
    ///
    /// # Errors
    /// Those of reading a table.
    fn advance(&mut self) -> Result<(), Error>;
}

/// Versions of a memtable that are copied at a time.
const COPIED: usize = 128;

/// See [`Cursor`].
pub(super) struct MemtableCursor {
    table: Arc<Memtable>,
    direction: Direction,
    copied: Vec<OwnVersion>,
    at: usize,
}

impl MemtableCursor {
    pub fn new(table: &Arc<Memtable>, direction: Direction, start: Start<'_>) -> Self {
        let mut cursor = Self { table: Arc::clone(table), direction, copied: Vec::new(), at: 0 };
        cursor.copy(start);
        cursor
    }

    fn copy(&mut self, start: Start<'_>) {
        self.copied = self.table.range(start, self.direction, COPIED);
        self.at = 0;
    }
}

impl Cursor for MemtableCursor {
    fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        let found = self.copied.get(self.at)?;
        Some((&found.key, found.version, &found.value))
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.at += 1;
        if self.at == self.copied.len()
            && let Some(last) = self.copied.pop()
        {
            self.copy(Bound::Excluded(&last.key));
        }
        Ok(())
    }
}

/// See [`Cursor`].
struct TableCursor {
    table: Arc<Table>,
    direction: Direction,
    /// Number of the partition, and of the block in it.
    partition: usize,
    block: usize,
    blocks: Vec<super::table::Place>,
    entries: Entries,
    /// The present one; behind the last, or wrapped around before the first, at the end.
    at: usize,
}

impl TableCursor {
    fn new(table: &Arc<Table>, direction: Direction, start: Start<'_>) -> Result<Self, Error> {
        let mut cursor = Self {
            table: Arc::clone(table),
            direction,
            partition: 0,
            block: 0,
            blocks: Vec::new(),
            entries: Entries::default(),
            at: 0,
        };
        cursor.seek(start)?;
        Ok(cursor)
    }

    fn seek(&mut self, start: Start<'_>) -> Result<(), Error> {
        let (partitions, direction) = (self.table.partitions()?, self.direction);
        // Versions before this place are not wanted, forward; backward only these are.
        let is_before =
            |key: &[u8]| match (start, direction) {
                (Bound::Unbounded, Direction::Forward) => false,
                (Bound::Unbounded, Direction::Backward) => true,
                (Bound::Included(bound), Direction::Forward)
                | (Bound::Excluded(bound), Direction::Backward) => key < bound,
                (Bound::Excluded(bound), Direction::Forward)
                | (Bound::Included(bound), Direction::Backward) => key <= bound,
            };
        let last = partitions - 1;
        self.partition = self.table.partition_of(is_before)?.min(last);
        self.blocks = self.table.blocks_of(self.partition)?;
        self.block = self.table.block_of(self.partition, is_before)?.min(self.blocks.len() - 1);
        self.load()?;
        self.at = self.entries.partition_point(is_before);
        match self.direction {
            Direction::Forward if self.at == self.entries.len() => self.next_block(),
            Direction::Backward => self.back(),
            Direction::Forward => Ok(()),
        }
    }

    fn load(&mut self) -> Result<(), Error> {
        self.entries = self.table.entries(self.blocks[self.block])?;
        Ok(())
    }

    fn next_block(&mut self) -> Result<(), Error> {
        self.block += 1;
        if self.block == self.blocks.len() {
            if self.partition + 1 == self.table.partitions()? {
                self.at = usize::MAX;
                return Ok(());
            }
            self.partition += 1;
            self.blocks = self.table.blocks_of(self.partition)?;
            self.block = 0;
        }
        self.load()?;
        self.at = 0;
        Ok(())
    }

    fn back(&mut self) -> Result<(), Error> {
        if self.at > 0 {
            self.at -= 1;
            return Ok(());
        }
        if self.block == 0 {
            if self.partition == 0 {
                self.at = usize::MAX;
                return Ok(());
            }
            self.partition -= 1;
            self.blocks = self.table.blocks_of(self.partition)?;
            self.block = self.blocks.len();
        }
        self.block -= 1;
        self.load()?;
        self.at = self.entries.len() - 1;
        Ok(())
    }
}

impl Cursor for TableCursor {
    fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        self.entries.get(self.at)
    }

    fn advance(&mut self) -> Result<(), Error> {
        match self.direction {
            Direction::Forward if self.at + 1 < self.entries.len() => {
                self.at += 1;
                Ok(())
            }
            Direction::Forward => self.next_block(),
            Direction::Backward => self.back(),
        }
    }
}

/// See [`Cursor`].
pub(super) struct RunCursor {
    run: Run,
    direction: Direction,
    /// Number of the table, and the cursor in it; `None` at the end.
    table: usize,
    inside: Option<TableCursor>,
}

impl RunCursor {
    pub fn new(run: Run, direction: Direction, start: Start<'_>) -> Result<Self, Error> {
        let table = match (start, direction) {
            (Bound::Unbounded, Direction::Forward) => 0,
            (Bound::Unbounded, Direction::Backward) => run.len().saturating_sub(1),
            (Bound::Included(key) | Bound::Excluded(key), Direction::Forward) => {
                run.partition_point(|table| table.summary.last_key.as_slice() < key)
            }
            (Bound::Included(key) | Bound::Excluded(key), Direction::Backward) => {
                run.partition_point(|table| table.summary.first_key.as_slice() <= key).saturating_sub(1)
            }
        };
        let mut cursor = Self { run, direction, table, inside: None };
        cursor.enter(start)?;
        Ok(cursor)
    }

    /// Goes to the first version of the present table, or of the next ones, that there is.
    fn enter(&mut self, mut start: Start<'_>) -> Result<(), Error> {
        while let Some(table) = self.run.get(self.table) {
            let inside = TableCursor::new(table, self.direction, start)?;
            if inside.get().is_some() {
                self.inside = Some(inside);
                return Ok(());
            }
            start = Bound::Unbounded;
            self.table = match self.direction {
                Direction::Forward => self.table + 1,
                Direction::Backward => self.table.wrapping_sub(1),
            };
        }
        self.inside = None;
        Ok(())
    }
}

impl Cursor for RunCursor {
    fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        self.inside.as_ref()?.get()
    }

    fn advance(&mut self) -> Result<(), Error> {
        let Some(inside) = &mut self.inside else { return Ok(()) };
        inside.advance()?;
        if inside.get().is_none() {
            self.table = match self.direction {
                Direction::Forward => self.table + 1,
                Direction::Backward => self.table.wrapping_sub(1),
            };
            self.enter(Bound::Unbounded)?;
        }
        Ok(())
    }
}

/// The versions of several sources in order. One that several have is there once.
pub(super) struct Merged {
    sources: Vec<Box<dyn Cursor>>,
    direction: Direction,
    /// The source with the present version.
    first: Option<usize>,
}

impl Merged {
    pub fn new(sources: Vec<Box<dyn Cursor>>, direction: Direction) -> Self {
        let mut merged = Self { sources, direction, first: None };
        merged.first = merged.find_first();
        merged
    }

    fn find_first(&self) -> Option<usize> {
        let mut first: Option<(usize, (&[u8], Version))> = None;
        for (number, source) in self.sources.iter().enumerate() {
            let Some((key, version, _)) = source.get() else { continue };
            let is_first = first.is_none_or(|(_, (other_key, other))| {
                let ordered = order((key, version.timestamp()), (other_key, other.timestamp()));
                match self.direction {
                    Direction::Forward => ordered == Ordering::Less,
                    Direction::Backward => ordered == Ordering::Greater,
                }
            });
            if is_first {
                first = Some((number, (key, version)));
            }
        }
        first.map(|(number, _)| number)
    }
}

impl Cursor for Merged {
    fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        self.sources.get(self.first?)?.get()
    }

    fn advance(&mut self) -> Result<(), Error> {
        let Some((first, (key, version, _))) = self.first.zip(self.get()) else { return Ok(()) };
        let same = |source: &dyn Cursor| {
            source.get().is_some_and(|(other, its, _)| other == key && its.timestamp() == version.timestamp())
        };
        // Replayed versions may lie in a memtable and in a table.
        let copies: Vec<usize> = (0..self.sources.len())
            .filter(|number| *number == first || same(&*self.sources[*number]))
            .collect();
        for number in copies {
            self.sources[number].advance()?;
        }
        self.first = self.find_first();
        Ok(())
    }
}
