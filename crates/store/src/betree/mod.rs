//! Bε-trees: changes are messages that gather in the buffers of inner nodes, and come to leaves many at a
//! time (Theorem 9 of the dictionaries paper: Bender et al., "Small Refinements to the DAM Can Have Big
//! Consequences for Data-Structure Design", §6).
//!
//! ```text
//! tree       the tree, and its memtables              index      the boundary of indexes
//! options    the numbers of a tree                    shape      sizes of nodes, and what they weigh
//! part       a page: pivots beside messages           content    what is in a page
//! messages   versions on their way to a leaf          merging    which of them stay
//! flush      messages go down                         basements  messages come to their leaf
//! weight     nodes are rebuilt in balance             search     look-ups
//! scan       records in order                         check      every part is looked at
//! destroy    a tree is given up, buffers are emptied  stats      what is counted
//! ```

mod basements;
mod check;
mod content;
mod destroy;
mod flush;
mod index;
mod merging;
mod messages;
mod options;
mod part;
mod scan;
mod search;
mod shape;
mod stats;
mod tree;
mod weight;

pub use options::BeTreeOptions;
pub(crate) use options::Decided;
pub(crate) use tree::BeTree;
