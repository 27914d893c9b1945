//! The paper's statements about the trees: Lemma 13 and the text before it.

use super::{Found, Nodes, OnDrive, PdamResult};

/// Separators of a block, on average: B of the lemma.
fn separators_per_block(small: &Found) -> f64 {
    let check = &small.check;
    let inner_nodes = (check.nodes - check.leaves).max(1) as f64;
    // Every node but the root is a child of one.
    (check.nodes as f64 - 1.0) / inner_nodes
}

/// Of the tree with nodes of B.
fn small(drive: &OnDrive) -> Option<&Found> {
    drive.trees.iter().find(|found| found.nodes == Nodes::Small)
}

/// The speed-up of one client by nodes of P·B over nodes of B: `log_B N` / `log_PB N`.
pub(super) fn speedup(result: &PdamResult, drive: &OnDrive) -> Option<f64> {
    let per_block = separators_per_block(small(drive)?);
    Some((per_block * f64::from(result.blocks)).ln() / per_block.ln())
}

/// Throughput of the tree in van Emde Boas order over that of one client: k / `log_{PB/k} N`, and for more
/// than P clients as for P.
pub(super) fn growth(result: &PdamResult, drive: &OnDrive, clients: u32) -> Option<f64> {
    let (per_block, slots) = (separators_per_block(small(drive)?), f64::from(result.blocks));
    let clients = f64::from(clients).min(slots);
    Some(clients * (per_block * slots / clients).ln() / (per_block * slots).ln())
}
