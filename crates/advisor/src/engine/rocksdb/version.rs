//! Versions of RocksDB whose names and defaults are known.

/// See the module. No setting that is advised was renamed or removed between them; two defaults differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Debian 12's.
    V7_8,
    /// The one of the crate librocksdb-sys 0.19.
    V11_8,
}

/// Names of all, the usual one first.
pub const VERSIONS: &[&str] = &[Version::V7_8.name(), Version::V11_8.name()];

impl Version {
    /// That of a name; the usual one of any other.
    pub fn of(name: &str) -> Self {
        [Self::V7_8, Self::V11_8].into_iter().find(|version| version.name() == name).unwrap_or(Self::V7_8)
    }

    /// Major and minor version.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V7_8 => "7.8",
            Self::V11_8 => "11.8",
        }
    }

    /// The release in the head of an OPTIONS file.
    pub fn release(self) -> &'static str {
        match self {
            Self::V7_8 => "7.8.3",
            Self::V11_8 => "11.8.1",
        }
    }

    /// Whether the sizes of levels follow from that of the last one, upwards
    /// (`level_compaction_dynamic_level_bytes`, by default from 8.4 on).
    pub fn has_dynamic_levels(self) -> bool {
        self == Self::V11_8
    }

    /// Default of `compaction_readahead_size`: 2 MiB from 8.7 on.
    pub fn read_ahead_bytes(self) -> &'static str {
        match self {
            Self::V7_8 => "0",
            Self::V11_8 => "2097152",
        }
    }
}
