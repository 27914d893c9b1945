//! The drive as its host sees it: device, channels, host queue, command processing and link.

mod channel;
mod command;
mod device;
mod host;
mod world;

pub(crate) use command::{Command, Stages};
pub use device::SimDevice;
pub(crate) use world::Context;
