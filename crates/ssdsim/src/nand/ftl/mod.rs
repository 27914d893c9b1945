//! The flash translation layer: where every unit is, the write cache, garbage collection.

mod blocks;
mod default_map;
mod geometry;
mod mapping;
mod permutation;
mod read;
mod start;
mod steady;

use flashgrain_device::Op;

use self::blocks::Blocks;
use self::geometry::Geometry;
use self::mapping::Mapping;
use self::read::ReadPath;
use super::flash::{Flash, FlashDone};
use crate::config::{NandConfig, SimConfig};
use crate::drive::Context;
use crate::error::Error;

/// What an operation on flash was made for, in the upper bits of its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Purpose {
    /// A host's read. The token holds the command and the bytes for it.
    HostRead,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Ftl {
    geometry: Geometry,
    mapping: Mapping,
    blocks: Blocks,
    read: ReadPath,
    volatile: bool,
}

impl Ftl {
    /// In the state that the configuration asks for.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no room to collect garbage in, or more units than can be numbered.
    pub fn new(config: &NandConfig, drive: &SimConfig) -> Result<Self, Error> {
        let geometry = Geometry::new(config, drive)?;
        let (mapping, blocks) = start::start(&geometry, drive.state, config.collect.policy);
        Ok(Self {
            read: ReadPath::new(config, &geometry),
            geometry,
            mapping,
            blocks,
            volatile: config.write_cache.volatile && config.write_cache.bytes > 0,
        })
    }

    /// Begins a command (see [`crate::medium::Medium::start`]).
    pub fn start(&mut self, command: u32, flash: &mut Flash, context: &mut Context<'_>) {
        match context.commands[command].op {
            Op::Read => self.start_read(command, flash, context),
            Op::Write | Op::WriteDsync | Op::WriteThenFlush | Op::Flush | Op::Discard => todo!(),
        }
    }

    /// An event that was scheduled here (kinds from [`super::FIRST_FTL_KIND`] on).
    pub fn event(&mut self, _kind: u8, index: u32, flash: &mut Flash, context: &mut Context<'_>) {
        self.look_up(index, flash, context);
    }

    /// An operation that was submitted here is done.
    pub fn flash_done(&mut self, done: &FlashDone, _flash: &mut Flash, context: &mut Context<'_>) {
        self.read_done(done, context);
    }

    /// Operations under way and the cache are lost; what was mapped to a unit of the cache stays mapped, as if it had been programmed: the
    /// content knows what was lost.
    pub fn power_cycle(&mut self) {}

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
    fn payload(token: u64) -> u64 {
        token & ((1 << Self::SHIFT) - 1)
    }
}

#[cfg(test)]
mod tests;
