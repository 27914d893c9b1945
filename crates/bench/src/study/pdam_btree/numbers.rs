//! The predictions of the paper's lemma, and ours.

use super::{Nodes, PdamResult, lemma};
use crate::study::about::About;
use crate::study::comparison::{Comparison, Measure};

/// The study that is repeated.
pub const ABOUT: About = About {
    name: "pdam-btree",
    paper: "Bender et al.: Small Refinements to the DAM Can Have Big Consequences for Data-Structure Design",
    parts: "section 8: Lemma 13",
    did: "It proves that a B-tree with nodes of P·B in van Emde Boas order answers k clients with k / log_{PB/k} N queries a step; it measures no such tree.",
    scaled: &[
        ("B and P", "of the drive", "4 KiB and 4: sim:980pro has P = 5.4"),
        ("records", "N", "a million of 16 + 760 bytes"),
        ("in memory", "nothing", "0.25 % of the records"),
    ],
};

/// The lemma's speed-up of one client, and growth with clients, of the separators that our trees have. These
/// are unknown before the trees are built.
pub(super) fn comparisons(result: Option<&PdamResult>) -> Vec<Comparison> {
    let Some(result) = result else { return Vec::new() };
    let mut all = Vec::new();
    for drive in &result.drives {
        let tree = |nodes| drive.trees.iter().find(|found| found.nodes == nodes);
        let rate = |nodes, clients| Some(tree(nodes)?.by(clients)?.per_s);
        let look_ups = |nodes, clients| Some(tree(nodes)?.by(clients)?.times.count);
        let over = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
        if let Some(papers) = lemma::speedup(result, drive) {
            let ours = over(rate(Nodes::InBlocks, 1), rate(Nodes::Small, 1));
            let name = format!("{}: one client, van Emde Boas over nodes of B", drive.target);
            let number = Comparison::new("Lemma 13", name, Measure::Ratio, papers, ours);
            all.push(number.of_operations(look_ups(Nodes::InBlocks, 1)));
        }
        let clients = tree(Nodes::InBlocks).map(|found| found.look_ups.iter().map(|run| run.clients));
        for clients in clients.into_iter().flatten().filter(|clients| *clients > 1) {
            let Some(papers) = lemma::growth(result, drive, clients) else { continue };
            let ours = over(rate(Nodes::InBlocks, clients), rate(Nodes::InBlocks, 1));
            let name = format!("{}: {clients} clients over one, van Emde Boas", drive.target);
            let number = Comparison::new("Lemma 13", name, Measure::Ratio, papers, ours)
                .of_operations(look_ups(Nodes::InBlocks, clients));
            all.push(match clients > result.blocks {
                true => number.apart("beyond P clients the drive serves more blocks of B than P"),
                false => number,
            });
        }
    }
    all
}
