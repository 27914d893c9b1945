//! Checkpoints: consistent states of the store on the device, from which recovery starts.

mod checkpointer;
pub(crate) mod label;
mod load;
pub(crate) mod log_growth;
pub(crate) mod map;
mod run;
pub(crate) mod slots;
pub(crate) mod superblock;

pub(crate) use checkpointer::Checkpointer;
pub(crate) use load::load;
pub(crate) use run::{Base, CheckpointStats, Parts};
pub(crate) use superblock::{CheckpointState, EPOCH_MAX, MapHead, Shape, Superblock};
