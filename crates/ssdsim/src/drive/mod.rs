//! The drive as its host sees it: device, channels, host queue, command processing and link.

mod cap;
mod channel;
mod command;
mod control;
mod device;
mod faults;
mod host;
mod image;
mod power;
#[cfg(test)]
pub(crate) mod testing;
mod world;

pub(crate) use command::{Command, Stages};
pub use control::FaultId;
pub use device::SimDevice;
pub use image::{Image, UnsettledWrite};
pub(crate) use world::Context;
