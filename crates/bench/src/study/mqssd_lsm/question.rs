//! The questions about a layout.

use super::{Found, Layout, MqssdResult, paper};
use crate::study::subject::Measured;

/// Seconds of something by concurrency: ours, as much as the paper did, the model's, and the paper's.
#[derive(Clone, Copy)]
pub(super) struct Question {
    pub ours: fn(&MqssdResult, &Found) -> Vec<(u32, f64)>,
    pub predicted: fn(&MqssdResult, &Found) -> Vec<(u32, f64)>,
    pub papers: fn(Layout) -> Option<paper::Column>,
    /// The operation that takes the time.
    pub name: &'static str,
    /// The unit of concurrency.
    pub concurrent: &'static str,
}

pub(super) const QUERIES: Question = Question {
    ours: |_, found| found.queries.iter().map(total_s).collect(),
    predicted: |_, found| times(&found.predicted.query_s, paper::QUERIES),
    papers: paper::queries,
    name: "3.2 M queries",
    concurrent: "clients",
};

pub(super) const SCANS: Question = Question {
    ours: |_, found| found.scans.iter().map(total_s).collect(),
    predicted: |_, found| times(&found.predicted.scan_s, paper::QUERIES),
    papers: paper::scans,
    name: "3.2 M scans",
    concurrent: "clients",
};

pub(super) const COMPACTION: Question = Question {
    ours: |result, found| {
        let fills = found.compactions.iter().map(|fill| (fill.jobs, fill.seconds));
        times(&fills.collect::<Vec<_>>(), stores(result))
    },
    predicted: |result, found| times(&found.predicted.fill_s, stores(result)),
    papers: paper::compactions,
    name: "filling until no merge is due",
    concurrent: "jobs",
};

/// The paper's records over those of a store that is filled.
fn stores(result: &MqssdResult) -> f64 {
    paper::RECORDS / result.fill_records.count as f64
}

pub(super) fn times(all: &[(u32, f64)], factor: f64) -> Vec<(u32, f64)> {
    all.iter().map(|(k, seconds)| (*k, seconds * factor)).collect()
}

fn total_s(measured: &Measured) -> (u32, f64) {
    (measured.clients, paper::QUERIES / measured.per_s)
}

/// The findings of a layout.
pub(super) fn found(result: &MqssdResult, layout: Layout) -> Option<&Found> {
    result.layouts.iter().find(|found| found.layout == layout)
}

/// Seconds at a concurrency.
pub(super) fn at(all: &[(u32, f64)], k: u32) -> Option<f64> {
    all.iter().find(|(own, _)| *own == k).map(|(_, seconds)| *seconds)
}

/// Times of a layout over those of the single level: ours, and the paper's.
pub(super) fn speedup(
    result: &MqssdResult,
    question: Question,
    layout: Layout,
    k: u32,
) -> (Option<f64>, Option<f64>) {
    let ours = |layout| at(&(question.ours)(result, found(result, layout)?), k);
    let papers = |layout| paper::at(&(question.papers)(layout)?, k);
    let ratio = |of: &dyn Fn(Layout) -> Option<f64>| Some(of(layout)? / of(Layout::SingleLevel)?);
    (ratio(&ours), ratio(&papers))
}
