//! How an LSM tree arranges its sorted runs (MQSSD paper §5.1.1, §5.2.2).

use serde::{Deserialize, Serialize};

/// How runs are arranged in the levels below level 0, which has the tables of flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Each level is one run, F times as large as the one above it; tables are merged into the next level one
    /// by one (RocksDB's default).
    Leveled,
    /// Each level collects F runs, which are merged into one of the next level (universal). A merge needs
    /// room for a copy of its inputs, so this and the other layouts below fill less of a small device.
    Tiered,
    /// Tiered, but the last level is one run (Dostoevsky).
    LazyLeveled,
    /// One run has all records, and new ones are merged into it: F = ∞ (MQSSD paper §5.2.2).
    SingleLevel,
}

impl Layout {
    /// All there are, in the order of their numbers in files.
    pub const ALL: [Self; 4] = [Self::Leveled, Self::Tiered, Self::LazyLeveled, Self::SingleLevel];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leveled => "leveled",
            Self::Tiered => "tiered",
            Self::LazyLeveled => "lazy leveled",
            Self::SingleLevel => "single level",
        }
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.name())
    }
}
