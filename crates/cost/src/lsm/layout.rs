//! How an LSM tree arranges its sorted runs (MQSSD paper §5.1.1, §5.2.2).

use serde::{Deserialize, Serialize};

/// Data layout of the levels below level 0, which is tiered in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Each level is one sorted run, into which data from above is merged file by file (RocksDB's default).
    Leveled,
    /// Each level collects up to F runs, which are then merged into one run of the next.
    Tiered,
    /// Tiered, but the last level is a single run (Dostoevsky).
    LazyLeveled,
    /// One run holds everything, and all new data is merged into it: F = ∞ (MQSSD paper §5.2.2).
    SingleLevel,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 4] = [Self::Leveled, Self::Tiered, Self::LazyLeveled, Self::SingleLevel];
}

impl std::fmt::Display for Layout {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(match self {
            Self::Leveled => "leveled",
            Self::Tiered => "tiered",
            Self::LazyLeveled => "lazy leveled",
            Self::SingleLevel => "single-level",
        })
    }
}
