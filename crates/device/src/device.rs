//! An opened target, and its properties.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Arena, Channel, Error, Nanos, Op, Request};

/// Sizes and alignments that requests must respect, and properties of the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Usable bytes.
    pub capacity_bytes: u64,
    /// Offsets and lengths are multiples of this (statx `stx_dio_offset_align`; 1 when buffered).
    pub offset_align_bytes: u32,
    /// Memory addresses are multiples of this (statx `stx_dio_mem_align`; 1 when buffered).
    pub memory_align_bytes: u32,
    /// Largest request worth submitting as one; larger ones are split by the kernel.
    pub preferred_max_transfer_bytes: u32,
    /// Whether requests bypass the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Whether writes are allowed.
    pub writable: bool,
    /// Drives that the device is striped over; 1 for a single one.
    pub members: u32,
    /// Stripe unit of a stripe set.
    pub stripe_unit_bytes: Option<u64>,
}

impl Geometry {
    /// Whether the device can take `request`.
    ///
    /// # Errors
    /// [`Error::Request`] with the reason.
    pub fn check(&self, request: &Request) -> Result<(), Error> {
        if request.op.modifies() && !self.writable {
            return Err(Error::Request("the device was opened for reading only".into()));
        }
        if request.op == Op::Flush {
            return Ok(());
        }
        let (offset, length) = (request.offset_bytes, u64::from(request.length_bytes));
        let align = u64::from(self.offset_align_bytes);
        if length == 0 || !offset.is_multiple_of(align) || !length.is_multiple_of(align) {
            let problem = format!(
                "offset {offset} and length {length} must be multiples of {align} bytes, the length not zero"
            );
            return Err(Error::Request(problem));
        }
        if length > u64::from(REQUEST_BYTES_MAX)
            || offset.checked_add(length).is_none_or(|end| end > self.capacity_bytes)
        {
            let end = self.capacity_bytes;
            let problem = format!(
                "offset {offset} and length {length} reach over the device's end at {end}, or over 1 GiB"
            );
            return Err(Error::Request(problem));
        }
        let align = self.memory_align_bytes as usize;
        if request.op.moves_data()
            && (request.memory.is_null() || !(request.memory as usize).is_multiple_of(align))
        {
            return Err(Error::Request(format!("memory must be aligned to {align} bytes")));
        }
        Ok(())
    }
}

/// The kernel moves at most 2 GiB less a page at a time and counts it in an `i32`; this is well below.
pub const REQUEST_BYTES_MAX: u32 = 1 << 30;

/// Origin of a profile: the drive and the software on the way to it. Unknown fields are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The measured target: the absolute path, such as `/data`, or `sim:960evo`; several separated by commas.
    pub target: String,
    /// `file`, `block device`, `NVMe namespace` (past the block layer), `stripe set` or `simulated`.
    pub kind: String,
    /// Kernel name of the block device, such as `nvme0n1`.
    pub block_device: Option<String>,
    /// The drive's model string.
    pub model: Option<String>,
    /// The drive's firmware revision.
    pub firmware: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// File system type, such as `ext4`.
    pub file_system: Option<String>,
    /// Mount options as /proc/self/mountinfo prints them.
    pub mount_options: Option<String>,
    /// I/O scheduler in force, such as `none`.
    pub scheduler: Option<String>,
    /// Volatile write cache as the kernel sees it: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether the kernel takes it for a rotating disk. Virtual disks often say so wrongly.
    pub rotational: Option<bool>,
    /// Whether the queue has poll queues (`io_poll`).
    pub poll_queues: Option<bool>,
    /// Kernel's queue depth, `nr_requests`.
    pub queue_requests: Option<u32>,
    /// Largest single transfer the kernel sends, in bytes.
    pub max_transfer_bytes: Option<u64>,
    /// Logical block size in bytes.
    pub logical_block_bytes: Option<u32>,
    /// Physical block size in bytes.
    pub physical_block_bytes: Option<u32>,
    /// Backend in use: `io_uring`, `io_uring-sqpoll`, `libaio`, `sync`, `nvme-passthrough` or `sim`.
    pub backend: String,
    /// One line: why that backend.
    pub backend_reason: String,
    /// Remarks that the user should know, such as "O_DIRECT is not possible here (tmpfs): results include the
    /// page cache".
    pub notes: Vec<String>,
}

/// How a channel is opened.
#[derive(Clone, Debug)]
pub struct ChannelOptions {
    /// The most requests in flight.
    pub depth: u32,
    /// Memory that requests will mostly use; registered with the kernel where it can be. Requests may use
    /// other memory too.
    pub arena: Option<Arc<Arena>>,
    /// Poll the device for completions instead of sleeping, where it has poll queues.
    pub polled: bool,
}

/// An opened target: a file on a mounted drive, a raw block device, a stripe set of those, or a simulated
/// drive.
pub trait Device: Send + Sync {
    /// Sizes and alignments.
    fn geometry(&self) -> &Geometry;

    /// Its identity, for the record.
    fn identity(&self) -> &Identity;

    /// Limits of the system that have kept the best way to the device from being used until now, with their
    /// remedies, and a drive's own words for refused commands. They may show only when a channel is opened or
    /// used.
    fn shortages(&self) -> Vec<String> {
        Vec::new()
    }

    /// Opens a channel for the calling thread.
    ///
    /// # Errors
    /// [`Error::Os`] if the kernel refuses, for example for lack of locked memory or descriptors.
    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error>;

    /// Usable bytes now: those of the geometry, or more after [`Device::grow`].
    fn capacity_bytes(&self) -> u64 {
        self.geometry().capacity_bytes
    }

    /// Makes the device at least `capacity_bytes` large, in place. Channels see the new size at once. The new
    /// bytes are zero.
    ///
    /// # Errors
    /// [`Error::Target`] if it cannot grow; [`Error::Os`] otherwise, of the kind
    /// [`NoSpace`](crate::ErrorKind::NoSpace) if there is no room for more. The device is then as large as
    /// before.
    fn grow(&self, capacity_bytes: u64) -> Result<(), Error> {
        if capacity_bytes <= self.capacity_bytes() {
            return Ok(());
        }
        let problem = format!("a device of this kind stays at {} bytes", self.capacity_bytes());
        Err(Error::Target { path: self.identity().target.clone().into(), problem })
    }

    /// Whether [`Device::shrink`] gives room back.
    fn shrinks(&self) -> bool {
        false
    }

    /// Gives room after `capacity_bytes` back, where the device is made of files that grow; nothing may be
    /// under way there. Others stay as they are.
    ///
    /// # Errors
    /// [`Error::Os`]. The device is then as large as before, or not quite.
    fn shrink(&self, _capacity_bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// The device's own time, if it has one.
    fn simulation(&self) -> Option<&dyn Simulation> {
        None
    }
}

/// Time that passes only when it is asked to: that of a simulated device. Several channels can be served by
/// one thread as if by many: look at all of them, do the work that is possible at this point in time, then
/// let time pass.
pub trait Simulation {
    /// The time now.
    fn now(&self) -> Nanos;

    /// When the next event is due, if any is to come. Events are more than completions.
    fn next_event(&self) -> Option<Nanos>;

    /// Lets time pass until `until`, or less far: until some channel has a completion more than before.
    /// Whether one has.
    fn pass(&self, until: Nanos) -> bool;
}
