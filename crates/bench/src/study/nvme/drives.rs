//! Random reads over the number of drives, and the mix of reads and writes: section 2.1, Figure 2.

use flashgrain_model::{Access, Workload};
use flashgrain_report::page::{Cell, Figure, Growth, Kind, Table, Unit};
use flashgrain_report::unit;
use flashgrain_ssdsim::SimConfig;
use flashgrain_ssdsim::config::{MediumConfig, StartState};
use serde::Serialize;

use super::paper;
use super::raw::{Drives, Reached, WARMUP_FRACTION};
use super::shown::{beside, rate};
use super::{PAGE_BYTES, Study};
use crate::study::chart::{Curve, Quantity, legend, panel};
use crate::study::comparison::{Comparison, Measure};
use crate::study::sheet::Part;

/// Shares of reads.
const READ_SHARES: [f64; 6] = [1.0, 0.9, 0.75, 0.5, 0.25, 0.0];

/// Factor of the number of requests where some are writes: a drive's cache takes the first ones.
const WRITES_FACTOR: u64 = 4;

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    /// On simulated drives.
    scaling: Vec<Scaled>,
    mixes: Vec<Mixed>,
    drives: u32,
    /// Pages that the drives' caches take before a write waits for the medium.
    cache_pages: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Scaled {
    drives: u32,
    #[serde(flatten)]
    reached: Reached,
}

#[derive(Debug, Serialize)]
struct Mixed {
    read_share: f64,
    /// Writes before those that count.
    warmup_writes: Option<u64>,
    #[serde(flatten)]
    reached: Reached,
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    let options = study.options;
    let config = options.simulated()?;
    let drives = config.as_ref().map_or(1, |config| config.drives);
    let mut scaling = Vec::new();
    if config.is_some() {
        for count in 1..=drives {
            study.note(&format!("reads of {count} of the drives"));
            let set = Drives::of(study, count, StartState::Filled)?;
            let in_flight = options.in_flight_each() * count;
            let reads = Workload::random(Access::Read, PAGE_BYTES, f64::from(in_flight));
            let requests = options.requests * u64::from(count) / u64::from(drives);
            let reached = set.measure(options, reads, requests, study.interrupt)?;
            scaling.push(Scaled { drives: count, reached });
        }
    }
    let mut mixes = Vec::new();
    for read_share in READ_SHARES {
        study.note(&format!("{} of reads", unit::share(read_share)));
        mixes.push(mix(study, drives, read_share)?);
    }
    let cache_pages = config.as_ref().and_then(cache_pages);
    Ok(Found { scaling, mixes, drives, cache_pages })
}

fn mix(study: &Study<'_>, drives: u32, read_share: f64) -> anyhow::Result<Mixed> {
    let options = study.options;
    // The paper writes to empty drives; only drives that hold data can be read.
    let state = if read_share > 0.0 { StartState::Filled } else { StartState::Fresh };
    let set = Drives::of(study, drives, state)?;
    let in_flight = match set {
        Drives::Simulated(_) => options.in_flight,
        Drives::File(_) => options.in_flight_each(),
    };
    let reads = Workload::random(Access::Read, PAGE_BYTES, f64::from(in_flight));
    let factor = if read_share < 1.0 { WRITES_FACTOR } else { 1 };
    let workload = Workload { read_share, ..reads };
    let load = set.load(options, workload, factor * options.requests);
    let warmup_writes = load
        .stop
        .after_requests
        .map(|requests| (requests as f64 * WARMUP_FRACTION * (1.0 - read_share)) as u64);
    let reached = set.measure(options, workload, factor * options.requests, study.interrupt)?;
    Ok(Mixed { read_share, warmup_writes, reached })
}

fn cache_pages(config: &SimConfig) -> Option<u64> {
    match &config.medium {
        MediumConfig::Nand(nand) => {
            Some(nand.write_cache.bytes * u64::from(config.drives) / PAGE_BYTES as u64)
        }
        MediumConfig::Xpoint(_) | MediumConfig::Disk(_) => None,
    }
}

impl Found {
    /// The paper's numbers and ours.
    pub fn numbers(found: Option<&Self>) -> Vec<Comparison> {
        let scaled = |drives: u32| {
            let one = found?.scaling.iter().find(|one| one.drives == drives)?;
            Some(one.reached.requests_per_s)
        };
        let mixed = |writes: f64| {
            let found = found.filter(|found| found.drives == 8)?;
            found.mixes.iter().find(|one| (1.0 - writes - one.read_share).abs() < 1e-9)
        };
        let number =
            |name: String, papers, ours| Comparison::new("Figure 2", name, Measure::Count, papers, ours);
        let reads = paper::SCALING.map(|(drives, papers)| {
            number(format!("random reads/s, drives: {drives}"), papers, scaled(drives))
        });
        let mixes = paper::MIXES.iter().filter(|(writes, _)| *writes > 0.0).map(|(writes, papers)| {
            let ours = mixed(*writes);
            let rate = ours.map(|one| one.reached.requests_per_s);
            let number = number(format!("requests/s, writes: {:.0} %", 100.0 * writes), *papers, rate);
            match found.zip(ours).is_some_and(|(found, one)| found.is_within_caches(one)) {
                true => number.apart("too few requests: the drives' caches took the writes"),
                false => number,
            }
        });
        reads.into_iter().chain(mixes).collect()
    }

    /// Whether the caches of the drives took all writes before the rate was taken.
    fn is_within_caches(&self, mixed: &Mixed) -> bool {
        mixed.read_share < 1.0
            && mixed.warmup_writes.zip(self.cache_pages).is_some_and(|(writes, pages)| writes < pages)
    }

