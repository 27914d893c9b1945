//! Checkpoints: consistent states of the store on the device. Recovery starts from the newest one.
//!
//! - The [`Checkpointer`] decides when a checkpoint is made: one at a time, on request.
//! - [`run`] makes a checkpoint, in six steps: cut, pages, durable, current, free, log.
//! - The [map](map) is the persistent page table: the location of every page, as a chain of changes.
//! - The [superblock](superblock) makes a checkpoint current. It lies in one of two [slots](slots) in turn.
//! - A [label](label) on each member of a striped store says where the member belongs.
//! - [`load`](load()) does the reverse at opening: superblock, map, page table.
//!
//! Invariants:
//! - Until the superblock of a checkpoint is durable, everything that the previous one refers to stays on the
//!   devices.
//! - A checkpoint contains a change of pages as a whole or not at all, because cuts fall between
//!   [sections](crate::pool::Section).
//! - A checkpoint and the log from its replay start on contain every durable commit.
//!
//! Only the holder of the one [`run::Run`], which the checkpointer hands out, changes the superblock, the map
//! and the log's place. It notifies the pool and the segments of the cut, and tells them when to free pages
//! and segments.

pub(crate) mod area;
mod checkpointer;
mod give_back;
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
