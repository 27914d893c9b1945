//! Checkpoints: consistent states of the store on the device, from which recovery starts.

mod keeper;
pub(crate) mod label;
mod load;
mod map;
mod run;
mod sector;
pub(crate) mod slots;
mod superblock;

pub(crate) use keeper::Keeper;
pub(crate) use load::load;
pub(crate) use run::{Base, CheckpointStats, Parts};
pub(crate) use superblock::{MapHead, Shape, State, StoreId, Superblock};
