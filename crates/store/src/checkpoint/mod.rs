//! Checkpoints: consistent states of the store on the device, from which recovery starts.

mod keeper;
mod label;
mod load;
mod map;
mod run;
mod sector;
mod slots;
mod superblock;

pub(crate) use keeper::Keeper;
pub(crate) use load::load;
pub(crate) use run::{Base, CheckpointStats, Commits, Parts, Run};
pub(crate) use superblock::{MapHead, Shape, State, StoreId, Superblock};
