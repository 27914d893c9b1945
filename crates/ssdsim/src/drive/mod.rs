//! The drive as its host sees it: device, channels, host queue, command processing and link.

mod channel;
mod command;
mod device;
mod host;
#[cfg(test)]
pub(crate) mod testing;
mod world;

pub(crate) use command::{Command, Stages};
pub use device::SimDevice;
pub(crate) use world::Context;
