//! Processor time by component: section 4.6, Figure 16.

use flashgrain_model::Access;
use flashgrain_profile::load::Stop;
use flashgrain_report::page::{Cell, Figure, Growth, Kind, Table, Unit};
use flashgrain_report::unit;
use serde::Serialize;

use super::engine::{Engine, Work};
use super::interface::Interface;
use super::{PAGE_BYTES, Study, paper};
use crate::measure::{RawDrive, RawRequests};
use crate::study::chart::{Curve, Quantity, legend, panel};
use crate::study::sheet::Part;
use crate::study::subject::Measured;

/// Data in memory.
const IN_MEMORY: f64 = 0.3;

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    bars: Vec<Components>,
    workers: u32,
    is_simulated: bool,
}

/// Processor time of an operation, in microseconds.
#[derive(Debug, Serialize)]
struct Components {
    /// None where the data are in memory.
    interface: Option<Interface>,
    /// Share of the workers' time that they worked.
    worker_use: f64,
    total_us: f64,
    /// An operation with everything in memory.
    operation_us: f64,
    /// Requests to drives.
    requests_us: f64,
    /// The rest: faults, frames, eviction, writing pages, and switches of tasks.
    waits_us: f64,
}

impl Components {
    fn new(
        interface: Option<Interface>,
        measured: &Measured,
        workers: u32,
        [operation_us, request_us]: [f64; 2],
    ) -> Self {
        let total_us = measured.cpu_us_each;
        let requests_us = request_us * (measured.reads_each + measured.writes_each);
        Self {
            interface,
            worker_use: measured.per_s * total_us * 1e-6 / f64::from(workers),
            total_us,
            operation_us,
            requests_us,
            waits_us: (total_us - operation_us - requests_us).max(0.0),
        }
    }

    fn shares(&self) -> [f64; 3] {
        [self.operation_us, self.requests_us, self.waits_us].map(|us| us / self.total_us)
    }

    fn name(&self) -> &'static str {
        self.interface.map_or("in memory", Interface::name)
    }
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    let options = study.options;
    let is_simulated = options.simulated()?.is_some();
    let mut usual = Engine::usual(options);
    if !is_simulated {
        usual.interface = Interface::best_here();
    }
    study.note("store with its data in memory");
    let memory = Engine { data_factor: IN_MEMORY, ..usual.clone() };
    let in_memory = memory.with(study, |subject| memory.run(study, subject, Work::Mixed))?;
    let operation_us = match is_simulated {
        true => (options.costs.look_up_ns + options.costs.write_ns) as f64 / 2.0 * 1e-3,
        false => in_memory.cpu_us_each,
    };
    let mut bars = vec![Components::new(None, &in_memory, usual.workers, [operation_us, 0.0])];
    study.note("store with data of ten times the memory");
    let others = usual.with(study, |subject| {
        let mut others = Vec::new();
        let raw_us = if is_simulated { None } else { Some(request_us(study, subject, &usual)?) };
        let is_asked = |interface: &Interface| match is_simulated {
            true => !interface.blocks(),
            false => *interface == usual.interface,
        };
        for interface in Interface::ALL.into_iter().filter(is_asked) {
            let engine = Engine { interface, ..usual.clone() };
            subject.set_costs(engine.costs(options));
            let measured = engine.run(study, subject, Work::Mixed)?;
            let request_us = raw_us.unwrap_or(options.interfaces.of(interface) as f64 * 1e-3);
            let costs = [operation_us, request_us];
            others.push(Components::new(Some(interface), &measured, usual.workers, costs));
        }
        Ok(others)
    })?;
    bars.extend(others);
    Ok(Found { bars, workers: usual.workers, is_simulated })
}

/// Processor time of a read of the store's drive without the store.
fn request_us(study: &Study<'_>, subject: &crate::study::Subject, engine: &Engine) -> anyhow::Result<f64> {
    let (device, region) = subject.raw()?;
    let mut drive = RawDrive::new(&*device, engine.workers, study.options.seed, study.interrupt);
    let requests = RawRequests::random(Access::Read, PAGE_BYTES, engine.clients);
    let stop = Stop { after_s: Some(study.options.seconds), ..Stop::default() };
    Ok(drive.measure_to_end(requests, region, stop)?.cpu_us_per_request())
}

impl Found {
    fn text(&self) -> Vec<String> {
        let how = if self.is_simulated {
            "Operations and requests take the times of the parameters, multiplied by their number by the store's counters; the rest of the workers' time is waits: faults, frames, eviction, pages that are written, switches of tasks."
        } else {
            "An operation takes its time with the data in memory, a request the time of a read of the same drive without the store; the rest is waits: faults, frames, eviction, pages that are written, switches of tasks."
        };
        let shares = |range: [f64; 2]| format!("{} to {}", unit::share(range[0]), unit::share(range[1]));
        vec![
            format!("Half of updates of random records, {} workers. {how}", self.workers),
            format!(
                "In the paper's TPC-C, requests take {} of the processors through the kernel and {} with SPDK, eviction {} and {}; the rest is the transactions, which are larger than our operations, so that only the order of the interfaces compares.",
                shares(paper::SUBMISSION_KERNEL),
                unit::share(paper::SUBMISSION_BYPASS),
                unit::share(paper::EVICTION_KERNEL),
                unit::share(paper::EVICTION_BYPASS)
            ),
            "The store counts eviction with the waits: they cannot be told apart here.".into(),
        ]
    }

    pub fn part(&self) -> Part {
        Part {
            id: "processor",
            title: "Processor time by component (Figure 16)".into(),
            text: self.text(),
            tables: vec![(
                "Of an operation; in brackets the paper's share of submission".into(),
                self.table(),
            )],
            figures: vec![self.figure()],
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("store", Kind::Label),
            ("processor each", Kind::Number),
            ("operations", Kind::Number),
            ("requests", Kind::Number),
            ("waits", Kind::Number),
            ("workers busy", Kind::Number),
        ]);
        for bar in &self.bars {
            let [operations, requests, waits] = bar.shares().map(unit::share);
            let papers = match bar.interface {
                Some(Interface::Bypass) => format!(" ({})", unit::share(paper::SUBMISSION_BYPASS)),
                Some(_) => {
                    let [from, to] = paper::SUBMISSION_KERNEL.map(unit::share);
                    format!(" ({from} to {to})")
                }
                None => String::new(),
            };
            table.push(
                [
                    bar.name().to_owned(),
                    unit::micros(bar.total_us),
                    operations,
                    requests + &papers,
                    waits,
                    unit::share(bar.worker_use),
                ]
                .map(Cell::from),
            );
        }
        table
    }

    fn figure(&self) -> Figure {
        const NAMES: [&str; 3] = ["operations", "requests", "waits"];
        let curve = |(number, name): (usize, &&str)| {
            let share = |bar: &Components| bar.shares().get(number).copied().unwrap_or(0.0);
            let points = (1_u32..).map(f64::from).zip(self.bars.iter().map(share)).collect();
            Curve { number, label: (*name).into(), is_paper: false, points }
        };
        let curves: Vec<Curve> = NAMES.iter().enumerate().map(curve).collect();
        let x = Quantity { title: "line of the table", unit: Unit::Count, growth: Growth::Linear };
        let y = Quantity { title: "", unit: Unit::Share, growth: Growth::Linear };
        let title = "Shares of processor time";
        Figure {
            id: "processor-shares".into(),
            title: title.into(),
            caption: "For each line of the table.".into(),
            legend: legend(&curves),
            panels: vec![panel(title, "Share of processor time", x, y, &curves)],
        }
    }
}
