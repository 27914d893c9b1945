//! Random reads by interfaces and threads, and the cycles that a request has: sections 2.4 and 2.5, Figures 5
//! and 6.

use flashgrain_model::{Access, Workload};
use flashgrain_profile::Error;
use flashgrain_profile::load::{self, IoModel, Load, SimulatedThreads, Stop, run_simulated};
use flashgrain_report::page::{Cell, Figure, Growth, Kind, Table, Unit};
use flashgrain_report::unit;
use flashgrain_ssdsim::config::StartState;
use serde::Serialize;

use super::interface::Interface;
use super::raw::{Drives, Reached, load_in};
use super::shown::{beside, rate};
use super::{PAGE_BYTES, Study, paper};
use crate::measure::processor_hz;
use crate::study::chart::{Curve, Quantity, legend, panel};
use crate::study::comparison::{Comparison, Measure};
use crate::study::sheet::Part;

const THREADS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Requests in flight of each thread on a directory.
const IN_FLIGHT_EACH: u32 = 64;

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    points: Vec<Point>,
    /// Of the processor: the paper's for simulated drives, else this machine's as far as it is known.
    processor_hz: Option<f64>,
    is_simulated: bool,
    /// Interfaces that are not available here, and why.
    missing: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Point {
    interface: Interface,
    threads: u32,
    requests_per_s: f64,
    /// Processor time of a request.
    request_us: f64,
    /// Share of the threads' time that they worked.
    thread_use: Option<f64>,
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    match study.options.simulated()? {
        Some(config) => simulated(study, config.drives),
        None => measured(study),
    }
}

fn simulated(study: &Study<'_>, drives: u32) -> anyhow::Result<Found> {
    let options = study.options;
    let set = Drives::of(study, drives, StartState::Filled)?;
    let mut points = Vec::new();
    for interface in Interface::ALL {
        study.note(&format!("threads with {}", interface.name()));
        for threads in THREADS {
            let in_flight = if interface.blocks() { threads } else { options.in_flight };
            let reads = Workload::random(Access::Read, PAGE_BYTES, f64::from(in_flight));
            let requests = if interface.blocks() { options.requests / 10 } else { options.requests };
            let load = set.load(options, reads, requests);
            let request_ns = options.interfaces.of(interface);
            let setting =
                SimulatedThreads { threads, model: IoModel::AllToAll, work_ns: 0, request_ns, message_ns: 0 };
            let run = run_simulated(set.device(), &load, setting, study.interrupt)?;
            points.push(Point {
                interface,
                threads,
                requests_per_s: run.iops(),
                request_us: request_ns as f64 * 1e-3,
                thread_use: Some(run.use_of(threads)),
            });
        }
    }
    Ok(Found { points, processor_hz: Some(paper::HZ), is_simulated: true, missing: Vec::new() })
}

fn measured(study: &Study<'_>) -> anyhow::Result<Found> {
    let options = study.options;
    let file = study.file()?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let (mut points, mut missing) = (Vec::new(), Vec::new());
    for interface in Interface::ALL {
        if let Some(why) = interface.why_not_on(file.device().identity()) {
            missing.push(why);
            continue;
        }
        let Some(backend) = interface.backend() else { continue };
        study.note(&format!("threads with {}", interface.name()));
        let device = file.with_backend(backend)?;
        let most = if interface.blocks() { cores * IN_FLIGHT_EACH } else { cores };
        for threads in THREADS.into_iter().filter(|threads| *threads <= most) {
            let in_flight = if interface.blocks() { threads } else { threads * IN_FLIGHT_EACH };
            let reads = Workload::random(Access::Read, PAGE_BYTES, f64::from(in_flight));
            let stop = Stop { after_s: Some(options.seconds), ..Stop::default() };
            let polled = interface.polls();
            let load = Load { workers: threads, polled, ..load_in(options, file.region(), stop, reads) };
            let measured = load::run(&device, &load, study.interrupt)?;
            if measured.interrupted {
                return Err(Error::Interrupted.into());
            }
            let reached = Reached::of(&load, &measured);
            let request_us = measured.cpu_us_per_request();
            let requests_per_s = reached.requests_per_s;
            let thread_use = Some(requests_per_s * request_us * 1e-6 / f64::from(threads));
            points.push(Point { interface, threads, requests_per_s, request_us, thread_use });
        }
    }
    Ok(Found { points, processor_hz: processor_hz(), is_simulated: false, missing })
}

impl Found {
    /// The paper's numbers and ours.
    pub fn numbers(found: Option<&Self>) -> Vec<Comparison> {
        let number = |(interface, threads, papers): (Interface, u32, f64)| {
            let found = found.filter(|found| found.is_simulated);
            let point = found.and_then(|found| found.of(interface).find(|point| point.threads == threads));
            let name = format!("random reads/s, {}, threads: {threads}", interface.name());
            let ours = point.map(|point| point.requests_per_s);
            let number = Comparison::new("Figure 6", name, Measure::Count, papers, ours);
            match threads {
                1 => number.apart("the time of a simulated request is taken from it"),
                _ => number,
            }
        };
        paper::INTERFACES.map(number).to_vec()
    }

    fn interfaces(&self) -> impl Iterator<Item = Interface> {
        Interface::ALL.into_iter().filter(|interface| self.of(*interface).next().is_some())
    }

