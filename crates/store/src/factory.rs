//! Making, opening and giving up indexes of every kind: the only module that knows all structures.
//!
//! | kind | its parameters in the catalog |
//! | --- | --- |
//! | B+-tree | size class of the nodes, u8; log2 of the blocks of a node, u8; root page, u64, little-endian |
//! | LSM-tree | the same, of its blocks and the root page of its manifest, and its [numbers](Decided) |
//! | Bε-tree | the same, of its basement nodes and the part for its root, and its [numbers](betree::Decided) |

use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

use crate::betree::{self, BeTree, BeTreeOptions};
use crate::btree::{BTree, NodeForm};
use crate::buffered::TreeResources;
use crate::class::class_bytes;
use crate::header::PageId;
use crate::index::{Horizon, Index, IndexKind, Indexes, Operators, Parameters, Tree, TreeId, TreeOperator};
use crate::log::Timestamp;
use crate::lsm::{Decided, Lsm, LsmOptions};
use crate::poison::Poison;
use crate::pool::Pool;
use crate::versioned::{AllIndexes, History, InPlace};
use crate::{Decision, Error};

/// See the module.
pub(crate) struct Factory {
    pool: Arc<Pool>,
    all: Arc<AllIndexes>,
    /// The largest class of nodes so far.
    class_max: Arc<AtomicUsize>,
    shared: Arc<TreeResources>,
    operators: Operators,
}

/// A tree that is to be made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreePlan {
    pub kind: IndexKind,
    /// Size class of the nodes, or of their blocks; of the blocks of an LSM-tree.
    pub class: u16,
    /// For a B+-tree, log2 of the blocks of a node; zero if nodes are read whole.
    pub blocks_log2: u8,
    /// Options of an LSM-tree.
    pub lsm: LsmOptions,
    /// Options of a Bε-tree.
    pub be_tree: BeTreeOptions,
}

impl TreePlan {
    /// The nodes of a B+-tree.
    fn form(&self) -> NodeForm {
        NodeForm {
            class: usize::from(self.class) + usize::from(self.blocks_log2),
            blocks_log2: self.blocks_log2,
        }
    }
}

/// The common beginning of all kinds' parameters.
struct Nodes {
    form: NodeForm,
    root: PageId,
}

/// Bytes of [`Nodes`].
const NODES_BYTES: usize = 10;

impl Nodes {
    fn encode(&self) -> Parameters {
        let mut parameters = Parameters::new();
        parameters.extend_from_slice(&[self.form.class as u8, self.form.blocks_log2]);
        parameters.extend_from_slice(&self.root.0.to_le_bytes());
        parameters
    }

    fn decode(id: TreeId, parameters: &[u8]) -> Result<Self, Error> {
        let form = parameters.first_chunk();
        let form =
            form.map(|[class, blocks_log2]| NodeForm { class: (*class).into(), blocks_log2: *blocks_log2 });
        let root = parameters.get(2..NODES_BYTES).and_then(|root| <[u8; 8]>::try_from(root).ok());
        match (form, root) {
            (Some(form), Some(root)) if form.is_possible() => {
                Ok(Self { form, root: PageId(u64::from_le_bytes(root)) })
            }
            _ => Err(Error::Corrupt {
                what: format!("the catalog's entry of tree {}", id.0),
                offset_bytes: 0,
                expected: "a size class that pages have, and a root page".into(),
                got: format!("{parameters:02x?}"),
            }),
        }
    }
}

/// The numbers of an LSM-tree.
fn decided(id: TreeId, parameters: &[u8]) -> Result<Decided, Error> {
    let numbers = parameters.get(NODES_BYTES..).unwrap_or_default();
    Decided::decode(numbers).ok_or_else(|| no_numbers(id, "LSM-trees", numbers))
}

/// The numbers of a Bε-tree.
fn be_tree_decided(id: TreeId, parameters: &[u8]) -> Result<betree::Decided, Error> {
    let numbers = parameters.get(NODES_BYTES..).unwrap_or_default();
    betree::Decided::decode(numbers).ok_or_else(|| no_numbers(id, "Bε-trees", numbers))
}

#[cold]
fn no_numbers(id: TreeId, kind: &str, got: &[u8]) -> Error {
    Error::Corrupt {
        what: format!("the catalog's entry of tree {}", id.0),
        offset_bytes: NODES_BYTES as u64,
        expected: format!("numbers that {kind} have"),
        got: format!("{got:02x?}"),
    }
}

impl Factory {
    /// Indexes with these pages. Old versions take up to `old_versions_bytes` of plain memory before they get
    /// pages.
    pub fn new(
        pool: &Arc<Pool>,
        shared: Arc<TreeResources>,
        poison: &Poison,
        (old_versions_bytes, operators): (u64, Operators),
    ) -> Arc<Self> {
        let class_max = Arc::new(AtomicUsize::new(0));
        let (own_pool, largest) = (Arc::clone(pool), Arc::clone(&class_max));
        // Old versions have longer keys and values than trees, so their nodes are larger than those of all
        // trees, as far as units and cache allow.
        let make = move || {
            let class = (largest.load(Ordering::Relaxed) + 1).min(own_pool.class_max());
            Ok(Arc::new(BTree::create(&own_pool, class, true)?) as _)
        };
        let history = Arc::new(History::new(Box::new(make), old_versions_bytes, poison.clone()));
        Arc::new(Self {
            pool: Arc::clone(pool),
            all: Arc::new(AllIndexes::new(history)),
            class_max,
            shared,
            operators,
        })
    }

