//! Requests a second, bandwidth and latency over page sizes, on one drive: section 2.2, Figure 3.

use flashgrain_model::{Access, Workload};
use flashgrain_report::page::{Cell, Figure, Growth, Kind, Table, Unit};
use flashgrain_report::unit;
use flashgrain_ssdsim::config::StartState;
use serde::Serialize;

use super::raw::{Drives, Reached};
use super::shown::{beside, rate};
use super::{Study, paper};
use crate::study::chart::{Curve, Quantity, legend, panel};
use crate::study::comparison::{Comparison, Measure};
use crate::study::sheet::Part;

const PAGE_BYTES: [u64; 8] = [512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// Requests one by one are fewer: each waits for the drive.
const ALONE_DIVISOR: u64 = 50;

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pages: Vec<Page>,
}

#[derive(Debug, Serialize)]
struct Page {
    page_bytes: u64,
    /// One request at a time.
    alone: Reached,
    /// As many as saturate the drive.
    loaded: Reached,
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    let options = study.options;
    let drive = Drives::of(study, 1, StartState::Filled)?;
    let align = u64::from(drive.device().geometry().offset_align_bytes);
    let mut pages = Vec::new();
    for page_bytes in PAGE_BYTES.into_iter().filter(|bytes| bytes.is_multiple_of(align)) {
        study.note(&format!("pages of {}", unit::bytes(page_bytes as f64)));
        let measure = |in_flight: u32, requests| {
            let reads = Workload::random(Access::Read, page_bytes as f64, f64::from(in_flight));
            drive.measure(options, reads, requests, study.interrupt)
        };
        let alone = measure(1, options.requests / ALONE_DIVISOR)?;
        let loaded = measure(options.in_flight_each(), options.requests / 4)?;
        pages.push(Page { page_bytes, alone, loaded });
    }
    Ok(Found { pages })
}

impl Found {
    /// The paper's numbers and ours.
    pub fn numbers(found: Option<&Self>) -> Vec<Comparison> {
        let number = |(bytes, papers): &(u64, f64)| {
            let ours = found.and_then(|found| {
                let page = found.pages.iter().find(|page| page.page_bytes == *bytes)?;
                Some(page.loaded.bytes_per_s)
            });
            let name = format!("bandwidth of random reads, pages of {} KiB", bytes >> 10);
            Comparison::new("Figure 3", name, Measure::Rate, *papers, ours)
        };
        paper::PAGE_BANDWIDTHS.iter().map(number).collect()
    }

    /// The page size that is best by a number, the larger the better.
    fn best(&self, by: fn(&Page) -> f64) -> u64 {
        let best = self.pages.iter().max_by(|one, other| by(one).total_cmp(&by(other)));
        best.map_or(0, |page| page.page_bytes)
    }

    pub fn part(&self) -> Part {
        let most = self.best(|page| page.loaded.requests_per_s);
        let quickest = self.best(|page| -page.alone.latency.p50_us);
        let of_best = |bytes: u64| unit::bytes(bytes as f64);
        let text = format!(
            "Most requests a second: pages of {}; shortest latency: {}. In the paper {} for both.",
            of_best(most),
            of_best(quickest),
            of_best(paper::BEST_PAGE_BYTES)
        );
        Part {
            id: "page-size",
            title: "Page sizes, one drive (Figure 3)".into(),
            text: vec![text],
            tables: vec![("Random reads; the paper's figures in brackets".into(), self.table())],
            figures: vec![self.figure()],
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("page", Kind::Number),
            ("reads/s", Kind::Number),
            ("bandwidth", Kind::Number),
            ("p50, one request", Kind::Number),
            ("p50, loaded", Kind::Number),
        ]);
        for Page { page_bytes, alone, loaded } in &self.pages {
            let papers = paper::PAGE_BANDWIDTHS.iter().find(|(bytes, _)| bytes == page_bytes);
            table.push(
                [
                    unit::bytes(*page_bytes as f64),
                    rate(loaded.requests_per_s),
                    beside(loaded.bytes_per_s, papers.map(|(_, rate)| *rate), unit::rate),
                    unit::micros(alone.latency.p50_us),
                    unit::micros(loaded.latency.p50_us),
                ]
                .map(Cell::from),
            );
        }
        table
    }

    fn figure(&self) -> Figure {
        let x = Quantity { title: "page", unit: Unit::Bytes, growth: Growth::Log2 };
        let draw = |name: &str, y: Quantity, of: fn(&Page) -> f64| {
            let points = self.pages.iter().map(|page| (page.page_bytes as f64, of(page))).collect();
            let curve = Curve { number: 0, label: "random reads".into(), is_paper: false, points };
            (panel("Page sizes", name, x, y, std::slice::from_ref(&curve)), curve)
        };
        let linear = |unit| Quantity { title: "", unit, growth: Growth::Linear };
        let (reads, curve) = draw("Reads a second", linear(Unit::Count), |page| page.loaded.requests_per_s);
        let (bandwidth, _) = draw("Bandwidth", linear(Unit::Rate), |page| page.loaded.bytes_per_s);
        let (latency, _) =
            draw("p50, one request", linear(Unit::Seconds), |page| page.alone.latency.p50_us * 1e-6);
        Figure {
            id: "page-size-panels".into(),
            title: "Over page sizes".into(),
            caption: "One drive.".into(),
            legend: legend(&[curve]),
            panels: vec![reads, bandwidth, latency],
        }
    }
}
