//! The engine's access to its devices: an I/O context per thread, with a channel to every device of the store
//! (LeanStore's NVMe paper §3.4, all-to-all).
//!
//! [`read`], [`write`] and [`flush`] look blocking. In a task they submit, park the task and let the worker
//! go on with others; on an ordinary thread they wait. No request allocates.
//!
//! Only the thread that an I/O context belongs to changes it and its requests in flight. Only the device
//! changes the memory of a request until it is answered. The [flushes](flushes) of a device keep track of
//! those under way, with their lock.

mod block;
#[cfg(test)]
pub(crate) mod broken;
mod context;
mod current;
mod devices;
mod failed;
mod flushes;
mod pieces;
#[cfg(test)]
mod speed;
mod traffic;

pub(crate) use block::Block;
pub(crate) use context::{IoContext, PAUSE};
pub(crate) use current::{discard, enter, flush, now, read, share_of_slots, sleep_until, write};
pub(crate) use devices::{Devices, Role};
pub(crate) use pieces::read_pieces;
pub use traffic::Traffic;
