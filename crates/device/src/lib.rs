//! Block devices, I/O channels, aligned memory, stripe sets and the clock.
//!
//! A [`Device`] is an opened target: a file on a mounted drive, a raw block device, or a stripe set over
//! several. It hands out [`Channel`]s, one per worker thread, which carry thousands of requests without
//! allocating, locking or copying (LeanStore's NVMe paper §3.4). The backends `io_uring`, `libaio` and `sync`
//! differ only in how a request reaches the kernel.
//!
//! This crate is the only one that touches block I/O and the clock. It knows nothing of experiments, models
//! or stores.

mod alarm;
mod backend;
mod bytes_text;
mod channel;
mod claim;
pub mod clock;
mod device;
mod error;
mod extents;
mod fallback;
mod file_device;
mod fork;
mod identity;
pub mod limits;
mod live_geometry;
mod memory;
mod memory_device;
mod nvme;
mod overlay;
mod process;
mod queue;
mod scheduling;
mod space;
mod store_files;
mod stripe;
mod target;
mod thread;

pub use alarm::ChannelWaker;
pub use backend::BackendKind;
pub use bytes_text::bytes_text;
pub use channel::{Channel, Completion, Op, Request};
pub use claim::{Claim, is_block_device};
pub use clock::{Nanos, calendar_seconds, process_cpu, thread_cpu};
pub use device::{ChannelOptions, Device, Geometry, Identity, REQUEST_BYTES_MAX, Simulation};
pub use error::{Error, ErrorKind};
pub use extents::{Extent, extents};
pub use file_device::{FileDevice, OpenOptions};
pub use fork::Origin;
pub use identity::devices_with_poll_queues;
pub use memory::Arena;
pub use memory_device::MemoryDevice;
pub use nvme::namespace::read_head;
pub use nvme::node::is_namespace;
pub use overlay::OverlayDevice;
pub use process::interrupt_process;
pub use scheduling::{ProcessorTicks, ThreadTimes};
pub use space::{free_bytes, total_bytes};
pub use stripe::{Segment, StripeSet};
pub use thread::pin_thread;
