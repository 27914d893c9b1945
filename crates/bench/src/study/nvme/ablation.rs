//! The store with and without its techniques, switch by switch: section 4.3, Figure 13.

use flashgrain_report::page::{Cell, Figure, Growth, Kind, Table, Unit};
use flashgrain_report::unit;
use serde::Serialize;

use super::engine::{Both, Engine};
use super::interface::Interface;
use super::shown::{beside, rate};
use super::{Options, Study, paper};
use crate::study::chart::{Curve, Quantity, legend, panel};
use crate::study::comparison::{Comparison, Measure};
use crate::study::sheet::Part;

/// Nodes of the paper's first store.
const LARGE_NODE_BYTES: u32 = 16 << 10;

/// Most threads of the kernel, on a directory: each is a worker of the store.
const THREADS_MAX: u32 = 64;

/// Threads of the kernel instead of as many tasks.
fn threads(options: &Options) -> u32 {
    options.tasks.min(THREADS_MAX)
}

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    steps: Vec<Step>,
    workers: u32,
    tasks: u32,
    /// Threads of the kernel for as many operations, on a directory.
    threads: u32,
    is_simulated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Switch {
    /// Large nodes, and a thread for each operation.
    Baseline,
    SmallNodes,
    Tasks,
    KernelBypass,
    OneDrive,
    Blocking,
}

#[derive(Debug, Serialize)]
struct Step {
    switch: Switch,
    #[serde(flatten)]
    both: Both,
}

impl Switch {
    const ALL: [Self; 6] =
        [Self::Baseline, Self::SmallNodes, Self::Tasks, Self::KernelBypass, Self::OneDrive, Self::Blocking];

    fn name(self) -> &'static str {
        match self {
            Self::Baseline => "nodes of 16 KiB, threads, libaio",
            Self::SmallNodes => "+ nodes of 4 KiB",
            Self::Tasks => "+ tasks",
            Self::KernelBypass => "+ kernel bypass",
            Self::OneDrive => "− all drives but one",
            Self::Blocking => "pread: a worker waits for each request",
        }
    }

    /// Why a directory on one drive cannot show it, if it cannot.
    fn why_not_real(self) -> Option<&'static str> {
        match self {
            Self::KernelBypass => Some("kernel bypass, as a file system is above the drive of a directory"),
            Self::OneDrive => Some("several drives, as there is one"),
            Self::Baseline | Self::SmallNodes | Self::Tasks | Self::Blocking => None,
        }
    }

    /// On a directory threads are the kernel's, and wait for their requests.
    fn name_on(self, is_simulated: bool) -> &'static str {
        match self {
            Self::Baseline if !is_simulated => "nodes of 16 KiB, a thread for each operation, pread",
            Self::Tasks if !is_simulated => "+ tasks, and an interface that does not block",
            other => other.name(),
        }
    }

    fn engine(self, study: &Study<'_>, is_simulated: bool) -> Engine {
        if is_simulated { self.simulated_engine(study) } else { self.real_engine(study.options) }
    }

    fn simulated_engine(self, study: &Study<'_>) -> Engine {
        let usual = Engine::usual(study.options);
        let switch_ns = study.options.switch_ns;
        let tasks = Engine { interface: Interface::Libaio, ..usual.clone() };
        match self {
            Self::Baseline => Engine { node_bytes: LARGE_NODE_BYTES, switch_ns, ..tasks },
            Self::SmallNodes => Engine { switch_ns, ..tasks },
            Self::Tasks => tasks,
            Self::KernelBypass => usual,
            Self::OneDrive => Engine { drives: Some(1), ..usual },
            Self::Blocking => Engine { interface: Interface::Pread, ..usual },
        }
    }

    fn real_engine(self, options: &Options) -> Engine {
        let usual = Engine::usual(options);
        let blocking = Engine { interface: Interface::Pread, ..usual.clone() };
        let threads = Engine { workers: threads(options), ..blocking.clone() };
        match self {
            Self::Baseline => Engine { node_bytes: LARGE_NODE_BYTES, ..threads },
            Self::SmallNodes => threads,
            Self::Blocking => blocking,
            Self::Tasks | Self::KernelBypass | Self::OneDrive => {
                Engine { interface: Interface::best_here(), ..usual }
            }
        }
    }

    /// Look-ups per second in the paper.
    fn paper(self) -> Option<f64> {
        match self {
            Self::Baseline => Some(paper::LOOK_UPS_BASELINE),
            Self::Tasks => Some(paper::LOOK_UPS_TASKS),
            Self::KernelBypass => Some(paper::LOOK_UPS_BYPASS),
            Self::SmallNodes | Self::OneDrive | Self::Blocking => None,
        }
    }
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    let is_simulated = study.options.simulated()?.is_some();
    let mut steps = Vec::new();
    for switch in Switch::ALL.into_iter().filter(|switch| is_simulated || switch.why_not_real().is_none()) {
        study.note(&format!("store: {}", switch.name_on(is_simulated)));
        let both = switch.engine(study, is_simulated).both(study)?;
        steps.push(Step { switch, both });
    }
    let Options { workers, tasks, .. } = *study.options;
    Ok(Found { steps, workers, tasks, threads: threads(study.options), is_simulated })
}

