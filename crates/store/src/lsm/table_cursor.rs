//! A cursor over a table.

use std::panic::resume_unwind;

use super::block::{Block, Record};
use super::reader::{Reader, Reading};
use super::table::{Entries, Place, Table};
use crate::Error;
use crate::index::{Direction, Version};
use crate::log::Timestamp;
use crate::sync::Arc;
use crate::task::JoinHandle;

/// Blocks that a scan reads one by one, and keeps in memory, before it reads as many as it has read so far at
/// once, and the next partition while it uses those of one.
const BLOCKS_ALONE: usize = 16;

/// Blocks of a partition that were read together, or are being read.
type Together = (Vec<Place>, Vec<Block>);

/// See the module.
pub(super) struct TableCursor {
    table: Arc<Table>,
    reader: Reader,
    reading: Reading,
    direction: Direction,
    /// Number of the partition, and of the block in it.
    partition: usize,
    block: usize,
    /// Those of the partition's blocks; while `is_alone`, only the present one's, as a short scan needs no
    /// more.
    places: Vec<Place>,
    is_alone: bool,
    /// Blocks that were read together, and the number of the first of them.
    together: Vec<Block>,
    together_from: usize,
    /// The next partition.
    ahead: Option<JoinHandle<Result<Together, Error>>>,
    blocks_read: usize,
    records: Records,
}

/// The present record of a block.
enum Records {
    None,
    Forward { block: Block, key: Vec<u8>, record: Option<Record> },
    Backward { block: Block, entries: Entries, at: usize },
}

impl Records {
    fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        match self {
            Self::None => None,
            Self::Forward { block, key, record } => {
                let record = record.as_ref()?;
                Some((key, record.version, block.value(record)))
            }
            Self::Backward { block, entries, at } => {
                let (key, record) = entries.get(*at)?;
                Some((key, record.version, block.value(record)))
            }
        }
    }
}

impl TableCursor {
    /// At the first record that does not lie before `place` in the direction's order, or at the first of all.
    pub fn new(
        table: &Arc<Table>,
        reader: &Reader,
        direction: Direction,
        place: Option<(&[u8], Timestamp)>,
    ) -> Result<Self, Error> {
        let mut cursor = Self {
            table: Arc::clone(table),
            reading: reader.reading,
            reader: reader.clone(),
            direction,
            partition: 0,
            block: 0,
            places: Vec::new(),
            is_alone: false,
            together: Vec::new(),
            together_from: 0,
            ahead: None,
            blocks_read: 0,
            records: Records::None,
        };
        cursor.seek(place)?;
        Ok(cursor)
    }

    fn seek(&mut self, place: Option<(&[u8], Timestamp)>) -> Result<(), Error> {
        let Some(last) = self.table.partitions()?.checked_sub(1) else { return Ok(()) };
        self.partition = match (place, self.direction) {
            (Some(place), _) => self.table.partition_of(place)?.min(last),
            (None, Direction::Forward) => 0,
            (None, Direction::Backward) => last,
        };
        let alone = match place {
            Some(place) if self.reading == Reading::Kept && self.direction == Direction::Forward => {
                self.table.block_from(&self.reader.pool, self.partition, place)?
            }
            _ => None,
        };
        self.is_alone = alone.is_some();
        (self.places, self.block) = match alone {
            Some(alone) => (vec![alone], 0),
            None => {
                let (places, before) = self.table.blocks_of(&self.reader.pool, self.partition, place)?;
                let block = match (place, self.direction) {
                    (None, Direction::Backward) => places.len() - 1,
                    _ => before.min(places.len() - 1),
                };
                (places, block)
            }
        };
        self.load(place)?;
        if self.records.get().is_none() {
            self.next_block()?;
        }
        Ok(())
    }

    /// Goes into the present block.
    fn load(&mut self, place: Option<(&[u8], Timestamp)>) -> Result<(), Error> {
        let block = self.read()?;
        let damaged = || self.table.damaged_at(self.places.get(self.block).copied());
        self.records = match self.direction {
            Direction::Forward => {
                let mut key = match std::mem::replace(&mut self.records, Records::None) {
                    Records::Forward { key, .. } => key,
                    _ => Vec::new(),
                };
                let record = block.first_from(place, &mut key).map_err(|()| damaged())?;
                Records::Forward { block, key, record }
            }
            Direction::Backward => {
                let entries = Entries::of(&block).ok_or_else(damaged)?;
                let behind = place.map_or(entries.len(), |place| entries.before(place));
                Records::Backward { block, entries, at: behind.wrapping_sub(1) }
            }
        };
        Ok(())
    }

