//! [openraft](https://docs.rs/openraft/0.9)'s log storage and state machine on a
//! [`flashgrain::Db`]: what makes a replicated, fault-tolerant service of a store on one machine.
//!
//! - [`RaftStore`]: a store that many Raft groups share, with one log and one thread that flushes it. Appends
//!   of all groups that come during a flush share the next one.
//! - [`LogStore`]: entries, vote and purged id of a group, in its trees `GROUP.log` and `GROUP.meta`.
//! - [`StateMachine`]: the replicated state in `GROUP.state`, changed by an [`Application`] in one commit
//!   with the id of the last entry that was applied. [`KeyValue`] is a ready one.
//!
//! `docs/raft.md` is the guide.
//!
//! No future of this crate waits for a device: whatever may wait runs on the runtime's blocking threads.
//!
//! # Order of commits
//!
//! The store's log keeps the order of commits, and after a crash a prefix of them is there. So only a vote
//! and an append wait for a flush. Truncations, purges, applied entries and the committed id are commits that
//! do not wait: whatever is flushed later takes them along, and a crash that loses one of them loses
//! everything after it too. A purge can never outlive the applied entries that it relies on. Files of
//! snapshots are outside of that log: before one becomes the current snapshot, all commits are made durable.

mod application;
mod blocking;
mod config;
mod encoding;
mod error;
mod flusher;
mod held_purge;
mod key_value;
mod log_store;
mod open_groups;
mod shared_store;
mod snapshot_files;
mod snapshot_format;
mod state_machine;
mod store;

pub use application::{Application, Records, State};
pub use config::GroupConfig;
pub use error::Error;
pub use key_value::{Answer, Command, KEY_BYTES_MAX, KeyValue};
pub use log_store::LogStore;
pub use state_machine::{SnapshotBuilder, StateMachine, StateReader};
pub use store::RaftStore;

/// The program of the guide, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/raft.md")]
mod guides {}
