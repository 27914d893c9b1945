//! Options of an opening. They are not kept on the device.

use std::sync::OnceLock;

use crate::compression::LsmCompression;
use crate::index::{OPERATOR_NAME_BYTES_MAX, Operators, own_operators};
use crate::worker::Bounds;
use crate::{Durability, Error};

/// See the module. Made by [`crate::Builder`].
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The hard budget for pages in memory.
    pub cache_bytes: u64,
    /// Worker threads.
    pub workers: usize,
    /// Whether each worker is pinned to a core of its own.
    pub pinned: bool,
    /// Tasks of a worker that have a stack at a time; others queue.
    pub tasks_per_worker: usize,
    /// The durability of a commit that does not choose one.
    pub durability: Durability,
    /// How commits in the log are compressed.
    pub log_compression: LsmCompression,
    /// Whether commits are written to the log.
    pub writes_log: bool,
    /// The most log that is replayed after a crash: a checkpoint begins when half of it is there.
    pub recovery_log_bytes: u64,
    /// A checkpoint begins at this number of dirty bytes, even if the log is short; three quarters of the
    /// cache if not given.
    pub dirty_bytes_max: Option<u64>,
    /// The most that the store's device grows to; no limit if not given.
    pub size_bytes_max: Option<u64>,
    /// Bytes of the file system of a store in files, if it is known; sizes follow from it.
    pub room_bytes: Option<u64>,
    /// The smallest cache that is not refused.
    pub cache_bytes_min: u64,
    /// Segments that a growing store has at first.
    pub growth_segments: u64,
    /// Times in a row that a simulated worker may fail to step.
    pub step_retries: u32,
    /// Merge operators that trees may name.
    pub operators: Operators,
}

/// Smallest cache that is accepted. It has enough frames for splits on all levels at once, in addition to the
/// pool's tables.
const CACHE_BYTES_MIN: u64 = 1 << 20;

/// Some segments of a growing store are open, some are kept for the page table and the cleaner, and a few are
/// left for the first records.
const GROWTH_SEGMENTS: u64 = 14;

impl Options {
    /// The number of dirty bytes that starts a checkpoint.
    pub fn dirty_bytes_max(&self) -> u64 {
        self.dirty_bytes_max.unwrap_or(self.cache_bytes / 4 * 3)
    }

    /// The sizes of a worker's queues.
    pub fn bounds(&self) -> Bounds {
        Bounds { tasks_max: self.tasks_per_worker, ..Bounds::default() }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`Error::Options`] with the valid range of an option that is out of it.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Options(why));
        if let Some(name) = self.operators.name_of_wrong_length() {
            let got = name.len();
            return refuse(format!(
                "a merge operator with a name of {got} bytes: use 1 to {OPERATOR_NAME_BYTES_MAX}"
            ));
        }
        let least = self.cache_bytes_min;
        if self.cache_bytes < least {
            return refuse(format!(
                "a cache of {} bytes is too small: give at least {least} bytes",
                self.cache_bytes
            ));
        }
        if self.workers == 0 || self.workers > 1024 {
            return refuse(format!("{} workers: use 1 to 1024, one per core", self.workers));
        }
        if !self.log_compression.is_there() {
            return refuse("this build has no Zstandard for the log: build it with the feature zstd".into());
        }
        if self.tasks_per_worker == 0 {
            return refuse("a worker without tasks does nothing: give at least one".into());
        }
        Ok(())
    }
}

/// Number of cores that this process may use. The kernel is asked once, because the answer requires reading
/// several files.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
            workers: cores(),
            pinned: false,
            tasks_per_worker: 512,
            durability: Durability::Sync,
            log_compression: LsmCompression::None,
            writes_log: true,
            recovery_log_bytes: 128 << 20,
            dirty_bytes_max: None,
            size_bytes_max: None,
            room_bytes: None,
            cache_bytes_min: CACHE_BYTES_MIN,
            growth_segments: GROWTH_SEGMENTS,
            step_retries: 0,
            operators: own_operators(),
        }
    }
}
