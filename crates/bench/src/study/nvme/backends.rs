//! Interfaces in the store, with few workers and with many: section 4.5, Figure 15.

use flashgrain_report::page::{Cell, Figure, Growth, Kind, Table, Unit};
use flashgrain_report::unit;
use serde::Serialize;

use super::Study;
use super::engine::{Engine, Work};
use super::interface::Interface;
use super::shown::rate;
use crate::study::chart::{Curve, Quantity, legend, panel};
use crate::study::sheet::Part;
use crate::study::subject::Measured;

const WORKERS: [u32; 4] = [4, 16, 32, 64];

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    points: Vec<Point>,
    is_simulated: bool,
    missing: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Point {
    interface: Interface,
    workers: u32,
    look_ups: Measured,
    mixed: Measured,
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    let is_simulated = study.options.simulated()?.is_some();
    let mut missing = Vec::new();
    let points = if is_simulated { simulated(study)? } else { measured(study, &mut missing)? };
    Ok(Found { points, is_simulated, missing })
}

/// One store for each number of workers: interfaces differ in processor time alone.
fn simulated(study: &Study<'_>) -> anyhow::Result<Vec<Point>> {
    let mut points = Vec::new();
    for workers in WORKERS {
        study.note(&format!("store with {workers} workers"));
        let usual = Engine { workers, ..Engine::usual(study.options) };
        let of_store = usual.with(study, |subject| {
            let mut of_store = Vec::new();
            for interface in Interface::ALL {
                let engine = Engine { interface, ..usual.clone() };
                subject.set_costs(engine.costs(study.options));
                let look_ups = engine.run(study, subject, Work::LookUps)?;
                let mixed = engine.run(study, subject, Work::Mixed)?;
                of_store.push(Point { interface, workers, look_ups, mixed });
            }
            Ok(of_store)
        })?;
        points.extend(of_store);
    }
    Ok(points)
}

fn measured(study: &Study<'_>, missing: &mut Vec<String>) -> anyhow::Result<Vec<Point>> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let mut points = Vec::new();
    let file = study.file()?;
    for interface in Interface::ALL {
        if let Some(why) = interface.why_not_on(file.device().identity()) {
            missing.push(why);
            continue;
        }
        for workers in [1, cores].into_iter().take(cores as usize) {
            study.note(&format!("store with {workers} workers, {}", interface.name()));
            let engine = Engine { interface, workers, ..Engine::usual(study.options) };
            let both = engine.both(study)?;
            points.push(Point { interface, workers, look_ups: both.look_ups, mixed: both.mixed });
        }
    }
    Ok(points)
}

impl Found {
    fn at(&self, interface: Interface, workers: u32) -> Option<&Point> {
        self.points.iter().find(|point| point.interface == interface && point.workers == workers)
    }

    /// How much faster one interface is than another, look-ups and the mix.
    fn faster(&self, one: Interface, other: Interface, workers: u32) -> Option<[f64; 2]> {
        let (one, other) = (self.at(one, workers)?, self.at(other, workers)?);
        Some([one.look_ups.per_s / other.look_ups.per_s - 1.0, one.mixed.per_s / other.mixed.per_s - 1.0])
    }

    fn text(&self) -> Vec<String> {
        if !self.is_simulated {
            let mut text = vec!["The store with each interface of the kernel on this drive; with pread each worker waits for each request.".to_owned()];
            text.extend(self.missing.iter().map(|why| format!("Not measured: {why}.")));
            return text;
        }
        let gain = |workers: u32| {
            let [look_ups, mixed] = self.faster(Interface::Bypass, Interface::Libaio, workers)?;
            Some(format!(
                "{} with {workers} workers ({} of the mix)",
                unit::share(look_ups),
                unit::share(mixed)
            ))
        };
        let gains: Vec<String> = WORKERS.into_iter().filter_map(gain).collect();
        let polled = self.faster(Interface::IoUringPolled, Interface::Libaio, WORKERS[0]);
        vec![
            format!(
                "Kernel bypass makes more look-ups than libaio by {}. In the paper by 60 to 80 %, by about 50 % with more processors, and less in TPC-C.",
                gains.join(", ")
            ),
            format!(
                "io_uring that polls makes {} more than libaio with {} workers, in the paper 5 to 8 %; without polling it is 2 % slower there, and equal here, as its costs are.",
                polled.map_or_else(|| "–".into(), |[look_ups, _]| unit::share(look_ups)),
                WORKERS[0]
            ),
            "Where two interfaces are equal, the drives are the limit, or requests under way are (--tasks)."
                .into(),
        ]
    }

    pub fn part(&self) -> Part {
        Part {
            id: "backends",
            title: "Interfaces in the store (Figure 15)".into(),
            text: self.text(),
            tables: vec![("Operations a second, data of ten times the memory".into(), self.table())],
            figures: vec![self.figure()],
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("workers", Kind::Number),
            ("interface", Kind::Label),
            ("look-ups/s", Kind::Number),
            ("of the fastest", Kind::Number),
            ("half updates/s", Kind::Number),
            ("of the fastest", Kind::Number),
            ("processor each look-up", Kind::Number),
        ]);
        for point in &self.points {
            let same = || self.points.iter().filter(|other| other.workers == point.workers);
            let most = |of: fn(&Point) -> f64| same().map(of).fold(0.0, f64::max);
            let of_most = |of: fn(&Point) -> f64| unit::share(of(point) / most(of));
            table.push(
                [
                    point.workers.to_string(),
                    point.interface.name().to_owned(),
                    rate(point.look_ups.per_s),
                    of_most(|point| point.look_ups.per_s),
                    rate(point.mixed.per_s),
                    of_most(|point| point.mixed.per_s),
                    unit::micros(point.look_ups.cpu_us_each),
                ]
                .map(Cell::from),
            );
        }
        table
    }

    fn figure(&self) -> Figure {
        let x = Quantity { title: "workers", unit: Unit::Count, growth: Growth::Log2 };
        let y = Quantity { title: "", unit: Unit::Count, growth: Growth::Linear };
        let curves = |of: fn(&Point) -> f64| -> Vec<Curve> {
            let curve = |(number, interface): (usize, Interface)| {
                let of_it = self.points.iter().filter(|point| point.interface == interface);
                let points = of_it.map(|point| (f64::from(point.workers), of(point))).collect();
                Curve { number, label: interface.name().into(), is_paper: false, points }
            };
            let all = Interface::ALL.into_iter().enumerate().map(curve);
            all.filter(|curve| !curve.points.is_empty()).collect()
        };
        let (look_ups, mixed) = (curves(|point| point.look_ups.per_s), curves(|point| point.mixed.per_s));
        let title = "Operations a second by interfaces";
        Figure {
            id: "backends-rates".into(),
            title: title.into(),
            caption: "Over workers.".into(),
            legend: legend(&look_ups),
            panels: vec![
                panel(title, "Look-ups a second", x, y, &look_ups),
                panel(title, "Half updates a second", x, y, &mixed),
            ],
        }
    }
}
