//! What is measured beside the operations themselves.

mod block;
mod cgroup;
mod raw;
mod space;

pub use block::{BlockCounters, BlockDevice};
pub use cgroup::MemoryLimit;
pub use raw::{Raw, RawLimit};
pub use space::{peak_memory_bytes, space_bytes};
