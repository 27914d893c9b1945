//! An embedded, ordered, transactional key-value store that takes its layout from what was learned of the drive.
#![expect(dead_code, reason = "under construction")]

mod btree;
mod error;
mod header;
mod lane;
mod layout;
mod log;
mod page;
mod poison;
mod pool;
mod segment;
mod task;
mod txn;

pub use error::{Error, ErrorKind};
pub use layout::Placement;
pub use log::Durability;
