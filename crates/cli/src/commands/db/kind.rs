//! How a new tree is kept.

use clap::{Args, ValueEnum};
use flashgrain::{
    BeTreeOptions, IndexKind, LsmCompression, LsmLayout, LsmMetadata, LsmOptions, LsmWorkload, NodeBlocks,
    TreeOptions,
};

use crate::exit::Usage;
use crate::units::{count_within, parse_positive_bytes};

/// The structure of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Records in the leaves of a tree: good for look-ups and scans.
    Btree,
    /// Writes are sorted in memory and merged later: good where most operations write.
    Lsm,
    /// Changes gather in the buffers of inner nodes: writes about as cheap as an LSM-tree's, look-ups about
    /// as cheap as a B+-tree's.
    BeTree,
}

/// How the runs of an LSM-tree are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// One run for each level: good for look-ups.
    Leveled,
    /// Several runs for each level: good for writes.
    Tiered,
    /// Tiered, with one run in the last level.
    LazyLeveled,
    /// One run has all records, and new ones are merged into it.
    SingleLevel,
}

/// How the data of an LSM-tree is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compression {
    /// Not at all.
    None,
    /// Fast, where it gains.
    Lz4,
}

/// See the module.
#[derive(Debug, Args)]
pub struct KindOptions {
    /// Structure of the tree; a B+-tree unless given.
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Size of its nodes, of an LSM-tree's blocks, or of the pieces that a Bε-tree's leaves are read in: a
    /// power of two from 4 to 64 KiB.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    node_size: Option<u64>,
    /// Makes nodes of a B+-tree of several blocks of that size; a look-up reads single ones: a power of two,
    /// or `drive` for as many as the drive serves at a time.
    #[arg(long, value_name = "COUNT", value_parser = parse_node_blocks)]
    node_blocks: Option<NodeBlocks>,
    /// How the runs of an LSM-tree are arranged in levels.
    #[arg(long, value_enum)]
    layout: Option<Layout>,
    /// How many times as large each level of an LSM-tree is as the one above it; how many children a node of
    /// a Bε-tree has.
    #[arg(long, value_name = "COUNT", value_parser = count_within::<u32>(..))]
    fanout: Option<u32>,
    /// Size of a Bε-tree's nodes, all parts together, and of its leaves.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    buffered_node_size: Option<u64>,
    /// Bits of an LSM-tree's filters for each key; 0 for none.
    #[arg(long, value_name = "BITS")]
    filter_bits: Option<f64>,
    /// Keeps filters and fence pointers of an LSM-tree in memory once they were read, up to three eighths of
    /// the cache.
    #[arg(long)]
    pin_metadata: bool,
    /// How the data blocks of an LSM-tree are compressed.
    #[arg(long, value_enum)]
    compression: Option<Compression>,
    /// The future operations on an LSM-tree, as shares of writes, look-ups and scans, such as `70,25,5`: its
    /// layout, fanout and level 0 follow from that. `convert` also takes `observed`, which stands for the
    /// operations on the LSM-tree so far.
    #[arg(long, value_name = "WRITES,LOOKUPS,SCANS", value_parser = parse_workload)]
    workload: Option<Declared>,
    /// Bytes of a key and its value, for `--workload`; 128 unless given.
    #[arg(long, value_name = "SIZE", requires = "workload", value_parser = parse_positive_bytes)]
    record_size: Option<u64>,
    /// Bytes that the tree will have, for `--workload`; 64 GiB unless given.
    #[arg(long, value_name = "SIZE", requires = "workload", value_parser = parse_positive_bytes)]
    data_size: Option<u64>,
    /// Size of an LSM-tree's tables, which become as large as whole segments.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    table_size: Option<u64>,
}

fn parse_node_blocks(text: &str) -> Result<NodeBlocks, String> {
    match text {
        "drive" => Ok(NodeBlocks::OfDrive),
        _ => text.parse().map(NodeBlocks::Of).map_err(|_| "give a number, such as 4, or `drive`".into()),
    }
}

/// Why there is no observed workload.
pub const NOT_OBSERVED: &str = "nothing was observed: LSM-trees count their operations, B+-trees only for as long as the store is open; declare shares, such as `--workload 70,25,5`";

/// The declared operations on an LSM-tree.
#[derive(Clone, Copy, Debug)]
enum Declared {
    Shares(LsmWorkload),
    /// The operations on the tree that is converted.
    Observed,
}

/// Three shares that are not all 0, or `observed`.
fn parse_workload(text: &str) -> Result<Declared, String> {
    if text == "observed" {
        return Ok(Declared::Observed);
    }
    let shares: Vec<f64> = text.split(',').filter_map(|share| share.trim().parse().ok()).collect();
    match shares.as_slice() {
        [writes, look_ups, scans]
            if shares.iter().all(|share| share.is_finite() && *share >= 0.0)
                && shares.iter().sum::<f64>() > 0.0
                && text.split(',').count() == 3 =>
        {
            Ok(Declared::Shares(LsmWorkload::new(*writes, *look_ups, *scans)))
        }
        _ => Err("give three shares of 0 or more, of writes, look-ups and scans, such as 70,25,5".into()),
    }
}

