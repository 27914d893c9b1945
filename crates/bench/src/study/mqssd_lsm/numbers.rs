//! The paper's numbers and ours.

use super::question::{COMPACTION, QUERIES, Question, SCANS, speedup};
use super::{Layout, MqssdResult, paper};
use crate::study::about::About;
use crate::study::comparison::{Comparison, Measure};

/// The study that is repeated.
pub const ABOUT: About = About {
    name: "mqssd-lsm",
    paper: "Ransom, Lim, Mitzenmacher: Multi-Queue SSD I/O Modeling & Its Implications for Data Structure Design",
    parts: "section 5.3: Tables 3 to 5, Figures 5 and 6",
    did: "RocksDB 8.6.7 on a Samsung 990 PRO: queries, scans and compactions over the fanout F and the concurrency k, and a single level against the configuration for flash.",
    scaled: &[
        (
            "records",
            "64 M of 16 + 2,048 bytes",
            "131,072 of the same size, 32,768 where a store is only filled",
        ),
        ("tables and memtables", "64 MiB, 2,000 of them", "256 KiB, 1,000 of them"),
        ("drive", "Samsung 990 PRO 1TB", "sim:990pro, four times as large as the records"),
        (
            "memory",
            "fence pointers, and 32 MiB for blocks",
            "5 % of the records, pinned fence pointers included",
        ),
    ],
};

/// The paper's layouts.
fn layouts() -> impl Iterator<Item = Layout> {
    [2, 4, 8, 16, 32].map(|fanout| Layout::Leveled { fanout }).into_iter().chain([Layout::Flash])
}

/// Times of each layout over those of the single level: the paper's tables are for these ratios, which stay
/// the same with less data.
pub(super) fn comparisons(result: Option<&MqssdResult>) -> Vec<Comparison> {
    let questions: [(Question, &str); 3] = [(QUERIES, "queries"), (SCANS, "scans"), (COMPACTION, "filling")];
    let mut all = Vec::new();
    for (question, name) in questions {
        for layout in layouts() {
            for k in paper::CONCURRENCY {
                let Some(papers) = papers(question, layout, k) else { continue };
                let ours = result.and_then(|result| speedup(result, question, layout, k).0);
                let source = match (name, layout) {
                    (_, Layout::Flash) => "Table 5",
                    ("filling", _) => "Table 4",
                    _ => "Table 3",
                };
                let name = format!("{name}, {} over the single level, k = {k}", layout.name());
                all.push(Comparison::new(source, name, Measure::Ratio, papers, ours));
            }
        }
    }
    all
}

fn papers(question: Question, layout: Layout, k: u32) -> Option<f64> {
    let seconds = |layout| paper::at(&(question.papers)(layout)?, k);
    Some(seconds(layout)? / seconds(Layout::SingleLevel)?)
}
