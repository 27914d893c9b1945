//! The number of blocks of a B+-tree's node that is read in blocks: P of the PDAM.

use flashgrain_device::bytes_text;

use super::{Layout, NODE_BYTES};
use crate::Error;

/// Blocks in a node of a B+-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeBlocks {
    /// The number of blocks that the drive serves in the time of one, according to its profile: P of the PDAM
    /// (Bender et al., "Small Refinements to the DAM Can Have Big Consequences for Data-Structure Design",
    /// §8).
    OfDrive,
    /// This number: a power of two from 2 on, up to nodes of 64 KiB.
    Of(u32),
}

/// Size of the requests that the profile counts for the drive's parallelism: a read-ahead consists of that
/// number of them.
const STREAM_BYTES: u32 = 64 << 10;

/// Fewest blocks of a node.
const BLOCKS_MIN: u32 = 2;

/// Most blocks of `block_bytes` in a node.
fn blocks_max(block_bytes: u32) -> u32 {
    NODE_BYTES.1 / block_bytes
}

/// P as the layout has it.
fn parallelism(layout: &Layout) -> u32 {
    (layout.read_ahead_bytes / STREAM_BYTES).max(1)
}

impl NodeBlocks {
    /// The number of blocks of `block_bytes`.
    ///
    /// # Errors
    /// [`Error::Options`] for a number that nodes do not have.
    pub(crate) fn count(self, block_bytes: u32, layout: &Layout) -> Result<u32, Error> {
        let most = blocks_max(block_bytes);
        if most < BLOCKS_MIN {
            let least = bytes_text(u64::from(NODE_BYTES.1 / BLOCKS_MIN));
            return Err(Error::Options(format!(
                "nodes of several blocks of {}: use blocks of at most {least}",
                bytes_text(block_bytes.into())
            )));
        }
        match self {
            Self::OfDrive => Ok((1 << parallelism(layout).ilog2()).clamp(BLOCKS_MIN, most)),
            Self::Of(count) if count.is_power_of_two() && (BLOCKS_MIN..=most).contains(&count) => Ok(count),
            Self::Of(count) => Err(Error::Options(format!(
                "nodes of {count} blocks of {}: use a power of two from {BLOCKS_MIN} to {most}",
                bytes_text(block_bytes.into())
            ))),
        }
    }

    /// The reason for the number.
    pub(crate) fn because(self, layout: &Layout) -> String {
        match self {
            Self::OfDrive => format!(
                "P = {}: the drive serves P reads in the time of one, as the read-ahead of {} has it \
                 (Lemma 13); the power of two below it",
                parallelism(layout),
                bytes_text(layout.read_ahead_bytes.into())
            ),
            Self::Of(_) => "decided when the tree was made".into(),
        }
    }
}
