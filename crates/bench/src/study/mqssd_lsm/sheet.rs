//! Tables, and the remarks on them.

use flashgrain_report::page::{Cell, Kind, Table};
use flashgrain_report::unit;

use super::question::{COMPACTION, QUERIES, Question, SCANS, at, found, speedup, times};
use super::{Found, Layout, MqssdResult, figures, numbers, paper};
use crate::study::comparison::median;
use crate::study::sheet::{Part, Sheet};
use crate::study::subject::Measured;

pub(super) fn of(result: &MqssdResult) -> Sheet {
    Sheet {
        title: format!("Flashgrain's LSM-tree on {}, as in the MQSSD paper", result.target),
        conditions: conditions(result),
        parts: vec![queries(result), scans(result), compaction(result), stores(result)],
        comparisons: numbers::comparisons(Some(result)),
    }
}

fn conditions(result: &MqssdResult) -> Vec<String> {
    let records = result.records;
    vec![
        format!(
            "{} records of {} + {} bytes, {} in all: 1/{} of the paper's. Tables and memtables have {} (the paper's 64 MiB), so that there are {} of them (the paper's 2,000).",
            unit::count(records.count as f64),
            records.key_bytes,
            records.value_bytes,
            unit::bytes(records.bytes() as f64),
            unit::count((paper::RECORDS / records.count as f64).round()),
            unit::bytes(result.table_bytes as f64),
            unit::count((records.bytes() / result.table_bytes) as f64),
        ),
        format!(
            "Blocks of {}, filters of {} bits for each key, fence pointers and filters {}, {} of memory for blocks, memtables and pages; seed {}.",
            unit::bytes(f64::from(result.block_bytes)),
            result.filter_bits,
            result.metadata.name(),
            unit::bytes(result.cache_bytes as f64),
            result.seed
        ),
        format!("On simulated drives times are virtual: {}.", result.costs.describe()),
    ]
}

const OF_QUERIES: &str = "Without filters a query reads a block of each run down to the one that has its key, unless that block is in memory, and a partition of fence pointers that is not: none where these are pinned.";

fn queries(result: &MqssdResult) -> Part {
    Part {
        id: "queries",
        title: "Point queries over fanout and concurrency (Tables 3 and 5, Figures 5A and 6)".into(),
        text: vec![in_short(result, QUERIES), OF_QUERIES.into(), errors(result, QUERIES)],
        tables: vec![
            (caption(QUERIES), seconds(result, QUERIES)),
            (SPEEDUPS.into(), speedups(result, QUERIES)),
            (PREDICTED.into(), predicted(result, QUERIES)),
            (PAPERS_PREDICTED.into(), papers_predicted(result)),
            (
                "Requests to read that the drive got for each query".into(),
                requests(result, |found| &found.queries),
            ),
        ],
        figures: figures::all(result, QUERIES, "queries"),
    }
}

fn scans(result: &MqssdResult) -> Part {
    Part {
        id: "scans",
        title: "Scans of 128 records over fanout and concurrency (Tables 3 and 5, Figures 5B and 6)".into(),
        text: vec![in_short(result, SCANS), errors(result, SCANS)],
        tables: vec![
            (caption(SCANS), seconds(result, SCANS)),
            (SPEEDUPS.into(), speedups(result, SCANS)),
            (PREDICTED.into(), predicted(result, SCANS)),
            (
                "Requests to read that the drive got for each scan".into(),
                requests(result, |found| &found.scans),
            ),
        ],
        figures: figures::all(result, SCANS, "scans"),
    }
}

fn compaction(result: &MqssdResult) -> Part {
    let records = result.fill_records;
    let filled = format!(
        "Stores of {} records, {}, are filled; times are as for the paper's 64 M.",
        unit::count(records.count as f64),
        unit::bytes(records.bytes() as f64)
    );
    Part {
        id: "compaction",
        title: "Compaction over fanout and concurrency (Tables 4 and 5, Figure 5C)".into(),
        text: overtaken(result).into_iter().chain([filled, errors(result, COMPACTION)]).collect(),
        tables: vec![
            (
                "Seconds from the first insert until no merge is due (the paper's)".into(),
                seconds(result, COMPACTION),
            ),
            (PREDICTED.into(), predicted(result, COMPACTION)),
            ("Bytes written for each byte that was flushed".into(), amplification(result)),
        ],
        figures: figures::all(result, COMPACTION, "compaction"),
    }
}

fn caption(question: Question) -> String {
    format!("Seconds of {} (the paper's)", question.name)
}

const SPEEDUPS: &str = "Times as fast on the single level (the paper's)";

const PREDICTED: &str = "Seconds that the model predicts with the drive's own costs (over those measured)";

const PAPERS_PREDICTED: &str = "Seconds of the paper's queries that it predicts for the paper's store with these costs, and 166 µs of each query besides its reads (over the paper's)";

