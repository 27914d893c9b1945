//! Models of I/O, from threads to drives: section 3.4, Figures 10 and 11.

use flashgrain_model::{Access, Workload};
use flashgrain_profile::load::{IoModel, SimulatedThreads, run_simulated};
use flashgrain_report::page::{Cell, Figure, Growth, Kind, Table, Unit};
use flashgrain_report::unit;
use flashgrain_ssdsim::config::StartState;
use serde::Serialize;

use super::interface::Interface;
use super::raw::Drives;
use super::shown::rate;
use super::{PAGE_BYTES, Study, paper};
use crate::study::chart::{Curve, Quantity, legend, panel};
use crate::study::sheet::Part;

/// Requests are made so.
const INTERFACE: Interface = Interface::IoUring;

const THREADS: [u32; 4] = [8, 16, 32, 64];

/// Threads that do nothing but I/O.
const IO_THREADS: [u32; 3] = [1, 4, 8];

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    /// None if the target is a directory.
    points: Vec<Point>,
    request_ns: u64,
    work_ns: u64,
    message_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Model {
    AllToAll,
    /// Threads want only data on their own drives.
    AssignedAlone,
    Assigned,
    Dedicated(u32),
}

#[derive(Debug, Serialize)]
struct Point {
    model: Model,
    /// In all, those for I/O included.
    threads: u32,
    requests_per_s: f64,
    thread_use: f64,
}

impl Model {
    fn all() -> impl Iterator<Item = Self> {
        let dedicated = IO_THREADS.into_iter().map(Self::Dedicated);
        [Self::AllToAll, Self::AssignedAlone, Self::Assigned].into_iter().chain(dedicated)
    }

    fn name(self) -> String {
        match self {
            Self::AllToAll => "all to all".into(),
            Self::AssignedAlone => "a drive for each thread, alone".into(),
            Self::Assigned => "a drive for each thread, messages".into(),
            Self::Dedicated(threads) => format!("{} for I/O", unit::things(threads.into(), "thread")),
        }
    }

    fn load(self) -> IoModel {
        match self {
            Self::AllToAll => IoModel::AllToAll,
            Self::AssignedAlone => IoModel::AssignedAlone,
            Self::Assigned => IoModel::Assigned,
            Self::Dedicated(io_threads) => IoModel::Dedicated { io_threads },
        }
    }

    /// Fewest threads that it makes sense with.
    fn threads_min(self) -> u32 {
        match self {
            Self::Dedicated(io_threads) => io_threads + 1,
            _ => 1,
        }
    }
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    let options = study.options;
    let request_ns = options.interfaces.of(INTERFACE);
    let (work_ns, message_ns) = (options.costs.look_up_ns + options.costs.wait_ns, options.message_ns);
    let mut points = Vec::new();
    let Some(config) = options.simulated()? else {
        return Ok(Found { points, request_ns, work_ns, message_ns });
    };
    let set = Drives::of(study, config.drives, StartState::Filled)?;
    for model in Model::all() {
        study.note(&format!("I/O by {}", model.name()));
        for threads in THREADS.into_iter().filter(|threads| *threads >= model.threads_min()) {
            let reads = Workload::random(Access::Read, PAGE_BYTES, f64::from(options.in_flight));
            let load = set.load(options, reads, options.requests);
            let setting = SimulatedThreads { threads, model: model.load(), work_ns, request_ns, message_ns };
            let run = run_simulated(set.device(), &load, setting, study.interrupt)?;
            points.push(Point {
                model,
                threads,
                requests_per_s: run.iops(),
                thread_use: run.use_of(threads),
            });
        }
    }
    Ok(Found { points, request_ns, work_ns, message_ns })
}

impl Found {
    fn at(&self, model: Model, threads: u32) -> Option<&Point> {
        self.points.iter().find(|point| point.model == model && point.threads == threads)
    }

