//! The chart of a question over time.

use flashgrain_report::page::{Axis, Figure, Growth, Plot, Unit};

use super::legend::{legend, series};
use super::question::{Cell, Question};
use crate::run::{RunResult, SecondResult};

/// Fewest seconds worth a figure.
const SECONDS_MIN: usize = 5;

/// Second by second, each engine where it is fastest, in the round with the median rate. Nothing where
/// clients only look up: one second is like the next.
pub(super) fn over_time(question: &Question<'_>) -> Option<Figure> {
    let runs: Vec<&RunResult> = question.best().into_iter().filter_map(middle).collect();
    let longest = runs.iter().map(|run| run.seconds.len()).max()?;
    if question.only_reads() || longest < SECONDS_MIN {
        return None;
    }
    let title = "Over time".to_owned();
    let panel = |name: &str, unit: Unit, growth: Growth, what: fn(&SecondResult) -> f64| {
        let values = runs.iter().flat_map(|run| &run.seconds).map(what);
        let x = Axis::over("seconds", Unit::Count, Growth::Linear, [0.0, longest as f64]);
        let mut plot = Plot::new(name, x, Axis::over("", unit, growth, values));
        for run in &runs {
            // The operations that ended in a second are shown at the end of the second.
            let points = (1..).zip(&run.seconds).map(|(second, found)| (f64::from(second), what(found)));
            plot.line(
                &series(&run.engine),
                "trace",
                points.filter(|(_, y)| growth == Growth::Linear || *y > 0.0),
            );
        }
        plot.finish(&title)
    };
    let panels = vec![
        panel("Operations in each second", Unit::Count, Growth::Linear, |second| second.operations as f64),
        panel("p99 of each second", Unit::Seconds, Growth::Log, |second| second.p99_us * 1e-6),
        panel("Bytes on disk", Unit::Bytes, Growth::Linear, |second| second.space_bytes as f64),
    ];
    let caption = "Each engine with as many clients as it is fastest with, in the round with the median rate. A rate that falls is not yet steady: the first writes may be free of the work that they cause later.".into();
    Some(Figure { id: "".into(), title, caption, legend: legend(question), panels })
}

/// The run with the median rate; of two the slower one.
fn middle<'a>(cell: &Cell<'a>) -> Option<&'a RunResult> {
    let mut runs = cell.runs.clone();
    runs.sort_by(|one, other| one.operations_per_s.total_cmp(&other.operations_per_s));
    runs.get((runs.len().max(1) - 1) / 2).copied()
}
