//! NAND flash: a translation layer above an array of chips.

mod flash;
mod ftl;

use self::flash::Flash;
use self::ftl::Ftl;
use crate::config::{NandConfig, SimConfig};
use crate::drive::Context;
use crate::error::Error;

/// Kinds of events from here on belong to the translation layer, those below to the array.
const FIRST_FTL_KIND: u8 = 128;

/// Refuses a drive that has no room to collect garbage in.
pub(crate) fn check_room(config: &NandConfig, drive: &SimConfig) -> Result<(), Error> {
    ftl::check_room(config, drive)
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Nand {
    ftl: Ftl,
    flash: Flash,
}

impl Nand {
    pub fn new(config: &NandConfig, drive: &SimConfig) -> Result<Self, Error> {
        Ok(Self { ftl: Ftl::new(config, drive)?, flash: Flash::new(config) })
    }

    #[inline]
    pub fn start(&mut self, command: u32, context: &mut Context<'_>) {
        self.ftl.start(command, &mut self.flash, context);
    }

    #[inline]
    pub fn event(&mut self, kind: u8, index: u32, context: &mut Context<'_>) {
        if kind >= FIRST_FTL_KIND {
            self.ftl.event(kind, index, &mut self.flash, context);
        } else if let Some(done) = self.flash.event(kind, index, context) {
            self.ftl.flash_done(&done, &mut self.flash, context);
        }
    }

    pub fn power_cycle(&mut self) {
        self.flash.power_cycle();
        self.ftl.power_cycle();
    }

    pub fn is_volatile(&self) -> bool {
        self.ftl.is_volatile()
    }
}