impl Found {
    /// The paper's numbers and ours: gains, as the workers are fewer than its 64.
    pub fn numbers(found: Option<&Self>) -> Vec<Comparison> {
        let found = found.filter(|found| found.is_simulated);
        let gain = |of: fn(&Both) -> f64| {
            let (with, without) = found?.of(Switch::Tasks).zip(found?.of(Switch::SmallNodes))?;
            Some(of(with) / of(without))
        };
        let bypass = || {
            let (with, without) = found?.of(Switch::KernelBypass).zip(found?.of(Switch::Tasks))?;
            Some(with.look_ups.per_s / without.look_ups.per_s)
        };
        let number =
            |name: &str, papers, ours| Comparison::new("Figure 13", name, Measure::Ratio, papers, ours);
        let [look_ups, transactions] = paper::TASKS_GAINS;
        vec![
            number("look-ups, tasks over threads", look_ups, gain(|both| both.look_ups.per_s)),
            number("half updates, tasks over threads", transactions, gain(|both| both.mixed.per_s))
                .apart("the paper's are transactions of TPC-C"),
            number("look-ups, kernel bypass over libaio", paper::BYPASS_GAIN, bypass())
                .apart("the paper has 64 workers, enough for either"),
        ]
    }

    fn of(&self, switch: Switch) -> Option<&Both> {
        self.steps.iter().find(|step| step.switch == switch).map(|step| &step.both)
    }

    fn text(&self) -> Vec<String> {
        let mut text = Vec::new();
        if let Some((with, without)) =
            self.of(Switch::Tasks).zip(self.of(Switch::SmallNodes)).filter(|_| self.is_simulated)
        {
            let gain = |one: f64, other: f64| format!("{:.2}", one / other);
            text.push(format!(
                "Tasks instead of threads make {} times as many look-ups and {} times as many operations of the mix (in the paper {} and, of TPC-C, {} times): a wait costs {} less of a processor.",
                gain(with.look_ups.per_s, without.look_ups.per_s),
                gain(with.mixed.per_s, without.mixed.per_s),
                paper::TASKS_GAINS[0],
                paper::TASKS_GAINS[1],
                "a switch by the kernel (--switch-ns)"
            ));
        }
        text.push(match self.is_simulated {
            true => format!(
                "{} workers and {} operations under way here, 64 and more in the paper: with 64 workers the drives are the limit of every setting with nodes of 4 KiB, and switches of a processor's time show nothing (--workers 64).",
                self.workers, self.tasks
            ),
            false => format!(
                "{} threads of the kernel, with an operation each, then {} tasks on {} workers; with pread alone an operation on each of these.",
                self.threads, self.tasks, self.workers
            ),
        });
        if !self.is_simulated {
            let why: Vec<_> = Switch::ALL.into_iter().filter_map(Switch::why_not_real).collect();
            text.push(format!("Not shown on a directory: {}.", why.join("; ")));
        }
        text.push("Not switched: locks of one partition (the store's page table locks each page by itself and free frames are in shards, with no setting for one of them), RAID by the kernel and LeanStore's optimisations of code. The paper's second workload is TPC-C, here half updates of random records.".into());
        text
    }

    pub fn part(&self) -> Part {
        Part {
            id: "ablation",
            title: "The store by switches (Figure 13)".into(),
            text: self.text(),
            tables: vec![(
                match self.is_simulated {
                    true => "Operations a second; the paper's figures, with 64 workers, in brackets".into(),
                    false => "Operations a second".into(),
                },
                self.table(),
            )],
            figures: vec![self.figure()],
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("store", Kind::Label),
            ("look-ups/s", Kind::Number),
            ("of the line before", Kind::Number),
            ("reads each", Kind::Number),
            ("half updates/s", Kind::Number),
            ("processor each", Kind::Number),
        ]);
        let mut before: Option<f64> = None;
        for Step { switch, both } in &self.steps {
            let per_s = both.look_ups.per_s;
            let papers = switch.paper().filter(|_| self.is_simulated);
            let ratio =
                before.replace(per_s).map_or_else(|| "–".into(), |before| format!("{:.2}", per_s / before));
            table.push(
                [
                    switch.name_on(self.is_simulated).to_owned(),
                    beside(per_s, papers, rate),
                    ratio,
                    format!("{:.2}", both.look_ups.reads_each),
                    rate(both.mixed.per_s),
                    unit::micros(both.look_ups.cpu_us_each),
                ]
                .map(Cell::from),
            );
        }
        table
    }

    fn figure(&self) -> Figure {
        let numbered = || (1_u32..).map(f64::from);
        let points =
            |of: fn(&Both) -> f64| numbered().zip(self.steps.iter().map(|step| of(&step.both))).collect();
        let papers = numbered().zip(&self.steps);
        let papers = papers.filter_map(|(number, step)| Some((number, step.switch.paper()?)));
        let curve =
            |number, label: &str, is_paper, points| Curve { number, label: label.into(), is_paper, points };
        let curves = [
            curve(0, "look-ups", true, papers.filter(|_| self.is_simulated).collect()),
            curve(0, "look-ups", false, points(|both| both.look_ups.per_s)),
            curve(1, "half updates", false, points(|both| both.mixed.per_s)),
        ];
        let x = Quantity { title: "line of the table", unit: Unit::Count, growth: Growth::Linear };
        let y = Quantity { title: "", unit: Unit::Count, growth: Growth::Linear };
        let title = "Operations a second by switches";
        Figure {
            id: "ablation-rates".into(),
            title: title.into(),
            caption: "Dashed: between the paper's look-ups.".into(),
            legend: legend(&curves),
            panels: vec![panel(title, "Operations a second", x, y, &curves)],
        }
    }
}
