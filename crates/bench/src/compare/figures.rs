//! The charts of a question.

use flashgrain_profile::schema::Latency;
use flashgrain_report::page::{Axis, Bar, Figure, Growth, Mark, Plot, Series, Unit, bars};
use flashgrain_report::unit;

use super::legend::{legend, series};
use super::question::{Cell, Question, Rounds, place_of};
use super::time::over_time;
use crate::run::RunResult;

type Percentile = fn(&Latency) -> f64;

/// The percentiles of latency that are shown, in microseconds; one in this number of operations takes longer.
pub(super) const PERCENTILES: [(f64, Percentile); 4] = [
    (2.0, |latency| latency.p50_us),
    (100.0, |latency| latency.p99_us),
    (1000.0, |latency| latency.p99_9_us),
    (10_000.0, |latency| latency.p99_99_us),
];

/// All that there is something to show in; `id` is the section's.
pub(super) fn all(question: &Question<'_>, id: &str) -> Vec<Figure> {
    [throughput(question), latency(question), load(question), amplification(question), over_time(question)]
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(number, figure)| Figure { id: format!("{id}-{number}").into(), ..figure })
        .collect()
}

/// Rate and processor time against clients; bars where every engine had one number of clients.
fn throughput(question: &Question<'_>) -> Option<Figure> {
    let first = question.closed.first()?;
    let title = "Throughput and processor time".to_owned();
    if question.closed.iter().all(|cell| cell.clients == first.clients) {
        let rates = cost_bars(question, &title, "Operations per second", Unit::Count, |run| {
            Some(run.operations_per_s)
        });
        let cpu = cost_bars(question, &title, "Processor time of each", Unit::Seconds, |run| {
            Some(run.cpu_us_per_operation * 1e-6)
        });
        let panels: Vec<String> = [rates, cpu].into_iter().flatten().collect();
        let caption = format!(
            "With {} clients, tasks of Flashgrain and threads of the others; medians of the rounds.",
            first.clients
        );
        return Some(Figure { id: "".into(), title, caption, legend: Vec::new(), panels });
    }
    let clients = |cell: &Cell<'_>| cell.clients as f64;
    let raw = if question.only_reads() { question.raw_reads() } else { Vec::new() };
    let rates = Lines {
        title: "Operations per second",
        x: ("clients", Growth::Log2),
        y: ("", Unit::Count, Growth::Linear),
        guide: &raw,
    };
    let cpu = Lines {
        title: "Processor time of each",
        guide: &[],
        y: ("", Unit::Seconds, Growth::Linear),
        ..rates
    };
    let panels = [
        rates.draw(question, &question.closed, &title, &clients, &|cell| Some(cell.rate())),
        cpu.draw(question, &question.closed, &title, &clients, &|cell| {
            cell.of(|run| Some(run.cpu_us_per_operation * 1e-6))
        }),
    ];
    let best = question.best();
    let fastest = best.first()?;
    let drive = if raw.is_empty() {
        ""
    } else {
        " Dashed: reads of the drive alone with as many requests in flight."
    };
    let caption = format!(
        "Clients are tasks of Flashgrain and threads of the others. Fastest is {} with {} clients: {} per second.{drive}",
        fastest.engine,
        fastest.clients,
        unit::count(fastest.rate().median.round()),
    );
    Some(Figure { id: "".into(), title, caption, legend: legend(question), panels: panels.into() })
}

/// Latency percentiles of each engine where it is fastest.
fn latency(question: &Question<'_>) -> Option<Figure> {
    let best = question.best();
    let points = |cell: &Cell<'_>| -> Vec<(f64, Rounds)> {
        let at = |(x, percentile): (f64, Percentile)| {
            Some((x, cell.of(|run| run.latency.map(|all| percentile(&all) * 1e-6))?))
        };
        PERCENTILES.into_iter().filter_map(at).collect()
    };
    let title = "Latency percentiles";
    let all: Vec<f64> = best.iter().flat_map(|cell| points(cell)).map(|(_, rounds)| rounds.median).collect();
    all.first()?;
    let x =
        Axis::over("one operation in N takes longer", Unit::Count, Growth::Log, PERCENTILES.map(|(x, _)| x));
    let y = Axis::over("", Unit::Seconds, Growth::Log, all);
    let mut plot = Plot::new("p50, p99, p99.9, p99.99", x, y);
    for cell in &best {
        let series = series(cell.engine);
        let points = points(cell);
        plot.line(&series, "trace", points.iter().map(|(x, rounds)| (*x, rounds.median)));
        let tip = |x: f64, rounds: &Rounds| {
            format!(
                "{}, {} clients: one of {} takes longer than {}",
                cell.engine,
                cell.clients,
                unit::count(x),
                in_words(Unit::Seconds, rounds)
            )
        };
        let marks: Vec<Mark> = points.iter().map(|(x, rounds)| mark(*x, rounds, tip(*x, rounds))).collect();
        plot.marks(&series, &marks);
    }
    let caption = "Each engine with as many clients as it is fastest with, in a closed loop: more clients mean more waiting for each.".into();
    Some(Figure {
        id: "".into(),
        title: title.into(),
        caption,
        legend: legend(question),
        panels: vec![plot.finish(title)],
    })
}