    fn text(&self) -> Vec<String> {
        if self.points.is_empty() {
            return vec![
                "The models differ with several drives: name a simulated set, such as sim:8xpm1733.".into(),
            ];
        }
        let mut text = vec![format!(
            "Each request is preceded by {} ns of work of its user, as much as a look-up that waits takes, and costs {} ns by {}; a message costs {} ns to send and as much to receive (--message-ns, an assumption: some misses of the processor's caches).",
            self.work_ns,
            self.request_ns,
            INTERFACE.name(),
            self.message_ns
        )];
        let ratio = |model, threads| {
            let all = self.at(Model::AllToAll, threads)?;
            Some(self.at(model, threads)?.requests_per_s / all.requests_per_s)
        };
        if let (Some(alone), Some(messages)) = (ratio(Model::AssignedAlone, 16), ratio(Model::Assigned, 16)) {
            text.push(format!(
                "With 16 threads that have a drive each, and want nothing of others, there are {alone:.2} times as many reads as all to all; with messages {messages:.2} times. In the paper both make about as many (Figure 11, without messages), which is why LeanStore has none."
            ));
        }
        if let Some(one) = self.at(Model::Dedicated(1), 64) {
            text.push(format!(
                "One thread that does all I/O makes {} reads a second, messages included; in the paper {} with libaio or io_uring, {} polled.",
                rate(one.requests_per_s),
                rate(paper::ONE_THREAD_READS_PER_S),
                rate(paper::ONE_THREAD_POLLED_READS_PER_S)
            ));
        }
        text.push("Not simulated: the processor time that batches of requests, fewer polls and warm caches save a thread with one drive.".into());
        text
    }

