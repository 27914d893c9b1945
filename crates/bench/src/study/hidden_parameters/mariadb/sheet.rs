//! Tables of MariaDB, and the remarks on them.

use flashgrain_report::page::{Cell, Kind, Table};
use flashgrain_report::unit;

use super::super::paper;
use super::{Found, PAGES_BYTES, PAPER_PAGE_BYTES, Run, Variant, YCSB};
use crate::study::sheet::Part;

pub(in super::super) fn part(found: &Found, show: Show) -> Part {
    Part {
        id: "mariadb",
        title: format!("use-hot-locations with MariaDB on {} (Figure 13)", found.target),
        text: vec![about(found), in_short(found, show)],
        tables: vec![
            (
                "Operations a second, and their gain over a partition at a stripe (the paper's)".into(),
                rates(found, show),
            ),
            (
                "The mixes of YCSB with pages of 64 KiB, operations a second and gains (the paper's)".into(),
                ycsb(found, show),
            ),
            ("Requests to the drive for each insert and select".into(), requests(found)),
        ],
        figures: Vec::new(),
    }
}

/// The format of gains, and of gains with the paper's.
#[derive(Clone, Copy)]
pub(in super::super) struct Show {
    pub gain: fn(f64) -> String,
    pub beside: fn(String, Option<String>) -> String,
}

fn about(found: &Found) -> String {
    format!(
        "A server cannot run in virtual time: its requests are made up, as a recording of MariaDB 10.11 has them. One client; a select takes {} ns of processors, a change {} ns, and a page of 64 KiB that is read {} ns more (again: --server-costs {}). YCSB has {} records of 1 KB. The pool has the same share of each table, and makes the same share of its frames free, as InnoDB does with 2,048 frames of 64 KiB.",
        found.costs.select_ns,
        found.costs.change_ns,
        found.costs.page_ns,
        found.costs,
        unit::count(found.ycsb_records as f64),
    )
}

fn in_short(found: &Found, show: Show) -> String {
    let gain = |variant, page_bytes| {
        let selects = found.gain(variant, page_bytes, |iteration| iteration.selects.per_s);
        selects.map_or_else(|| "–".into(), show.gain)
    };
    let default = PAGES_BYTES[1];
    format!(
        "Settings alone, pages of 64 KiB on a partition that begins at a hot location, make selects {}; pages that are split besides, as the paper changed InnoDB, {} ({} in the paper). Smaller pages lie in one chunk wherever the partition begins: with {}, selects are {}.",
        gain(Variant::Partition, PAPER_PAGE_BYTES),
        gain(Variant::Paper, PAPER_PAGE_BYTES),
        (show.gain)(paper::MARIADB_SELECT_GAIN),
        unit::bytes(default as f64),
        gain(Variant::Partition, default),
    )
}

fn rates(found: &Found, show: Show) -> Table {
    let mut table = Table::new(&[
        ("pages", Kind::Number),
        ("places", Kind::Label),
        ("inserts/s", Kind::Number),
        ("gain", Kind::Number),
        ("selects/s", Kind::Number),
        ("gain", Kind::Number),
    ]);
    for run in &found.runs {
        let is_paper = run.variant == Variant::Paper;
        let shown = |gain: Option<f64>, papers: f64| match run.variant {
            Variant::Original => "–".into(),
            _ => {
                let ours = gain.map_or_else(|| "–".into(), show.gain);
                (show.beside)(ours, is_paper.then(|| (show.gain)(papers)))
            }
        };
        let inserts = found.gain(run.variant, run.page_bytes, |iteration| iteration.inserts.per_s);
        let selects = found.gain(run.variant, run.page_bytes, |iteration| iteration.selects.per_s);
        table.push([
            unit::bytes(run.page_bytes as f64).into(),
            run.variant.name().into(),
            unit::count(run.mean(|iteration| iteration.inserts.per_s)).into(),
            shown(inserts, paper::MARIADB_INSERT_GAIN).into(),
            unit::count(run.mean(|iteration| iteration.selects.per_s)).into(),
            Cell::new(shown(selects, paper::MARIADB_SELECT_GAIN)),
        ]);
    }
    table
}

fn ycsb(found: &Found, show: Show) -> Table {
    let mut table = Table::new(&[
        ("mix", Kind::Label),
        ("operations/s", Kind::Number),
        ("reads of each", Kind::Number),
        ("partition at a hot location", Kind::Number),
        ("pages shifted and split", Kind::Number),
    ]);
    for workload in YCSB {
        let Some(original) = found.ycsb(Variant::Original, workload) else { continue };
        let gain = |variant| found.ycsb_gain(variant, workload).map_or_else(|| "–".into(), show.gain);
        let papers = paper::ycsb_gain(workload).map(show.gain);
        table.push([
            workload.into(),
            unit::count(original.operations.per_s).into(),
            format!("{:.2}", original.operations.reads_each).into(),
            gain(Variant::Partition).into(),
            Cell::new((show.beside)(gain(Variant::Paper), papers)),
        ]);
    }
    table
}

fn requests(found: &Found) -> Table {
    let mut table = Table::new(&[
        ("pages", Kind::Number),
        ("places", Kind::Label),
        ("insert: reads", Kind::Number),
        ("writes", Kind::Number),
        ("flushes", Kind::Number),
        ("select: reads", Kind::Number),
    ]);
    let mean = |run: &Run, of: fn(&super::Iteration) -> f64| {
        format!("{:.2}", run.iterations.iter().map(of).sum::<f64>() / run.iterations.len() as f64)
    };
    for run in &found.runs {
        table.push([
            unit::bytes(run.page_bytes as f64).into(),
            run.variant.name().into(),
            mean(run, |iteration| iteration.inserts.reads_each).into(),
            mean(run, |iteration| iteration.inserts.writes_each).into(),
            mean(run, |iteration| iteration.inserts.flushes_each).into(),
            Cell::new(mean(run, |iteration| iteration.selects.reads_each)),
        ]);
    }
    table
}
