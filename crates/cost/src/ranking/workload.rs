//! The operations that a program has its store do, its records and its limits.

use serde::{Deserialize, Serialize};

/// A workload: a ranking expects every field in its range, and shares that add up to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Name for people.
    pub name: String,
    /// Shares of the operations.
    pub operations: Operations,
    /// The records.
    pub records: Records,
    /// Memory that the store may use for all its caches and buffers.
    pub memory_bytes: u64,
    /// Exponent of the Zipf distribution of the keys that operations name; 0 is uniform.
    pub skew: f64,
    /// Operations under way at a time.
    pub clients: u32,
    /// Operations per second that must be reached; `None`: as many as possible.
    pub rate_per_second: Option<f64>,
    /// Processor cores for operations; `None`: they are no limit.
    pub cores: Option<u32>,
    /// The guarantee of a commit.
    pub durability: Durability,
    /// Bytes that may be written to the drive; `None`: any number.
    pub lifetime: Option<Lifetime>,
    /// Values that an observation lacks, and those assumed instead; empty for files and presets.
    pub assumptions: Vec<String>,
}

/// Shares of all operations, each from 0 to 1; together 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operations {
    /// Look-ups of keys that exist.
    pub point_hits: f64,
    /// Look-ups of keys that do not.
    pub point_misses: f64,
    /// Writes of new keys.
    pub inserts: f64,
    /// Writes of keys that exist.
    pub updates: f64,
    /// Removals of keys that exist.
    pub deletes: f64,
    /// Range queries.
    pub ranges: f64,
    /// Bytes of records that a range query yields.
    pub range_bytes: u64,
}

/// The records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// How many there are.
    pub count: u64,
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
}

/// The guarantee of a commit when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "promise", rename_all = "snake_case")]
pub enum Durability {
    /// It survives a power cut. Commits of several clients may share a flush.
    Sync,
    /// A power cut may take the commits of the last window.
    Group {
        /// The window.
        window_us: u64,
    },
    /// A power cut may take any commits that the engine has not written by itself.
    None,
}

/// Limit of the bytes that reach the drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lifetime {
    /// Drive capacities per day.
    pub drive_writes_per_day: f64,
    /// Capacity of the drive.
    pub drive_bytes: u64,
}

impl Operations {
    /// The shares with their names in files.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("point_hits", self.point_hits),
            ("point_misses", self.point_misses),
            ("inserts", self.inserts),
            ("updates", self.updates),
            ("deletes", self.deletes),
            ("ranges", self.ranges),
        ]
    }

    /// Share of the operations that write.
    pub fn writes(&self) -> f64 {
        self.inserts + self.updates + self.deletes
    }

    /// Share of the operations that only read.
    pub fn reads(&self) -> f64 {
        self.point_hits + self.point_misses + self.ranges
    }
}

impl Records {
    /// Bytes of a record.
    pub fn record_bytes(&self) -> u64 {
        self.key_bytes + self.value_bytes
    }

    /// Bytes of all records.
    pub fn data_bytes(&self) -> f64 {
        self.count as f64 * self.record_bytes() as f64
    }
}

impl Durability {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::Sync => "every commit survives a power cut".into(),
            Self::Group { window_us } => {
                format!("a power cut may take the commits of the last {:.0} ms", *window_us as f64 / 1e3)
            }
            Self::None => "a power cut may take any recent commit".into(),
        }
    }
}
