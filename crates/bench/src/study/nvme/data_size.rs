//! Data from a part of the memory to forty times as much: section 4.4, Figure 14.

use flashgrain_report::page::{Cell, Figure, Growth, Kind, Table, Unit};
use flashgrain_report::unit;
use serde::Serialize;

use super::engine::{Both, Engine};
use super::shown::rate;
use super::{Study, paper};
use crate::records::Records;
use crate::study::chart::{Curve, Quantity, legend, panel};
use crate::study::comparison::{Comparison, Measure};
use crate::study::sheet::Part;

/// Bytes of records over those of the memory.
const FACTORS: [f64; 7] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0];

/// Memory and operations under way are a part of those of other questions, as the data are more.
const CACHE_DIVISOR: u64 = 4;
const TASKS_DIVISOR: u32 = 2;

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    cache_bytes: u64,
    workers: u32,
    tasks: u32,
    sizes: Vec<Size>,
}

#[derive(Debug, Serialize)]
struct Size {
    /// Bytes of records over those of the memory.
    factor: f64,
    records: Records,
    #[serde(flatten)]
    both: Both,
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    let options = study.options;
    let usual = Engine::usual(options);
    let cache_bytes = options.cache_bytes / CACHE_DIVISOR;
    let clients = (options.tasks / TASKS_DIVISOR).max(1);
    let mut sizes = Vec::new();
    for factor in FACTORS {
        study.note(&format!("data of {factor} times the memory"));
        let engine = Engine { cache_bytes, clients, data_factor: factor, ..usual.clone() };
        sizes.push(Size { factor, records: engine.records(), both: engine.both(study)? });
    }
    Ok(Found { cache_bytes, workers: usual.workers, tasks: clients, sizes })
}

impl Found {
    /// The paper's numbers and ours.
    pub fn numbers(found: Option<&Self>) -> Vec<Comparison> {
        let rate = |factor: f64| {
            let size = found?.sizes.iter().find(|size| (size.factor - factor).abs() < 1e-9)?;
            Some(size.both.mixed.per_s / found?.in_memory()?.mixed.per_s)
        };
        let number = |factor: f64| {
            let papers = Self::paper(factor)?;
            let name = format!("rate over that in memory, data over memory: {factor}");
            let number = Comparison::new("Figure 14", name, Measure::Ratio, papers, rate(factor));
            Some(number.apart("the paper's are transactions of TPC-C, skewed"))
        };
        paper::TRANSACTIONS.iter().filter_map(|(factor, _)| number(*factor)).collect()
    }

    fn in_memory(&self) -> Option<&Both> {
        self.sizes.first().map(|size| &size.both)
    }

    /// The paper's rate of TPC-C over that in memory.
    fn paper(factor: f64) -> Option<f64> {
        let [(_, in_memory), ..] = paper::TRANSACTIONS;
        let is_it = |(of, _): &&(f64, f64)| (of - factor).abs() < 1e-9;
        paper::TRANSACTIONS.iter().find(is_it).map(|(_, rate)| rate / in_memory)
    }

    fn text(&self) -> Vec<String> {
        let mut text = vec![format!(
            "{} of memory, {} workers, {} operations under way; records of 776 bytes. The paper has 400 GB of memory, 64 threads and TPC-C; the share of the rate in memory that is left is comparable, though only roughly, as transactions touch more and skewed records.",
            unit::bytes(self.cache_bytes as f64),
            self.workers,
            self.tasks
        )];
        let reads = |factor: f64| {
            let size = self.sizes.iter().find(|size| (size.factor - factor).abs() < 1e-9)?;
            Some(size.both.look_ups.reads_each)
        };
        if reads(10.0).is_some_and(|reads| !(0.5..1.5).contains(&reads)) {
            text.push("Too small to show data of ten times the memory: a look-up does not read about one page (more --cache).".into());
        }
        text
    }

    pub fn part(&self) -> Part {
        Part {
            id: "data-size",
            title: "Data over memory (Figure 14)".into(),
            text: self.text(),
            tables: vec![(
                "Operations a second; in brackets the share that is left of the paper's TPC-C".into(),
                self.table(),
            )],
            figures: vec![self.figure()],
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("data / memory", Kind::Number),
            ("records", Kind::Number),
            ("look-ups/s", Kind::Number),
            ("reads each", Kind::Number),
            ("half updates/s", Kind::Number),
            ("of those in memory", Kind::Number),
            ("bytes written each", Kind::Number),
        ]);
        for Size { factor, records, both } in &self.sizes {
            let left = self.in_memory().map(|memory| both.mixed.per_s / memory.mixed.per_s);
            let papers = Self::paper(*factor).map(|share| format!(" ({})", unit::share(share)));
            table.push(
                [
                    factor.to_string(),
                    unit::count(records.count as f64),
                    rate(both.look_ups.per_s),
                    format!("{:.2}", both.look_ups.reads_each),
                    rate(both.mixed.per_s),
                    left.map_or_else(String::new, unit::share) + &papers.unwrap_or_default(),
                    unit::bytes(both.mixed.written_bytes_each),
                ]
                .map(Cell::from),
            );
        }
        table
    }

    fn figure(&self) -> Figure {
        let points =
            |of: fn(&Both) -> f64| self.sizes.iter().map(|size| (size.factor, of(&size.both))).collect();
        let memory = self.in_memory().map_or(0.0, |both| both.mixed.per_s);
        let papers =
            self.sizes.iter().filter_map(|size| Some((size.factor, memory * Self::paper(size.factor)?)));
        let curve =
            |number, label: &str, is_paper, points| Curve { number, label: label.into(), is_paper, points };
        let curves = [
            curve(0, "look-ups", false, points(|both| both.look_ups.per_s)),
            curve(1, "half updates", true, papers.collect()),
            curve(1, "half updates", false, points(|both| both.mixed.per_s)),
        ];
        let x = Quantity { title: "data over memory", unit: Unit::Plain, growth: Growth::Log };
        let y = Quantity { title: "", unit: Unit::Count, growth: Growth::Linear };
        let title = "Operations a second over data";
        Figure {
            id: "data-size-rates".into(),
            title: title.into(),
            caption: "Dashed: the paper's TPC-C, scaled to our rate in memory.".into(),
            legend: legend(&curves),
            panels: vec![panel(title, "Operations a second", x, y, &curves)],
        }
    }
}