/// Latency against the rate of open loops.
fn load(question: &Question<'_>) -> Option<Figure> {
    question.open.first()?;
    let title = "Latency against load".to_owned();
    let rate = |cell: &Cell<'_>| cell.rate().median;
    let panel = |name: &'static str, percentile: Percentile| {
        let lines = Lines {
            title: name,
            x: ("operations per second", Growth::Linear),
            y: ("", Unit::Seconds, Growth::Log),
            guide: &raw_latency(question, percentile),
        };
        lines.draw(question, &question.open, &title, &rate, &|cell| {
            cell.of(|run| run.latency.map(|all| percentile(&all) * 1e-6))
        })
    };
    let panels = vec![panel("Median", |all| all.p50_us), panel("p99.9", |all| all.p99_9_us)];
    let drive = if raw_latency(question, |all| all.p50_us).is_empty() {
        ""
    } else {
        " Dashed: as many random reads a second by the drive alone as each run had it do, right after it."
    };
    let caption = format!(
        "Open loop at shares of the rate that each engine reaches in a closed one. Latencies count from the moment at which an operation should have begun, so that a stall is felt by all that would have come meanwhile.{drive}"
    );
    Some(Figure { id: "".into(), title, caption, legend: legend(question), panels })
}

/// Latency of the drive alone, by the rate of the operations that it was measured for.
fn raw_latency(question: &Question<'_>, percentile: Percentile) -> Vec<(f64, f64)> {
    let of = |cell: &Cell<'_>| {
        let alone = cell.of(|run| Some(percentile(&run.raw_latency?) * 1e-6))?;
        Some((cell.rate().median, alone.median))
    };
    let mut points: Vec<_> = question.open.iter().filter_map(of).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

fn amplification(question: &Question<'_>) -> Option<Figure> {
    let title = "Amplification".to_owned();
    let panel = |name: &str, what: fn(&RunResult) -> Option<f64>| {
        cost_bars(question, &title, name, Unit::Count, what)
    };
    let panels: Vec<String> = [
        panel("Bytes read from the device per byte asked for", |run| run.read_amplification),
        panel("Bytes written to it per byte written", |run| run.write_amplification),
        panel("Bytes on disk per byte of keys and values", |run| run.space_amplification),
    ]
    .into_iter()
    .flatten()
    .collect();
    panels.first()?;
    let caption = "Counts of the block device, the kernel's read-ahead and writing back included. Below 1: caches have answered, or writes were still in memory when the run ended.".into();
    Some(Figure { id: "".into(), title, caption, legend: Vec::new(), panels })
}

/// One bar for each engine where it is fastest; nothing if the number is known of none.
fn cost_bars(
    question: &Question<'_>,
    figure: &str,
    title: &str,
    unit: Unit,
    what: impl Fn(&RunResult) -> Option<f64>,
) -> Option<String> {
    let mut cells = question.best();
    cells.sort_by_key(|cell| place_of(cell.engine));
    let of = |cell: &&Cell<'_>| {
        let rounds = cell.of(&what)?;
        let series = series(cell.engine);
        let tip = format!("{}, {} clients: {}", cell.engine, cell.clients, in_words(unit, &rounds));
        Some(Bar {
            label: series.label,
            value: rounds.median,
            dot: None,
            whisker: None,
            shown: unit.show(rounds.median),
            colour: series.colour,
            tip,
        })
    };
    let rows: Vec<Bar> = cells.iter().filter_map(of).collect();
    rows.first()?;
    let axis = Axis::over(title, unit, Growth::Linear, rows.iter().map(|bar| bar.value));
    Some(bars(figure, title, &axis, &rows))
}

/// A panel with a line for each engine.
#[derive(Clone, Copy)]
struct Lines<'a> {
    title: &'static str,
    x: (&'static str, Growth),
    y: (&'static str, Unit, Growth),
    /// The same quantity for the drive alone.
    guide: &'a [(f64, f64)],
}

impl Lines<'_> {
    fn draw(
        self,
        question: &Question<'_>,
        cells: &[Cell<'_>],
        figure: &str,
        x_of: &dyn Fn(&Cell<'_>) -> f64,
        y_of: &dyn Fn(&Cell<'_>) -> Option<Rounds>,
    ) -> String {
        let (y_title, unit, growth) = self.y;
        let highs = cells
            .iter()
            .filter_map(|cell| Some(y_of(cell)?.high))
            .chain(self.guide.iter().map(|(_, rate)| *rate));
        let lows = cells.iter().filter_map(|cell| Some(y_of(cell)?.low));
        let y = Axis::over(y_title, unit, growth, highs.chain(lows));
        let x = Axis::over(self.x.0, Unit::Count, self.x.1, cells.iter().map(x_of));
        let mut plot = Plot::new(self.title, x, y);
        if !self.guide.is_empty() {
            let drive = Series {
                key: "drive".into(),
                label: "the drive alone".into(),
                colour: "var(--quiet)".into(),
            };
            plot.line(&drive, "guide", self.guide.iter().copied());
        }
        for engine in question.engines() {
            let series = series(engine);
            let own = cells.iter().filter(|cell| cell.engine == engine);
            let points: Vec<_> = own.filter_map(|cell| Some((cell, x_of(cell), y_of(cell)?))).collect();
            plot.line(&series, "trace", points.iter().map(|(_, x, rounds)| (*x, rounds.median)));
            let tip = |cell: &Cell<'_>, rounds: &Rounds| {
                format!("{engine}, {} clients: {}", cell.clients, in_words(unit, rounds))
            };
            let marks: Vec<Mark> =
                points.iter().map(|(cell, x, rounds)| mark(*x, rounds, tip(cell, rounds))).collect();
            plot.marks(&series, &marks);
        }
        plot.finish(figure)
    }
}

fn mark(x: f64, rounds: &Rounds, tip: String) -> Mark {
    Mark { x, y: rounds.median, range: Some((rounds.low, rounds.high)), filled: true, tip }
}

fn in_words(unit: Unit, rounds: &Rounds) -> String {
    unit.show_interval(rounds.median, rounds.low, rounds.high)
}
