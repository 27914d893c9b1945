//! The memory of each run.

use crate::listener::Listener;
use crate::measure::MemoryLimit;

/// Memory that a client needs in addition to its engine's caches and buffers.
const CLIENT_BYTES: u64 = 64 << 20;

/// Engines that are filled take more for a while.
const FILLING_BYTES: u64 = 512 << 20;

/// A limit that every run gets, the page cache included.
#[derive(Debug)]
pub(super) struct Memory {
    limit_bytes: Option<u64>,
}

impl Memory {
    /// For an engine with `engine_bytes`; notes it where the kernel cannot limit memory or this user must
    /// not.
    pub fn new(engine_bytes: u64, listener: &dyn Listener) -> Self {
        let bytes = engine_bytes + CLIENT_BYTES;
        match MemoryLimit::new(bytes) {
            Ok(_) => Self { limit_bytes: Some(bytes) },
            Err(error) => {
                listener.note(&format!(
                    "note: memory is not limited, and the page cache may hold more than the predictions \
                     assume: {error:#}"
                ));
                Self { limit_bytes: None }
            }
        }
    }

    /// Whatever an engine takes by its settings.
    pub fn of_the_engine() -> Self {
        Self { limit_bytes: None }
    }

    /// Does some work within the limit. Nothing stays in the page cache for the next.
    pub fn limited<T>(&self, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let _limit = self.limit_bytes.map(MemoryLimit::new).transpose()?;
        work()
    }

    /// Does work that is not measured, and whose pages are not to stay in the page cache either.
    pub fn for_filling<T>(&self, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let _limit = self.limit_bytes.map(|bytes| MemoryLimit::new(bytes + FILLING_BYTES)).transpose()?;
        work()
    }

    pub fn limit_bytes(&self) -> Option<u64> {
        self.limit_bytes
    }
}
