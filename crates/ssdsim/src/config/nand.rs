//! NAND flash and its translation layer.

use serde::{Deserialize, Serialize};

/// Channels x chips x dies x planes, their timings, and the translation layer above them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NandConfig {
    /// Buses.
    pub channels: u32,
    /// Chips on each bus.
    pub chips_per_channel: u32,
    /// Dies in each chip.
    pub dies_per_chip: u32,
    /// Planes in each die.
    pub planes_per_die: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Flash page: the unit that one plane senses or programs at a time.
    pub page_bytes: u32,
    /// Physical space beyond the capacity, relative to it. It also holds the mapping table and open blocks.
    pub over_provisioning: f64,
    /// Read latency of each page type in turn: one entry for SLC, two for MLC, three for TLC, four for QLC.
    pub read_us: Vec<f64>,
    /// Program latency of each page type.
    pub program_us: Vec<f64>,
    /// Erase latency of a block.
    pub erase_us: f64,
    /// Relative standard deviation of all three, 0 for none.
    #[serde(default)]
    pub jitter: f64,
    /// Bus rate; a transfer moves one byte.
    pub channel_mega_transfers_per_s: f64,
    /// Bus time of commands and addresses per flash operation.
    pub channel_command_ns: u64,
    /// Whether a busy chip blocks its other dies.
    pub interleave: Interleave,
    /// Whether pages of the same row on several planes are sensed or programmed together.
    pub multi_plane: bool,
    /// Whether waiting reads go before waiting programs and erases.
    #[serde(default = "yes")]
    pub reads_first: bool,
    /// Whether a read suspends a running program.
    #[serde(default)]
    pub suspend_program: bool,
    /// Whether a read suspends a running erase.
    #[serde(default)]
    pub suspend_erase: bool,
    /// Cost of suspending and resuming.
    #[serde(default)]
    pub suspend_us: f64,
    /// More latency for a read that starts or ends inside of a flash page: the controller joins its parts.
    #[serde(default)]
    pub misaligned_read_us: f64,
    /// The mapping from logical to physical units.
    pub mapping: MappingConfig,
    /// The cache that takes writes.
    pub write_cache: WriteCacheConfig,
    /// Placement of data on flash.
    pub layout: LayoutConfig,
    /// Garbage collection and wear levelling.
    #[serde(default)]
    pub collect: CollectConfig,
}

impl NandConfig {
    /// Dies of the drive; meaningful once the factors are known to be in range.
    pub(crate) fn dies(&self) -> u64 {
        u64::from(self.channels) * u64::from(self.chips_per_channel) * u64::from(self.dies_per_chip)
    }

    /// Planes that one row goes over.
    pub(crate) fn planes_per_row(&self) -> u32 {
        match self.layout.placement {
            PlacementRule::InTurn if self.multi_plane => self.planes_per_die,
            _ => 1,
        }
    }

    /// Parts of a die that are written each by itself.
    pub(crate) fn parts_per_die(&self) -> u32 {
        match self.layout.placement {
            PlacementRule::InTurn => 1,
            PlacementRule::ByAddress => self.planes_per_die,
        }
    }
}

/// The unit of flash that serves operations in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interleave {
    /// Each die by itself.
    Dies,
    /// One operation at a time in a chip, as MQSim has it.
    ChipBusy,
}

/// The mapping table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingConfig {
    /// Bytes that one entry maps: at most a flash page.
    pub unit_bytes: u32,
    /// Bytes of one entry on flash.
    pub entry_bytes: u32,
    /// How much of the table is in memory.
    pub cache: MappingCache,
    /// Whether changed entries that leave the cache are written to flash. Otherwise the part of the table
    /// that they belong to stays in memory, at no cost, as in MQSim, whose out-of-order scheduler never
    /// issues these writes.
    #[serde(default = "yes")]
    pub write_back: bool,
    /// Controller time for a lookup that hits.
    #[serde(default)]
    pub lookup_ns: u64,
}

/// How much of the mapping table is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MappingCache {
    /// All of it.
    Whole,
    /// This many bytes of single entries, least recently used first out (DFTL, and MQSim).
    EntriesBytes(u64),
    /// This many bytes of whole translation pages.
    PagesBytes(u64),
}

/// The cache that takes writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheConfig {
    /// Its size; 0: writes complete when they are programmed.
    pub bytes: u64,
    /// Whether a power cut empties it. With capacitors it does not, and a flush costs nothing.
    pub volatile: bool,
}

/// Placement of data on flash (hidden-parameters paper §3.1).
///
/// A write is cut at stripe boundaries. A piece of at least `desirable_write_bytes` is dealt out over the
/// dies, channels first, in chunks of `chunk_bytes` (or the whole piece, if that is smaller); the next piece
/// goes on with the next die. Smaller pieces go to a log that is open on `small_write_dies` dies only, block
/// by block, so that data written together are read back with less parallelism.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutConfig {
    /// Unit of decision of the physical layout.
    pub stripe_bytes: u64,
    /// Contiguous data on one channel.
    pub chunk_bytes: u64,
    /// Smallest write that is striped.
    pub desirable_write_bytes: u64,
    /// Dies that smaller writes are spread over at a time.
    pub small_write_dies: u32,
    /// Whether the above decides, or the address.
    #[serde(default)]
    pub placement: PlacementRule,
}

/// The rule that decides where data go on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementRule {
    /// The order of writing: the next chunk goes to the next die, in rows over all planes of it. A later
    /// write may fill up an unfinished row.
    #[default]
    InTurn,
    /// The address, as in MQSim: every plane is written by itself, and mapping unit after mapping unit
    /// belongs to the next plane: channels first, then chips, dies, planes. A unit is programmed as soon as
    /// it is there, whole or in part, and takes the room of its sectors in the write cache. Planes of a die
    /// work together where operations on the same row wait at the same time, if there are multi-plane
    /// commands. A read of a unit that was never written senses flash as if it had been, the mapping table
    /// included.
    ByAddress,
}

/// The rule that chooses the block to collect next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CollectPolicy {
    /// The one with the fewest valid units.
    #[default]
    Greedy,
    /// The largest (1 - u) / 2u x age.
    CostBenefit,
    /// The oldest.
    Fifo,
}

/// Garbage collection and wear levelling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CollectConfig {
    /// The rule that chooses the block to collect next.
    pub policy: CollectPolicy,
    /// Free blocks per die below which collection starts; always more than those below which writes wait.
    pub start_below_free_blocks: u32,
    /// Free blocks per die below which host writes wait for it; 1 has the effect of 2, because collection
    /// itself needs a free block.
    pub stop_writes_below_free_blocks: u32,
    /// Erase counts may differ by this much before the least erased block is collected; 0: no static wear
    /// levelling.
    pub wear_gap: u32,
}

impl Default for CollectConfig {
    fn default() -> Self {
        Self {
            policy: CollectPolicy::Greedy,
            start_below_free_blocks: 4,
            stop_writes_below_free_blocks: 2,
            wear_gap: 0,
        }
    }
}

fn yes() -> bool {
    true
}