    fn of(&self, interface: Interface) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| point.interface == interface)
    }

    fn paper(&self, interface: Interface, threads: u32) -> Option<f64> {
        let is_it = |(of, by, _): &&(Interface, u32, f64)| (*of, *by) == (interface, threads);
        let found = paper::INTERFACES.iter().find(is_it).filter(|_| self.is_simulated);
        found.map(|(_, _, rate)| *rate)
    }

    /// Fewest threads that reach nearly the most that any interface does.
    fn saturating(&self, interface: Interface) -> Option<u32> {
        const NEARLY: f64 = 0.97;
        self.of(interface)
            .find(|point| point.requests_per_s >= NEARLY * self.most())
            .map(|point| point.threads)
    }

    /// Requests per second of the fastest.
    fn most(&self) -> f64 {
        self.points.iter().map(|point| point.requests_per_s).fold(0.0, f64::max)
    }

    fn text(&self) -> Vec<String> {
        if !self.is_simulated {
            let missing = format!("Not measured: {}.", self.missing.join("; "));
            return vec!["Processor time of the threads is the kernel's own account; the paper's rates are of eight drives and 64 processors.".into(), missing];
        }
        let threads = |interface: Interface| {
            let found = self.saturating(interface);
            let threads = found.map_or_else(|| "more than 64".into(), |threads| threads.to_string());
            format!("{} {threads}", interface.name())
        };
        let all: Vec<String> = self.interfaces().map(threads).collect();
        vec![
            format!("Threads, of 1, 2, 4 to 64, that reach 97 % of the most: {}. In the paper kernel bypass takes {}, io_uring polled about 16; libaio and io_uring with interrupts never do.", all.join(", "), paper::BYPASS_THREADS),
            format!("{} processors of {} GHz have {} cycles for each of the {} requests that the drives make here ({} in the paper, for 12 M; the kernel's interfaces leave {}).", paper::CORES, paper::HZ * 1e-9, unit::count((paper::CORES * paper::HZ / self.most()).round()), unit::count(self.most().round()), unit::count(paper::BUDGET_CYCLES), unit::count(paper::LEFT_CYCLES)),
            "The processor time of a request is a parameter (--interface-costs), by default from the rates of one thread in the paper, so that one thread agrees by construction. Threads here do not get into each other's way: the paper's interrupts end at 10 M a second with 32 threads, where these costs allow 12.5 M with 20.".into(),
        ]
    }

    pub fn part(&self) -> Part {
        let mut tables = vec![(
            "Random reads of 4 KiB a second by threads; the paper's figures in brackets".into(),
            self.table(),
        )];
        tables.push(("Cycles of a processor for each request".into(), self.budget()));
        Part {
            id: "interfaces",
            title: "Interfaces, threads and the budget of cycles (Figures 5 and 6)".into(),
            text: self.text(),
            tables,
            figures: vec![self.figure()],
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("interface", Kind::Label),
            ("threads", Kind::Number),
            ("reads/s", Kind::Number),
            ("threads busy", Kind::Number),
        ]);
        for point in &self.points {
            let papers = self.paper(point.interface, point.threads);
            table.push(
                [
                    point.interface.name().to_owned(),
                    point.threads.to_string(),
                    beside(point.requests_per_s, papers, rate),
                    point.thread_use.map_or_else(|| "–".into(), unit::share),
                ]
                .map(Cell::from),
            );
        }
        table
    }

    /// Cycles by interface, and those that the paper's machine has left of its budget.
    fn budget(&self) -> Table {
        let mut table = Table::new(&[
            ("interface", Kind::Label),
            ("time of a request", Kind::Number),
            ("cycles", Kind::Number),
            ("left of the paper's 13 k cycles", Kind::Number),
        ]);
        let cycles = |us: f64| self.processor_hz.map(|hz| us * 1e-6 * hz);
        let shown =
            |cycles: Option<f64>| cycles.map_or_else(|| "–".into(), |cycles| unit::count(cycles.round()));
        for interface in self.interfaces() {
            let Some(last) = self.of(interface).last() else { continue };
            let taken = cycles(last.request_us);
            let left = taken.map(|taken| paper::BUDGET_CYCLES - taken);
            table.push(
                [interface.name().to_owned(), unit::micros(last.request_us), shown(taken), shown(left)]
                    .map(Cell::from),
            );
        }
        let papers = paper::BUDGET_CYCLES - paper::LEFT_CYCLES;
        let in_paper = [
            "the paper's kernel interfaces".to_owned(),
            unit::micros(papers / paper::HZ * 1e6),
            unit::count(papers),
            unit::count(paper::LEFT_CYCLES),
        ];
        table.push(in_paper.map(Cell::from));
        table
    }

    fn figure(&self) -> Figure {
        let mut curves = Vec::new();
        for (number, interface) in self.interfaces().enumerate() {
            let curve = |is_paper, points| Curve { number, label: interface.name().into(), is_paper, points };
            let papers =
                |point: &Point| Some((f64::from(point.threads), self.paper(interface, point.threads)?));
            curves.push(curve(true, self.of(interface).filter_map(papers).collect()));
            let ours = |point: &Point| (f64::from(point.threads), point.requests_per_s);
            curves.push(curve(false, self.of(interface).map(ours).collect()));
        }
        let x = Quantity { title: "threads", unit: Unit::Count, growth: Growth::Log2 };
        let y = Quantity { title: "", unit: Unit::Count, growth: Growth::Linear };
        let title = "Reads a second over threads";
        Figure {
            id: "interfaces-rates".into(),
            title: title.into(),
            caption: "Dashed: between the paper's figures, where its text has them.".into(),
            legend: legend(&curves),
            panels: vec![panel(title, "Reads a second", x, y, &curves)],
        }
    }
}