    /// The merge operators that are registered.
    pub fn operators(&self) -> &Operators {
        &self.operators
    }

    /// The pool that holds the pages of all indexes.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Sets the transactions' horizon, which tells the versions that are still seen.
    pub fn set_horizon(&self, horizon: &Arc<dyn Horizon>) {
        self.shared.set_horizon(horizon);
    }

    /// Notes that the log was replayed; it ends at this commit.
    pub fn opened(&self, last: Timestamp) {
        self.all.history().opened(last);
    }

    /// The interface to operations that concern all indexes at once.
    pub fn all(&self) -> Arc<dyn Indexes> {
        Arc::clone(&self.all) as _
    }

    /// Creates an index without records and returns its parameters for the catalog.
    ///
    /// # Errors
    /// The pool's; [`Error::Options`] for numbers that no LSM-tree has.
    pub fn create(&self, plan: TreePlan) -> Result<Parameters, Error> {
        let TreePlan { kind, class, lsm, be_tree, .. } = plan;
        let plain = NodeForm::from(usize::from(class));
        match kind {
            IndexKind::BTree => {
                let form = plan.form();
                let root = BTree::create(&self.pool, form, false)?.root();
                Ok(Nodes { form, root }.encode())
            }
            IndexKind::Lsm => {
                let decided = self.shared.decide_lsm(lsm)?;
                let root = Lsm::create(&self.pool)?;
                let mut parameters = Nodes { form: plain, root }.encode();
                parameters.extend_from_slice(&decided.encode());
                Ok(parameters)
            }
            IndexKind::BeTree => {
                let decided = betree::Decided::of(be_tree, class.into(), self.shared.room)?;
                let root = BeTree::create(&self.pool, decided, class.into(), self.shared.room)?;
                let mut parameters = Nodes { form: plain, root }.encode();
                parameters.extend_from_slice(&decided.encode());
                Ok(parameters)
            }
        }
    }

    /// The settings that a new index would have of its own, and why they are so.
    ///
    /// # Errors
    /// [`Error::Options`] for numbers that no LSM-tree has.
    pub fn decisions(&self, plan: TreePlan) -> Result<Vec<Decision>, Error> {
        match plan.kind {
            IndexKind::Lsm => self.shared.lsm_decisions(plan.lsm, class_bytes(plan.class.into()) as usize),
            IndexKind::BeTree => {
                let decided = betree::Decided::of(plan.be_tree, plan.class.into(), self.shared.room)?;
                Ok(decided.decisions_of_new(plan.class.into(), self.shared.room))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// A new index without records, with the settings of another one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for parameters that no index has; the pool's.
    pub fn create_like(&self, id: TreeId, kind: IndexKind, parameters: &[u8]) -> Result<Parameters, Error> {
        self.create(self.plan(id, kind, parameters)?)
    }

    /// How an index was made.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for parameters that no index has.
    pub fn plan(&self, id: TreeId, kind: IndexKind, parameters: &[u8]) -> Result<TreePlan, Error> {
        let form = Nodes::decode(id, parameters)?.form;
        let lsm = match kind {
            IndexKind::Lsm => decided(id, parameters)?.given(),
            _ => LsmOptions::default(),
        };
        let be_tree = match kind {
            IndexKind::BeTree => be_tree_decided(id, parameters)?.given(),
            _ => BeTreeOptions::default(),
        };
        let (class, blocks_log2) = (form.class_of_blocks() as u16, form.blocks_log2);
        Ok(TreePlan { kind, class, blocks_log2, lsm, be_tree })
    }

    /// Opens the index with this entry in the catalog.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for parameters that no index has.
    pub fn open(
        &self,
        id: TreeId,
        kind: IndexKind,
        parameters: &[u8],
        operator: Option<Arc<TreeOperator>>,
    ) -> Result<Tree, Error> {
        let Nodes { form, root } = Nodes::decode(id, parameters)?;
        let map = || Arc::new(BTree::open(&self.pool, root, form));
        let index: Arc<dyn Index> = match kind {
            IndexKind::BTree => {
                self.class_max.fetch_max(form.class_of_blocks(), Ordering::Relaxed);
                Arc::new(InPlace::new(id, map(), Arc::clone(self.all.history())))
            }
            IndexKind::Lsm => {
                let index: Arc<dyn Index> = Lsm::open(
                    id,
                    &self.shared,
                    root,
                    (decided(id, parameters)?, class_bytes(form.class) as usize),
                    operator,
                )?;
                self.all.add(id, &index);
                index
            }
            IndexKind::BeTree => {
                let numbers = (be_tree_decided(id, parameters)?, form.class);
                let index: Arc<dyn Index> = BeTree::open(id, &self.shared, root, numbers, operator)?;
                self.all.add(id, &index);
                index
            }
        };
        Ok(Tree { id, index })
    }
}
