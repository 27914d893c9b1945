//! How engine code reaches its devices: an I/O context per thread, with a channel to every device of the
//! store (LeanStore's NVMe paper §3.4, all-to-all).
//!
//! [`read`], [`write`] and [`flush`] look blocking. In a task they submit, park the task and let the worker
//! go on with others; on an ordinary thread they wait. No request allocates.
//!
//! Who may change what: an I/O context, and what is in flight on it, the thread that it belongs to. The
//! memory of a request: nobody but the device until it is answered. Which flushes are under way: the
//! [flushes](flushes) of a device, with their lock.

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
