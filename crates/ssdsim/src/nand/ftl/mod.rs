//! The flash translation layer: where every unit is, the write cache, garbage collection.

use super::flash::{Flash, FlashDone};
use crate::config::{NandConfig, SimConfig};
use crate::drive::Context;
use crate::error::Error;

/// See the module.
#[derive(Debug)]
pub(crate) struct Ftl {}

impl Ftl {
    pub fn new(_config: &NandConfig, _drive: &SimConfig) -> Result<Self, Error> {
        todo!()
    }

    /// Begins a command (see [`crate::medium::Medium::start`]).
    pub fn start(&mut self, _command: u32, _flash: &mut Flash, _context: &mut Context<'_>) {
        todo!()
    }

    /// An event that was scheduled here (kinds from [`super::FIRST_FTL_KIND`] on).
    pub fn event(&mut self, _kind: u8, _index: u32, _flash: &mut Flash, _context: &mut Context<'_>) {
        todo!()
    }

    /// An operation that was submitted here is done.
    pub fn flash_done(&mut self, _done: &FlashDone, _flash: &mut Flash, _context: &mut Context<'_>) {
        todo!()
    }

    /// Operations under way and the cache are lost; what was mapped to a unit of the cache stays mapped, as if it had been programmed: the
    /// content knows what was lost.
    pub fn power_cycle(&mut self) {
        todo!()
    }

    /// Whether a write that has completed may be lost.
    pub fn is_volatile(&self) -> bool {
        todo!()
    }
}
