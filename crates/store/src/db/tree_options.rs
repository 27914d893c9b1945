//! How trees are kept.

use flashgrain_settings::layout::{Decision, Setting};
use flashgrain_settings::{Bytes, Count};

use crate::Error;
use crate::betree::BeTreeOptions;
use crate::index::IndexKind;
use crate::layout::{Layout, NodeBlocks, check_node_bytes};
use crate::lsm::LsmOptions;

/// How a tree is kept. Fixed when the tree is created, and readable back from it:
/// [`Tree::options`](crate::Tree::options).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeOptions {
    pub(crate) kind: IndexKind,
    pub(crate) node_bytes: Option<u32>,
    pub(crate) blocks: Option<NodeBlocks>,
    pub(crate) lsm: LsmOptions,
    pub(crate) be_tree: BeTreeOptions,
    pub(crate) operator: Option<String>,
}

impl TreeOptions {
    /// A B+-tree with nodes of the size that the store's layout decided on.
    pub fn new() -> Self {
        #[cfg(feature = "testing")]
        return crate::testing::options_of_trees();
        #[cfg(not(feature = "testing"))]
        Self::default()
    }

    /// The structure.
    pub fn kind(mut self, kind: IndexKind) -> Self {
        self.kind = kind;
        self
    }

    /// The structure.
    pub fn index_kind(&self) -> IndexKind {
        self.kind
    }

    /// The numbers of an LSM-tree; of no meaning for others.
    pub fn lsm(mut self, options: LsmOptions) -> Self {
        self.lsm = options;
        self
    }

    /// The numbers of a Bε-tree; of no meaning for others.
    pub fn be_tree(mut self, options: BeTreeOptions) -> Self {
        self.be_tree = options;
        self
    }

    /// The name of the [merge operator](crate::MergeOperator) of the tree, which
    /// [`Tree::merge`](crate::Tree::merge) applies: one of the store's own, such as
    /// [`AddOperator::NAME`](crate::AddOperator::NAME), or one that is registered by
    /// [`Builder::merge_operator`](crate::Builder::merge_operator). The tree keeps that name from then on;
    /// each later opening of the store has to register it again.
    pub fn merge_operator(mut self, name: &str) -> Self {
        self.operator = Some(name.to_owned());
        self
    }

    /// The name of the merge operator, if the tree has one.
    pub fn name_of_merge_operator(&self) -> Option<&str> {
        self.operator.as_deref()
    }

    /// The size of the nodes, of an LSM-tree's blocks, or of a Bε-tree's basement nodes: a power of two from
    /// 4 to 64 KiB. Small nodes suit random look-ups on flash, large ones scans and disks.
    pub fn node_bytes(mut self, bytes: u32) -> Self {
        self.node_bytes = Some(bytes);
        self
    }

    /// The size of the nodes, if it was given; always of the options of a [`Tree`](crate::Tree).
    pub fn size_of_nodes(&self) -> Option<u32> {
        self.node_bytes
    }

    /// Makes nodes of several blocks, each of the [size of the nodes](TreeOptions::node_bytes). A look-up
    /// reads single blocks: one client at a time is as fast as with large nodes, many clients as with small
    /// ones. For trees that are read more than written, as a change of a record writes all of its node. Only
    /// for B+-trees.
    ///
    /// ```
    /// # use flashgrain::{Db, NodeBlocks, TreeOptions};
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let options = TreeOptions::new().node_bytes(4 << 10).node_blocks(NodeBlocks::OfDrive);
    /// let tree = db.tree_with("read-mostly", &options)?;
    /// for decision in tree.layout() {
    ///     println!("{}: {} ({})", decision.setting.name(), decision.setting.value(), decision.because);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn node_blocks(mut self, blocks: NodeBlocks) -> Self {
        self.blocks = Some(blocks);
        self
    }

    /// The blocks of a node, if nodes are not read whole.
    pub fn blocks_of_nodes(&self) -> Option<NodeBlocks> {
        self.blocks
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.node_bytes.map_or(Ok(()), check_node_bytes)
    }
}

/// The one setting that B+-trees have of their own.
pub(super) fn of_nodes(bytes: u32) -> Decision {
    Decision { setting: Setting::Node(Bytes(bytes.into())), because: "given, or the store's".into() }
}

/// The decision about the blocks of a node.
pub(super) fn of_blocks(count: u32, blocks: NodeBlocks, layout: &Layout) -> Decision {
    let setting = Setting::NodeBlocks(Count(count.into()));
    Decision { setting, because: blocks.because(layout) }
}
