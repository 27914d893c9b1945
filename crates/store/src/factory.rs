//! Making, opening and giving up indexes of every kind: the only place that knows which structures there are.
//!
//! | kind | its parameters in the catalog |
//! | --- | --- |
//! | B+-tree | size class of the nodes, u16; root page, u64; both little-endian |
//! | LSM-tree | the same, with the root page of its manifest |

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Weak};

use crate::Error;
use crate::btree::BTree;
use crate::class::CLASSES;
use crate::header::PageId;
use crate::index::{Horizon, Index, IndexKind, Indexes, Parameters, Tree, TreeId};
use crate::log::Timestamp;
use crate::lsm::{Lsm, Shared};
use crate::poison::Poison;
use crate::pool::Pool;
use crate::versioned::{AllIndexes, History, InPlace};

/// See the module.
pub(crate) struct Factory {
    pool: Arc<Pool>,
    all: Arc<AllIndexes>,
    /// The largest class of nodes so far.
    class_max: Arc<AtomicUsize>,
    lsm: Arc<Shared>,
}

/// Parameters of a B+-tree, as the catalog stores them.
struct Nodes {
    class: u16,
    root: PageId,
}

impl Nodes {
    fn encode(&self) -> Parameters {
        let mut parameters = Parameters::new();
        parameters.extend_from_slice(&self.class.to_le_bytes());
        parameters.extend_from_slice(&self.root.0.to_le_bytes());
        parameters
    }

    fn decode(id: TreeId, parameters: &[u8]) -> Result<Self, Error> {
        let class = parameters.first_chunk().map(|class| u16::from_le_bytes(*class));
        let root = parameters.get(2..).and_then(|root| <[u8; 8]>::try_from(root).ok());
        match (class, root) {
            (Some(class), Some(root)) if usize::from(class) < CLASSES => {
                Ok(Self { class, root: PageId(u64::from_le_bytes(root)) })
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

impl Factory {
    /// Indexes with these pages. Old versions take up to `old_versions_bytes` of plain memory before they get
    /// pages.
    pub fn new(pool: &Arc<Pool>, lsm: Arc<Shared>, poison: &Poison, old_versions_bytes: u64) -> Arc<Self> {
        let class_max = Arc::new(AtomicUsize::new(0));
        let (own_pool, largest) = (Arc::clone(pool), Arc::clone(&class_max));
        // Old versions have longer keys and values than trees, so their nodes are larger than those of all
        // trees.
        let make = move || {
            let class = (largest.load(Ordering::Relaxed) + 1).min(CLASSES - 1);
            Ok(Arc::new(BTree::create(&own_pool, class, true)?) as _)
        };
        let history = Arc::new(History::new(Box::new(make), old_versions_bytes, poison.clone()));
        Arc::new(Self { pool: Arc::clone(pool), all: Arc::new(AllIndexes::new(history)), class_max, lsm })
    }

    /// The pool that holds the pages of all indexes.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Transactions are known, which say what is still seen.
    pub fn set_horizon(&self, horizon: Weak<dyn Horizon>) {
        self.lsm.set_horizon(horizon);
    }

    /// The log was replayed; it ends at this commit.
    pub fn opened(&self, last: Timestamp) {
        self.all.history().opened(last);
    }

    /// The interface to operations that concern all indexes at once.
    pub fn all(&self) -> Arc<dyn Indexes> {
        Arc::clone(&self.all) as _
    }

    /// Creates an index without records, with nodes of this size class, and returns its parameters for the
    /// catalog.
    ///
    /// # Errors
    /// The pool's.
    pub fn create(&self, kind: IndexKind, class: u16) -> Result<Parameters, Error> {
        match kind {
            IndexKind::BTree => {
                let root = BTree::create(&self.pool, class.into(), false)?.root();
                Ok(Nodes { class, root }.encode())
            }
            #[cfg(feature = "testing")]
            IndexKind::AppendOnly => self.create(IndexKind::BTree, class),
            IndexKind::Lsm => {
                let root = Lsm::create(&self.pool)?;
                Ok(Nodes { class, root }.encode())
            }
        }
    }

    /// A new index without records, with the settings of another one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for parameters that no index has; the pool's.
    pub fn create_like(&self, id: TreeId, kind: IndexKind, parameters: &[u8]) -> Result<Parameters, Error> {
        self.create(kind, Nodes::decode(id, parameters)?.class)
    }

    /// The index of which the catalog says this.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for parameters that no index has.
    pub fn open(&self, id: TreeId, kind: IndexKind, parameters: &[u8]) -> Result<Tree, Error> {
        let Nodes { class, root } = Nodes::decode(id, parameters)?;
        let map = || Arc::new(BTree::open(&self.pool, root, class.into()));
        let index: Arc<dyn Index> = match kind {
            IndexKind::BTree => {
                self.class_max.fetch_max(class.into(), Ordering::Relaxed);
                Arc::new(InPlace::new(id, map(), Arc::clone(self.all.history())))
            }
            #[cfg(feature = "testing")]
            IndexKind::AppendOnly => {
                let index: Arc<dyn Index> = Arc::new(crate::versioned::AppendOnly::new(id, map()));
                self.all.add(id, &index);
                index
            }
            IndexKind::Lsm => {
                let index: Arc<dyn Index> = Lsm::open(id, &self.lsm, root)?;
                self.all.add(id, &index);
                index
            }
        };
        Ok(Tree { id, index })
    }
}