/// Predicted times over those measured, of all layouts and concurrencies.
fn ratios(result: &MqssdResult, question: Question) -> Vec<f64> {
    let of_layout = |found: &Found| {
        let ours = (question.ours)(result, found);
        let ratio = |(k, predicted): (u32, f64)| Some(predicted / at(&ours, k)?);
        (question.predicted)(result, found).into_iter().filter_map(ratio).collect::<Vec<f64>>()
    };
    let mut all: Vec<f64> = result.layouts.iter().flat_map(of_layout).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// How near the predictions are.
fn errors(result: &MqssdResult, question: Question) -> String {
    let mut ratios = ratios(result, question);
    let middle = median(&mut ratios);
    let (Some(low), Some(middle), Some(high)) = (ratios.first(), middle, ratios.last()) else {
        return "The drive has no costs to predict this with.".into();
    };
    format!(
        "Equations 9 to 12 with the drive's own costs predict {low:.2} to {high:.2} times the measured values, {middle:.2} in the median."
    )
}

/// The single level compared with the configuration for flash.
fn in_short(result: &MqssdResult, question: Question) -> String {
    let range = |of: &dyn Fn(u32) -> Option<f64>| {
        let all: Vec<f64> = concurrency(result, question).into_iter().filter_map(of).collect();
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(0.0, f64::max);
        format!("{low:.2} to {high:.2}")
    };
    format!(
        "On the single level {} are {} times as fast as with the configuration for flash; in the paper {} times.",
        question.name,
        range(&|k| speedup(result, question, Layout::Flash, k).0),
        range(&|k| speedup(result, question, Layout::Flash, k).1),
    )
}

/// Speed of filling the single level, compared with the configuration for flash with its four threads.
fn overtaken(result: &MqssdResult) -> Option<String> {
    let all = |layout| Some((COMPACTION.ours)(result, found(result, layout)?));
    let (_, flash_s) = *all(Layout::Flash)?.last()?;
    let ratios = all(Layout::SingleLevel)?
        .into_iter()
        .map(|(jobs, seconds)| format!("{:.2} with {jobs}", flash_s / seconds));
    let ratios: Vec<String> = ratios.collect();
    Some(format!(
        "Speed of filling the single level over that with the configuration for flash, by jobs at a time: {}. In the paper 1.50 times with 32, and 1.01 with 8.",
        ratios.join(", ")
    ))
}

/// Concurrencies with results.
fn concurrency(result: &MqssdResult, question: Question) -> Vec<u32> {
    let all = result.layouts.iter().flat_map(|found| (question.ours)(result, found));
    let mut all: Vec<u32> = all.map(|(k, _)| k).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A row for each concurrency, a column for each layout.
fn by_layout(
    result: &MqssdResult,
    question: Question,
    cell: impl Fn(&Found, u32) -> Option<String>,
) -> Table {
    let names: Vec<String> = result.layouts.iter().map(|found| found.layout.name()).collect();
    let mut columns = vec![(question.concurrent, Kind::Number)];
    columns.extend(names.iter().map(|name| (name.as_str(), Kind::Number)));
    let mut table = Table::new(&columns);
    for k in concurrency(result, question) {
        let cells = result.layouts.iter().map(|found| cell(found, k).unwrap_or_else(|| "–".into()));
        table.push(std::iter::once(k.to_string()).chain(cells).map(Cell::from));
    }
    table
}

fn beside(ours: Option<f64>, papers: Option<f64>, show: fn(f64) -> String) -> Option<String> {
    let ours = show(ours?);
    Some(papers.map_or_else(|| ours.clone(), |papers| format!("{ours} ({})", show(papers))))
}

fn seconds(result: &MqssdResult, question: Question) -> Table {
    by_layout(result, question, |found, k| {
        let papers = (question.papers)(found.layout).and_then(|column| paper::at(&column, k));
        beside(at(&(question.ours)(result, found), k), papers, unit::count)
    })
}

fn speedups(result: &MqssdResult, question: Question) -> Table {
    by_layout(result, question, |found, k| {
        let (ours, papers) = speedup(result, question, found.layout, k);
        beside(ours, papers, |ratio| format!("{ratio:.2}"))
    })
}

fn predicted(result: &MqssdResult, question: Question) -> Table {
    by_layout(result, question, |found, k| {
        let predicted = at(&(question.predicted)(result, found), k)?;
        let ratio = predicted / at(&(question.ours)(result, found), k)?;
        Some(format!("{} ({ratio:.2})", unit::count(predicted)))
    })
}

/// The paper's own queries.
fn papers_predicted(result: &MqssdResult) -> Table {
    by_layout(result, QUERIES, |found, k| {
        let predicted = at(&times(&found.predicted.papers_query_s, paper::QUERIES), k)?;
        let ratio = predicted / paper::at(&paper::queries(found.layout)?, k)?;
        Some(format!("{} ({ratio:.2})", unit::count(predicted)))
    })
}

fn requests(result: &MqssdResult, runs: fn(&Found) -> &[Measured]) -> Table {
    by_layout(result, QUERIES, |found, k| {
        let run = runs(found).iter().find(|run| run.clients == k)?;
        Some(format!("{:.2}", run.reads_each))
    })
}

fn amplification(result: &MqssdResult) -> Table {
    by_layout(result, COMPACTION, |found, k| {
        let fill = found.compactions.iter().find(|fill| fill.jobs == k)?;
        Some(format!("{:.1}", fill.write_amplification))
    })
}

fn stores(result: &MqssdResult) -> Part {
    let mut table = Table::new(&[
        ("layout", Kind::Label),
        ("runs", Kind::Number),
        ("tables of each level, from 0 on", Kind::Label),
    ]);
    for found in &result.layouts {
        let runs: u64 = found.levels.iter().map(|level| level.runs).sum();
        let tables: Vec<String> = found.levels.iter().map(|level| level.tables.to_string()).collect();
        table.push([found.layout.name(), runs.to_string(), tables.join(", ")].map(Cell::from));
    }
    Part {
        id: "stores",
        title: "The stores".into(),
        text: Vec::new(),
        tables: vec![("Runs and tables when queries and scans begin".into(), table)],
        figures: Vec::new(),
    }
}
