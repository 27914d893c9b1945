//! The medium that stores the bytes, as the drive's front end sees it.

use crate::config::{MediumConfig, SimConfig};
use crate::disk::Disk;
use crate::drive::Context;
use crate::error::Error;
use crate::nand::Nand;
use crate::xpoint::Xpoint;

/// One of the media. Each begins a command in `start` and reports through the [`Context`] when it is done.
#[derive(Debug)]
pub(crate) enum Medium {
    Nand(Box<Nand>),
    Xpoint(Box<Xpoint>),
    Disk(Box<Disk>),
}

impl Medium {
    /// In the state that the configuration asks for.
    pub fn new(config: &SimConfig) -> Result<Self, Error> {
        match &config.medium {
            MediumConfig::Nand(nand) => Ok(Self::Nand(Box::new(Nand::new(nand, config)?))),
            MediumConfig::Xpoint(xpoint) => Ok(Self::Xpoint(Box::new(Xpoint::new(xpoint)))),
            MediumConfig::Disk(disk) => Ok(Self::Disk(Box::new(Disk::new(disk, config)))),
        }
    }

    /// Begins a command; the data of a write are in the drive.
    ///
    /// The medium answers a read with [`Context::data_ready`], part by part, until all its bytes are ready,
    /// and everything else with one [`Context::finish`]; at once or after events that it schedules. Ops are
    /// `Read`, `Write`, `WriteDsync`, `Flush` and `Discard`. The bytes of the drive have been written or
    /// discarded already; on a volatile drive the medium settles the content of writes.
    #[inline]
    pub fn start(&mut self, command: u32, context: &mut Context<'_>) {
        match self {
            Self::Nand(nand) => nand.start(command, context),
            Self::Xpoint(xpoint) => xpoint.start(command, context),
            Self::Disk(disk) => disk.start(command, context),
        }
    }

    /// An event that the medium scheduled.
    #[inline]
    pub fn event(&mut self, kind: u8, index: u32, context: &mut Context<'_>) {
        match self {
            Self::Nand(nand) => nand.event(kind, index, context),
            Self::Xpoint(xpoint) => xpoint.event(kind, index, context),
            Self::Disk(disk) => disk.event(kind, index, context),
        }
    }

    /// The power is gone and back: all operations under way are lost, and so is the content of a volatile
    /// cache. The content of the drive is kept elsewhere ([`crate::content`]); the medium only tracks places
    /// and busy times.
    pub fn power_cycle(&mut self) {
        match self {
            Self::Nand(nand) => nand.power_cycle(),
            Self::Xpoint(xpoint) => xpoint.power_cycle(),
            Self::Disk(disk) => disk.power_cycle(),
        }
    }

    /// Whether a completed write may be lost in a power cut.
    pub fn is_volatile(&self) -> bool {
        match self {
            Self::Nand(nand) => nand.is_volatile(),
            Self::Xpoint(_) => false,
            Self::Disk(disk) => disk.is_volatile(),
        }
    }
}