    pub fn part(&self) -> Part {
        let (tables, figures) = match self.points.is_empty() {
            true => (Vec::new(), Vec::new()),
            false => (
                vec![("Random reads of 4 KiB a second, by threads in all".into(), self.table())],
                vec![self.figure()],
            ),
        };
        Part {
            id: "io-models",
            title: "Models of I/O (Figures 10 and 11)".into(),
            text: self.text(),
            tables,
            figures,
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("model", Kind::Label),
            ("threads", Kind::Number),
            ("reads/s", Kind::Number),
            ("of all to all", Kind::Number),
            ("threads busy", Kind::Number),
        ]);
        for point in &self.points {
            let all = self.at(Model::AllToAll, point.threads);
            let ratio = all.map_or_else(
                || "–".into(),
                |all| format!("{:.2}", point.requests_per_s / all.requests_per_s),
            );
            table.push(
                [
                    point.model.name(),
                    point.threads.to_string(),
                    rate(point.requests_per_s),
                    ratio,
                    unit::share(point.thread_use),
                ]
                .map(Cell::from),
            );
        }
        table
    }

    fn figure(&self) -> Figure {
        let curve = |(number, model): (usize, Model)| {
            let of = self.points.iter().filter(|point| point.model == model);
            let points = of.map(|point| (f64::from(point.threads), point.requests_per_s)).collect();
            Curve { number, label: model.name(), is_paper: false, points }
        };
        let curves: Vec<Curve> = Model::all().enumerate().map(curve).collect();
        let x = Quantity { title: "threads", unit: Unit::Count, growth: Growth::Log2 };
        let y = Quantity { title: "", unit: Unit::Count, growth: Growth::Linear };
        let title = "Reads a second by the model of I/O";
        Figure {
            id: "io-models-rates".into(),
            title: title.into(),
            caption: "Over threads in all.".into(),
            legend: legend(&curves),
            panels: vec![panel(title, "Reads a second", x, y, &curves)],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use flashgrain_device::Device as _;
    use flashgrain_profile::load::{Load, Pattern, Region, Stop, Sync};
    use flashgrain_ssdsim::{SimConfig, SimDevice};

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    /// Reads per second, and the share of the threads' time in which they worked.
    fn run(setting: SimulatedThreads, in_flight: u32) -> (f64, f64) {
        let config = SimConfig { drives: 4, ..SimConfig::named("sim:pm1733").unwrap() };
        let device = SimDevice::new(&config, "sim:4xpm1733", 1).unwrap();
        let load = Load {
            workload: Workload::random(Access::Read, PAGE_BYTES, f64::from(in_flight)),
            pattern: Pattern::Mixed { align_bytes: None },
            region: Region { offset_bytes: 0, length_bytes: device.capacity_bytes() },
            workers: 1,
            sync: Sync::None,
            rate_per_s: None,
            polled: false,
            warmup_share: 0.5,
            stop: Stop { after_requests: Some(20_000), ..Stop::default() },
            seed: 1,
        };
        let run = run_simulated(&device, &load, setting, &NEVER).unwrap();
        (run.iops(), run.use_of(setting.threads))
    }

    fn assert_near(found: f64, expected: f64, what: &str) {
        assert!((found / expected - 1.0).abs() < 0.03, "{what}: {found} instead of {expected}");
    }

    const SETTING: SimulatedThreads = SimulatedThreads {
        threads: 2,
        model: IoModel::AllToAll,
        work_ns: 1000,
        request_ns: 1500,
        message_ns: 250,
    };

    #[test]
    fn threads_that_are_the_limit_make_what_their_time_allows() {
        let (all, busy) = run(SETTING, 1000);
        assert_near(all, 2e9 / 2500.0, "all to all");
        assert_near(busy, 1.0, "busy");
        let (alone, _) = run(SimulatedThreads { model: IoModel::AssignedAlone, ..SETTING }, 1000);
        assert_near(alone, all, "alone");
        // Half of the requests are the other thread's: two messages, each sent and received.
        let (messages, _) = run(SimulatedThreads { model: IoModel::Assigned, ..SETTING }, 1000);
        assert_near(messages, 2e9 / (2500.0 + 0.5 * 4.0 * 250.0), "messages");
    }

    #[test]
    fn a_thread_that_makes_all_requests_is_the_limit_of_many() {
        let model = IoModel::Dedicated { io_threads: 1 };
        let (found, busy) = run(SimulatedThreads { threads: 9, model, ..SETTING }, 1000);
        // It receives a message, makes the request, and sends another.
        assert_near(found, 1e9 / (1500.0 + 2.0 * 250.0), "one for I/O");
        assert!(busy < 0.6, "{busy}");
        let model = IoModel::Dedicated { io_threads: 2 };
        let (two, _) = run(SimulatedThreads { threads: 9, model, ..SETTING }, 1000);
        assert_near(two, 2.0 * found, "two for I/O");
    }

    #[test]
    fn drives_are_the_limit_of_threads_that_take_no_time() {
        let free = SimulatedThreads { work_ns: 0, request_ns: 0, message_ns: 0, ..SETTING };
        let (found, busy) = run(free, 3000);
        assert_near(found, 4.0 * paper::DRIVE_READS_PER_S, "four drives");
        assert!(busy < 1e-9, "{busy}");
        // One request at a time of each of two threads takes the drive's latency.
        let (blocking, _) = run(SETTING, 2);
        assert!(blocking < 2.0 / 80e-6, "{blocking}");
    }

    #[test]
    fn more_threads_than_drives_share_them() {
        let setting = SimulatedThreads { threads: 6, ..SETTING };
        for model in [IoModel::Assigned, IoModel::AssignedAlone] {
            let (found, _) = run(SimulatedThreads { model, ..setting }, 600);
            assert!(found > 1e6, "{model:?}: {found}");
        }
        let none = SimulatedThreads { threads: 1, model: IoModel::Dedicated { io_threads: 1 }, ..SETTING };
        let config = SimConfig::named("sim:pm1733").unwrap();
        let device = SimDevice::new(&config, "sim:pm1733", 1).unwrap();
        let load = Load {
            workload: Workload::random(Access::Read, PAGE_BYTES, 1.0),
            pattern: Pattern::Mixed { align_bytes: None },
            region: Region { offset_bytes: 0, length_bytes: 1 << 20 },
            workers: 1,
            sync: Sync::None,
            rate_per_s: None,
            polled: false,
            warmup_share: 0.0,
            stop: Stop { after_requests: Some(1), ..Stop::default() },
            seed: 1,
        };
        assert!(run_simulated(&device, &load, none, &NEVER).is_err());
    }
}