    fn read(&mut self) -> Result<Block, Error> {
        self.blocks_read += 1;
        if self.blocks_read > BLOCKS_ALONE && self.direction == Direction::Forward {
            self.reading = Reading::Once;
        }
        let Some(place) = self.places.get(self.block).copied() else {
            return Err(self.table.damaged_at(None));
        };
        if self.reading == Reading::Kept || self.direction == Direction::Backward {
            return self.table.block(&self.reader.pool, place);
        }
        let number = |own: &Self| own.block.checked_sub(own.together_from);
        if let Some(block) = number(self).and_then(|number| self.together.get(number)) {
            return Ok(block.clone());
        }
        let most = match self.reader.reading {
            Reading::Once => usize::MAX,
            // As many again as the scan has used so far.
            Reading::Kept => self.blocks_read,
        };
        let rest = self.places.get(self.block..).unwrap_or_default();
        self.together = self.table.read_blocks(rest.get(..most).unwrap_or(rest))?;
        self.together_from = self.block;
        if most >= self.places.len() {
            self.read_ahead();
        }
        self.together.first().cloned().ok_or_else(|| self.table.damaged_at(Some(place)))
    }

    /// Begins to read the next partition.
    fn read_ahead(&mut self) {
        let next = self.partition + 1;
        if self.table.partitions().is_ok_and(|count| next < count) {
            let (table, pool) = (Arc::clone(&self.table), Arc::clone(&self.reader.pool));
            self.ahead = Some(self.reader.executor.run_for(move || {
                let (places, _) = table.blocks_of(&pool, next, None)?;
                let blocks = table.read_blocks(&places)?;
                Ok((places, blocks))
            }));
        }
    }

    /// Finds all blocks of the present one's partition.
    fn find_places(&mut self) -> Result<(), Error> {
        let present = self.places.get(self.block).copied();
        self.places = self.table.blocks_of(&self.reader.pool, self.partition, None)?.0;
        self.is_alone = false;
        let number = self.places.iter().position(|place| Some(*place) == present);
        self.block = number.ok_or_else(|| self.table.damaged_at(present))?;
        Ok(())
    }

    fn next_block(&mut self) -> Result<(), Error> {
        if self.is_alone {
            self.find_places()?;
        }
        let is_last = match self.direction {
            Direction::Forward => self.block + 1 == self.places.len(),
            Direction::Backward => self.block == 0,
        };
        if !is_last {
            self.block = match self.direction {
                Direction::Forward => self.block + 1,
                Direction::Backward => self.block - 1,
            };
            return self.load(None);
        }
        let next = match self.direction {
            Direction::Forward => Some(self.partition + 1)
                .filter(|next| self.table.partitions().is_ok_and(|count| *next < count)),
            Direction::Backward => self.partition.checked_sub(1),
        };
        let Some(next) = next else {
            self.records = Records::None;
            return Ok(());
        };
        self.enter(next)?;
        self.load(None)
    }

    /// Goes to the first block of a partition in the direction.
    fn enter(&mut self, partition: usize) -> Result<(), Error> {
        self.partition = partition;
        self.together.clear();
        match self.ahead.take() {
            Some(ahead) => {
                let read = ahead.join().unwrap_or_else(|panic| resume_unwind(panic));
                (self.places, self.together) = read?;
                self.together_from = 0;
                self.read_ahead();
            }
            None => self.places = self.table.blocks_of(&self.reader.pool, partition, None)?.0,
        }
        self.block = match self.direction {
            Direction::Forward => 0,
            Direction::Backward => self.places.len() - 1,
        };
        Ok(())
    }

    /// The present record; `None` at the end.
    pub fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        let (key, version, value) = self.records.get()?;
        Some((key, self.table.version(version), value))
    }

    /// Has no share of memory that others may want.
    pub fn let_go(&mut self) {
        match &mut self.records {
            Records::None => {}
            Records::Forward { block, .. } | Records::Backward { block, .. } => block.let_go(),
        }
    }

    /// Goes to the next record.
    ///
    /// # Errors
    /// Those of reading the table.
    pub fn advance(&mut self) -> Result<(), Error> {
        let is_there = match &mut self.records {
            Records::None => return Ok(()),
            Records::Forward { block, key, record } => {
                let next = record.as_ref().map_or(Ok(None), |present| block.after(present, key));
                *record = next.map_err(|()| self.table.damaged_at(self.places.get(self.block).copied()))?;
                record.is_some()
            }
            Records::Backward { entries, at, .. } => {
                *at = at.wrapping_sub(1);
                *at < entries.len()
            }
        };
        if is_there { Ok(()) } else { self.next_block() }
    }
}
