//! Checkpoints: consistent states of the store on the device, from which recovery starts.

mod label;
mod map;
mod sector;
mod slots;
mod superblock;

pub(crate) use superblock::{MapHead, Shape, State, StoreId, Superblock};
