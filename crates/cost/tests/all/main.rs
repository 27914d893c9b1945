//! Prices beside papers, and beside simulations that share no formula with them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod asymptotics;
mod compaction;
mod exclusive_commits;
mod figures;
mod long_values;
mod lsm_paper;
mod lsm_properties;
mod lsm_runs;
mod lsm_simulation;
mod more_memory;
mod simulated;
mod skewed_pages;
mod table_size;

use flashgrain_cost::dictionary::{
    BEpsilonTree, BTree, Design, OutOfPlaceBEpsilonTree, OutOfPlaceBTree, OutOfPlaceBTreeOfBlocks, PdamBTree,
};
use flashgrain_cost::lsm::{Layout, LsmTree};

/// One of each kind, with its name.
fn designs() -> Vec<(String, Box<dyn Design>)> {
    let mut all: Vec<Box<dyn Design>> = vec![
        Box::new(BTree::new(4096.0)),
        Box::new(BTree::new(65_536.0)),
        Box::new(PdamBTree::new(4096.0, 8.0)),
        Box::new(OutOfPlaceBTree::new(8192.0, 65_536.0)),
        Box::new(OutOfPlaceBTreeOfBlocks::new(4096.0, 4.0, 65_536.0)),
        Box::new(BEpsilonTree::naive(65_536.0, 8.0)),
        Box::new(BEpsilonTree::optimised(1_048_576.0, 16.0)),
        Box::new(OutOfPlaceBEpsilonTree::new(1_048_576.0, 8.0, 4096.0, 262_144.0)),
    ];
    all.extend(Layout::ALL.map(|layout| Box::new(LsmTree::new(layout)) as Box<dyn Design>));
    all.into_iter().map(|design| (design.name(), design)).collect()
}
