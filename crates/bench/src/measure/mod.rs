//! Measurements in addition to the operations themselves.

mod block;
mod cgroup;
mod direction;
mod inside;
mod machine;
mod raw;
mod space;

pub use block::{BlockCounters, BlockDevice};
pub use cgroup::MemoryLimit;
pub use direction::{Direction, directions_table, table};
pub use inside::Inside;
pub use machine::{machine, processor_hz};
pub use raw::{RawDrive, RawFile, RawLimit, RawRequests};
pub use space::{forget_peak_memory, peak_memory_bytes, space_bytes};
