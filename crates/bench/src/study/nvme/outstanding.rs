//! Random reads over requests in flight: section 2.3, Figure 4.

use flashgrain_model::{Access, Workload};
use flashgrain_report::page::{Cell, Figure, Growth, Kind, Table, Unit};
use flashgrain_report::unit;
use flashgrain_ssdsim::config::StartState;
use serde::Serialize;

use super::raw::{Drives, Reached};
use super::shown::{beside, rate};
use super::{PAGE_BYTES, Study, paper};
use crate::study::chart::{Curve, Quantity, legend, panel};
use crate::study::comparison::{Comparison, Measure};
use crate::study::sheet::Part;

const IN_FLIGHT: [u32; 9] = [1, 8, 64, 256, 500, 1000, 2000, 3000, 6000];

/// On a directory the kernel's queue is the limit beyond.
const IN_FLIGHT_FILE_MAX: u32 = 1000;

/// Every request in flight is made some times.
const ROUNDS: u64 = 16;

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    drives: u32,
    depths: Vec<Reached>,
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    let options = study.options;
    let drives = options.simulated()?.map_or(1, |config| config.drives);
    let set = Drives::of(study, drives, StartState::Filled)?;
    let is_file = matches!(set, Drives::File(_));
    let mut depths = Vec::new();
    for in_flight in IN_FLIGHT.into_iter().filter(|depth| !is_file || *depth <= IN_FLIGHT_FILE_MAX) {
        study.note(&format!("{in_flight} in flight"));
        let reads = Workload::random(Access::Read, PAGE_BYTES, f64::from(in_flight));
        let requests = (options.requests / 2).min(ROUNDS * u64::from(in_flight) + options.requests / 20);
        depths.push(set.measure(options, reads, requests, study.interrupt)?);
    }
    Ok(Found { drives, depths })
}

impl Found {
    /// The paper's numbers and ours.
    pub fn numbers(found: Option<&Self>) -> Vec<Comparison> {
        let number = |(in_flight, papers): (u32, f64)| {
            let ours = found.and_then(|found| {
                let one = found.depths.iter().find(|reached| reached.in_flight == in_flight)?;
                Some(one.requests_per_s)
            });
            let name = format!("random reads/s, in flight: {in_flight}");
            Comparison::new("Figure 4", name, Measure::Count, papers, ours)
        };
        paper::OUTSTANDING.map(number).to_vec()
    }

    fn paper(&self, in_flight: u32) -> Option<f64> {
        let is_it = |(of, _): &&(u32, f64)| *of == in_flight && (in_flight == 1 || self.drives == 8);
        paper::OUTSTANDING.iter().find(is_it).map(|(_, rate)| *rate)
    }

    fn most(&self) -> f64 {
        self.depths.iter().map(|reached| reached.requests_per_s).fold(0.0, f64::max)
    }

    fn text(&self) -> Vec<String> {
        let share = |in_flight: u32| {
            let found = self.depths.iter().find(|reached| reached.in_flight == in_flight)?;
            Some(unit::share(found.requests_per_s / self.most()))
        };
        let (Some(decent), Some(most)) = (share(paper::DECENT_IN_FLIGHT), share(paper::SATURATING_IN_FLIGHT))
        else {
            return vec![format!(
                "The paper's {} and {} requests in flight are for eight drives.",
                paper::DECENT_IN_FLIGHT,
                paper::SATURATING_IN_FLIGHT
            )];
        };
        vec![format!(
            "{} in flight reach {decent} of the most that was measured, {} reach {most}; in the paper about {} are needed for a decent rate, and {} saturate eight drives.",
            paper::DECENT_IN_FLIGHT,
            paper::SATURATING_IN_FLIGHT,
            paper::DECENT_IN_FLIGHT,
            paper::SATURATING_IN_FLIGHT
        )]
    }

    pub fn part(&self) -> Part {
        Part {
            id: "outstanding",
            title: "Requests in flight (Figure 4)".into(),
            text: self.text(),
            tables: vec![("Random reads of 4 KiB; the paper's figures in brackets".into(), self.table())],
            figures: vec![self.figure()],
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("in flight", Kind::Number),
            ("reads/s", Kind::Number),
            ("of the most", Kind::Number),
            ("p50", Kind::Number),
            ("p99", Kind::Number),
        ]);
        for reached in &self.depths {
            table.push(
                [
                    reached.in_flight.to_string(),
                    beside(reached.requests_per_s, self.paper(reached.in_flight), rate),
                    unit::share(reached.requests_per_s / self.most()),
                    unit::micros(reached.latency.p50_us),
                    unit::micros(reached.latency.p99_us),
                ]
                .map(Cell::from),
            );
        }
        table
    }

    fn figure(&self) -> Figure {
        let curve = |is_paper, points| Curve { number: 0, label: "random reads".into(), is_paper, points };
        let ours = |reached: &Reached| (f64::from(reached.in_flight), reached.requests_per_s);
        let papers = |reached: &Reached| Some((f64::from(reached.in_flight), self.paper(reached.in_flight)?));
        let curves = [
            curve(true, self.depths.iter().filter_map(papers).collect()),
            curve(false, self.depths.iter().map(ours).collect()),
        ];
        let x = Quantity { title: "in flight", unit: Unit::Count, growth: Growth::Log2 };
        let y = Quantity { title: "", unit: Unit::Count, growth: Growth::Linear };
        let title = "Reads a second over requests in flight";
        Figure {
            id: "outstanding-rates".into(),
            title: title.into(),
            caption: "Dashed: between the paper's figures, where its text has them.".into(),
            legend: legend(&curves),
            panels: vec![panel(title, "Reads a second", x, y, &curves)],
        }
    }
}