impl KindOptions {
    /// Whether anything is asked for.
    pub fn is_given(&self) -> bool {
        self.kind.is_some()
            || self.node_size.is_some()
            || self.node_blocks.is_some()
            || self.fanout.is_some()
            || self.buffered_node_size.is_some()
            || self.is_of_lsm()
    }

    fn is_of_lsm(&self) -> bool {
        self.layout.is_some()
            || self.filter_bits.is_some()
            || self.pin_metadata
            || self.compression.is_some()
            || self.workload.is_some()
            || self.table_size.is_some()
    }

    /// The options of a new tree, as the store takes them.
    pub fn options(&self) -> Result<TreeOptions, Usage> {
        self.options_after(None)
    }

    /// The options must belong to the given kind of tree.
    fn check_kind(&self) -> Result<(), Usage> {
        if self.kind != Some(Kind::Lsm) && self.is_of_lsm() {
            let why = "`--layout`, `--filter-bits`, `--pin-metadata`, `--compression`, `--table-size` and `--workload` are of LSM-trees: add `--kind lsm`";
            return Err(Usage(why.into()));
        }
        if self.fanout.is_some() && !matches!(self.kind, Some(Kind::Lsm | Kind::BeTree)) {
            return Err(Usage(
                "`--fanout` is of LSM-trees and Bε-trees: add `--kind lsm` or `--kind be-tree`".into(),
            ));
        }
        if self.buffered_node_size.is_some() && self.kind != Some(Kind::BeTree) {
            return Err(Usage("`--buffered-node-size` is of Bε-trees: add `--kind be-tree`".into()));
        }
        if self.node_blocks.is_some() && matches!(self.kind, Some(Kind::Lsm | Kind::BeTree)) {
            return Err(Usage("`--node-blocks` is of B+-trees: leave out `--kind`".into()));
        }
        Ok(())
    }

    /// The options of a tree that replaces one to which this was done, if it has counted.
    pub fn options_after(&self, observed: Option<LsmWorkload>) -> Result<TreeOptions, Usage> {
        self.check_kind()?;
        let kind = match self.kind {
            Some(Kind::Lsm) => IndexKind::Lsm,
            Some(Kind::BeTree) => IndexKind::BeTree,
            _ => IndexKind::BTree,
        };
        let options =
            TreeOptions::new().kind(kind).lsm(self.lsm_options(observed)?).be_tree(self.be_tree_options());
        let options = match self.node_blocks {
            Some(blocks) => options.node_blocks(blocks),
            None => options,
        };
        Ok(match self.node_size {
            Some(bytes) => options.node_bytes(u32::try_from(bytes).unwrap_or(u32::MAX)),
            None => options,
        })
    }

    fn lsm_options(&self, observed: Option<LsmWorkload>) -> Result<LsmOptions, Usage> {
        let mut lsm = LsmOptions::new();
        if let Some(workload) = self.declared(observed)? {
            lsm = lsm.workload(workload);
        }
        if let Some(bytes) = self.table_size {
            lsm = lsm.table_bytes(bytes);
        }
        if let Some(layout) = self.layout {
            lsm = lsm.layout(match layout {
                Layout::Leveled => LsmLayout::Leveled,
                Layout::Tiered => LsmLayout::Tiered,
                Layout::LazyLeveled => LsmLayout::LazyLeveled,
                Layout::SingleLevel => LsmLayout::SingleLevel,
            });
        }
        if let Some(fanout) = self.fanout {
            lsm = lsm.fanout(fanout);
        }
        if let Some(bits) = self.filter_bits {
            if !(0.0..=30.0).contains(&bits) {
                return Err(Usage(format!("{bits} bits of a filter for each key: give 0 to 30")));
            }
            lsm = lsm.filter_bits_per_key(bits);
        }
        if self.pin_metadata {
            lsm = lsm.metadata(LsmMetadata::Pinned);
        }
        if let Some(compression) = self.compression {
            lsm = lsm.compression(match compression {
                Compression::None => LsmCompression::None,
                Compression::Lz4 => LsmCompression::Lz4,
            });
        }
        Ok(lsm)
    }

    fn be_tree_options(&self) -> BeTreeOptions {
        let options = BeTreeOptions::new();
        let options = self.fanout.map_or(options, |fanout| options.fanout(fanout));
        self.buffered_node_size.map_or(options, |bytes| options.node_bytes(bytes))
    }

    fn declared(&self, observed: Option<LsmWorkload>) -> Result<Option<LsmWorkload>, Usage> {
        let mut workload = match (self.workload, observed) {
            (None, _) => return Ok(None),
            (Some(Declared::Shares(workload)), _) | (Some(Declared::Observed), Some(workload)) => workload,
            (Some(Declared::Observed), None) => return Err(Usage(NOT_OBSERVED.into())),
        };
        if let Some(bytes) = self.record_size {
            workload = workload.record_bytes(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        if let Some(bytes) = self.data_size {
            workload = workload.data_bytes(bytes);
        }
        Ok(Some(workload))
    }
}

/// The structure of a tree, in a word.
pub fn name_of(kind: IndexKind) -> &'static str {
    match kind {
        IndexKind::Lsm => "LSM-tree",
        IndexKind::BeTree => "Bε-tree",
        _ => "B+-tree",
    }
}
