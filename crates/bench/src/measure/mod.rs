//! What is measured beside the operations themselves.

mod block;
mod cgroup;
mod machine;
mod raw;
mod space;

pub use block::{BlockCounters, BlockDevice};
pub use cgroup::MemoryLimit;
pub use machine::machine;
pub use raw::{Raw, RawLimit};
pub use space::{forget_peak_memory, peak_memory_bytes, space_bytes};
