//! Codecs for the data that the store compresses: data blocks of LSM-trees, and records of the log.

/// How data blocks of an LSM-tree, or records of the log, are compressed. A block or a record is only
/// compressed if that makes it smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LsmCompression {
    /// They are not compressed.
    #[default]
    None,
    /// LZ4: fast.
    Lz4,
    /// Zstandard: smaller, for some five times the processor time. It needs the feature `zstd`, also to read
    /// such data.
    Zstd,
}

/// No compressed data has more bytes than this when it is decompressed: a larger length is damage.
pub(crate) const BYTES_MAX: usize = 64 << 20;

impl LsmCompression {
    pub(crate) const ALL: [Self; 3] = [Self::None, Self::Lz4, Self::Zstd];

    /// Whether this build has it.
    pub(crate) fn is_there(self) -> bool {
        self != Self::Zstd || cfg!(feature = "zstd")
    }

    /// The number that it has on the device.
    pub(crate) fn code(self) -> u8 {
        Self::ALL.iter().position(|other| *other == self).unwrap_or_default() as u8
    }

    /// The codec of a number; `None` for an unknown number.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The compressed bytes; `None` without compression.
    pub(crate) fn compress(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::None => None,
            Self::Lz4 => Some(lz4_flex::block::compress(bytes)),
            #[cfg(feature = "zstd")]
            Self::Zstd => zstd::bulk::compress(bytes, zstd::DEFAULT_COMPRESSION_LEVEL).ok(),
            #[cfg(not(feature = "zstd"))]
            Self::Zstd => None,
        }
    }

    /// The `length` bytes that were compressed; `None` if they are damaged, or this build does not know the
    /// codec.
    pub(crate) fn decompress(self, compressed: &[u8], length: usize) -> Option<Vec<u8>> {
        if length > BYTES_MAX {
            return None;
        }
        let bytes = match self {
            Self::None => None,
            Self::Lz4 => lz4_flex::block::decompress(compressed, length).ok(),
            #[cfg(feature = "zstd")]
            Self::Zstd => zstd::bulk::decompress(compressed, length).ok(),
            #[cfg(not(feature = "zstd"))]
            Self::Zstd => None,
        };
        bytes.filter(|bytes| bytes.len() == length)
    }
}