    /// The paper's rate of this number of drives.
    fn paper_scaled(drives: u32) -> Option<f64> {
        paper::SCALING.iter().find(|(of, _)| *of == drives).map(|(_, rate)| *rate)
    }

    fn paper_mixed(&self, read_share: f64) -> Option<f64> {
        let is_it = |(writes, _): &&(f64, f64)| (1.0 - writes - read_share).abs() < 1e-9;
        paper::MIXES.iter().find(is_it).filter(|_| self.drives == 8).map(|(_, rate)| *rate)
    }

    pub fn part(&self) -> Part {
        let mut tables = Vec::new();
        if !self.scaling.is_empty() {
            tables.push((
                "Random reads of 4 KiB over drives; the paper's figures in brackets".into(),
                self.scaling_table(),
            ));
        }
        tables.push((
            "Random reads and writes of 4 KiB; the paper's figures in brackets".into(),
            self.mix_table(),
        ));
        Part {
            id: "drives",
            title: "Drives, and the mix of reads and writes (Figure 2)".into(),
            text: self.text(),
            tables,
            figures: vec![self.figure()],
        }
    }

    fn text(&self) -> Vec<String> {
        let mut text = Vec::new();
        if let [first, .., last] = self.scaling.as_slice() {
            let each = |scaled: &Scaled| scaled.reached.requests_per_s / f64::from(scaled.drives);
            text.push(format!(
                "{} drives read {:.2} times as much for each drive as one; in the paper throughput scales perfectly.",
                last.drives,
                each(last) / each(first)
            ));
        } else {
            text.push(
                "One drive shows no scaling over drives: name a simulated set, such as sim:8xpm1733.".into(),
            );
        }
        text.push(format!(
            "Nothing here is worn: the paper adds that a full drive writes {} pages a second in the worst case (`flashgrain sim run` with the state `steady-random`).",
            unit::count(paper::WORST_WRITES_PER_S)
        ));
        let short = |mixed: &&Mixed| self.is_within_caches(mixed);
        let short: Vec<String> =
            self.mixes.iter().filter(short).map(|mixed| unit::share(mixed.read_share)).collect();
        if !short.is_empty() {
            text.push(format!(
                "Too few requests to show the medium at {} of reads: the drives' caches take {} pages before a write waits for the medium, more than were written before the rate was taken (more --requests).",
                short.join(", "),
                unit::count(self.cache_pages.unwrap_or(0) as f64)
            ));
        }
        text
    }

    fn scaling_table(&self) -> Table {
        let mut table = Table::new(&[
            ("drives", Kind::Number),
            ("in flight", Kind::Number),
            ("reads/s", Kind::Number),
            ("of each drive", Kind::Number),
            ("p50", Kind::Number),
            ("p99", Kind::Number),
        ]);
        for Scaled { drives, reached } in &self.scaling {
            let each = reached.requests_per_s / f64::from(*drives);
            table.push(
                [
                    drives.to_string(),
                    reached.in_flight.to_string(),
                    beside(reached.requests_per_s, Self::paper_scaled(*drives), rate),
                    rate(each),
                    unit::micros(reached.latency.p50_us),
                    unit::micros(reached.latency.p99_us),
                ]
                .map(Cell::from),
            );
        }
        table
    }

    fn mix_table(&self) -> Table {
        let mut table = Table::new(&[
            ("reads", Kind::Number),
            ("requests/s", Kind::Number),
            ("bandwidth", Kind::Number),
            ("p50 of reads", Kind::Number),
            ("p99", Kind::Number),
        ]);
        for Mixed { read_share, reached, .. } in &self.mixes {
            table.push(
                [
                    unit::share(*read_share),
                    beside(reached.requests_per_s, self.paper_mixed(*read_share), rate),
                    unit::rate(reached.bytes_per_s),
                    unit::micros(reached.latency.p50_us),
                    unit::micros(reached.latency.p99_us),
                ]
                .map(Cell::from),
            );
        }
        table
    }

    fn figure(&self) -> Figure {
        let y = Quantity { title: "", unit: Unit::Count, growth: Growth::Linear };
        let curve =
            |number, label: &str, is_paper, points| Curve { number, label: label.into(), is_paper, points };
        let mut panels = Vec::new();
        let title = "Requests a second";
        if !self.scaling.is_empty() {
            let point = |scaled: &Scaled| (f64::from(scaled.drives), scaled.reached.requests_per_s);
            let papers = paper::SCALING.map(|(drives, rate)| (f64::from(drives), rate));
            let curves = [
                curve(0, "reads", true, papers.into_iter().filter(|_| self.drives == 8).collect()),
                curve(0, "reads", false, self.scaling.iter().map(point).collect()),
            ];
            let x = Quantity { title: "drives", unit: Unit::Count, growth: Growth::Linear };
            panels.push(panel(title, "Reads a second over drives", x, y, &curves));
        }
        let points = |mixed: &Mixed| (1.0 - mixed.read_share, mixed.reached.requests_per_s);
        let papers = self
            .mixes
            .iter()
            .filter_map(|mixed| Some((1.0 - mixed.read_share, self.paper_mixed(mixed.read_share)?)));
        let curves = [
            curve(0, "requests", true, papers.collect()),
            curve(0, "requests", false, self.mixes.iter().map(points).collect()),
        ];
        let x = Quantity { title: "writes", unit: Unit::Share, growth: Growth::Linear };
        panels.push(panel(title, "Requests a second by the share of writes", x, y, &curves));
        let caption = "Dashed: between the paper's figures, where its text has them.".into();
        Figure { id: "drives-rates".into(), title: title.into(), caption, legend: legend(&curves), panels }
    }
}
