//! The flash translation layer: where every unit is, the write cache, garbage collection.

mod blocks;
mod collect;
mod default_map;
mod discard;
mod flush;
mod geometry;
mod history;
mod lru;
mod mapping;
mod mapping_cache;
mod permutation;
mod place;
mod power;
mod program;
mod read;
mod rows;
mod start;
mod steady;
mod write;

use flashgrain_device::Op;

use self::blocks::Blocks;
use self::collect::Collector;
use self::flush::Flushes;
use self::geometry::Geometry;
use self::mapping::Mapping;
use self::mapping_cache::TableCache;
use self::place::Placement;
use self::read::ReadPath;
use self::rows::Rows;
use self::write::WriteQueue;
use super::flash::{Flash, FlashDone};
use crate::config::{CollectPolicy, NandConfig, SimConfig};
use crate::drive::Context;
use crate::error::Error;

/// Purpose of an operation on flash: the upper bits of its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A host's read. The token holds the command and the bytes for it.
    HostRead,
    /// Something that a row waits for; the token holds the row.
    RowRead,
    /// A row.
    Program,
    /// Recycling of the journal.
    JournalErase,
    /// A part of the mapping table; the token holds its number.
    TableRead,
    /// Collection; the token holds the die.
    CollectRead,
    CollectErase,
}

/// Refuses a drive that has no room to collect garbage in, or more units than can be numbered.
pub(super) fn check_room(config: &NandConfig, drive: &SimConfig) -> Result<(), Error> {
    Geometry::new(config, drive).map(drop)
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Ftl {
    geometry: Geometry,
    policy: CollectPolicy,
    wear_gap: u32,
    /// Whether a write that has completed may be lost.
    volatile: bool,
    mapping: Mapping,
    table: Option<TableCache>,
    blocks: Blocks,
    read: ReadPath,
    placement: Placement,
    rows: Rows,
    writes: WriteQueue,
    flushes: Flushes,
    collectors: Vec<Collector>,
    /// Whether there were only reads since the start, so that the work under way then rests.
    rests: bool,
    /// Scratch memory of collection.
    moving: Vec<u32>,
}

impl Ftl {
    /// In the state that the configuration asks for.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no room to collect garbage in, or more units than can be numbered.
    pub fn new(config: &NandConfig, drive: &SimConfig) -> Result<Self, Error> {
        let geometry = Geometry::new(config, drive)?;
        let (mapping, blocks) = start::start(&geometry, config, drive);
        let mut ftl = Self {
            policy: config.collect.policy,
            wear_gap: config.collect.wear_gap,
            volatile: config.write_cache.volatile && config.write_cache.bytes > 0,
            mapping,
            table: TableCache::new(&config.mapping, &geometry),
            blocks,
            read: ReadPath::new(config, &geometry),
            placement: Placement::new(config, &geometry),
            rows: Rows::default(),
            writes: WriteQueue::new(config),
            flushes: Flushes::new(&geometry),
            collectors: vec![Collector::default(); geometry.dies as usize],
            rests: true,
            moving: Vec::new(),
            geometry,
        };
        ftl.reopen_blocks();
        Ok(ftl)
    }

    /// Begins a command (see [`crate::medium::Medium::start`]).
    #[inline]
    pub fn start(&mut self, command: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let op = context.commands[command].op;
        if self.rests && op != Op::Read {
            self.resume(flash, context);
        }
        match op {
            Op::Read => self.start_read(command, flash, context),
            Op::Write | Op::WriteDsync | Op::WriteThenFlush => self.start_write(command, flash, context),
            Op::Flush => self.start_flush(command, flash, context),
            Op::Discard => self.discard(command, flash, context),
        }
    }

    /// An event that was scheduled here (kinds from [`super::FIRST_FTL_KIND`] on).
    #[inline]
    pub fn event(&mut self, kind: u8, index: u32, flash: &mut Flash, context: &mut Context<'_>) {
        debug_assert_eq!(kind, read::LOOKED_UP);
        self.look_up(index, flash, context);
    }

    /// An operation that was submitted here is done.
    #[inline]
    pub fn flash_done(&mut self, done: &FlashDone, flash: &mut Flash, context: &mut Context<'_>) {
        let number = Purpose::payload(done.op.token) as u32;
        match Purpose::of(done.op.token) {
            Purpose::HostRead => self.read_done(done, context),
            Purpose::RowRead => self.row_read_done(number, flash, context),
            Purpose::Program => self.programmed(done, flash, context),
            Purpose::JournalErase => {}
            Purpose::TableRead => self.table_read_done(number, flash, context),
            Purpose::CollectRead => self.collect_read_done(number, flash, context),
            Purpose::CollectErase => self.collect_erase_done(number, flash, context),
        }
    }

    /// Whether a write that has completed may be lost.
    pub fn is_volatile(&self) -> bool {
        self.volatile
    }
}

impl Purpose {
    const SHIFT: u32 = 60;

    /// For an operation of this purpose; `payload` is below 2^60.
    #[inline]
    fn token(self, payload: u64) -> u64 {
        debug_assert!(payload < 1 << Self::SHIFT);
        (self as u64) << Self::SHIFT | payload
    }

    #[inline]
    fn of(token: u64) -> Self {
        const ALL: [Purpose; 7] = [
            Purpose::HostRead,
            Purpose::RowRead,
            Purpose::Program,
            Purpose::JournalErase,
            Purpose::TableRead,
            Purpose::CollectRead,
            Purpose::CollectErase,
        ];
        ALL[(token >> Self::SHIFT) as usize]
    }

    #[inline]
    fn payload(token: u64) -> u64 {
        token & ((1 << Self::SHIFT) - 1)
    }
}

#[cfg(test)]
mod tests;
