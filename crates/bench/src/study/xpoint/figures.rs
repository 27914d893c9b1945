//! Charts.

use flashgrain_report::page::{Figure, Growth, Unit};

use super::{Answer, Point, Question, paper};
use crate::study::chart::{Curve, Quantity, legend, panel};
use crate::study::subject::{QUANTILES, Times};

/// Shares of writes whose course over time is shown: Figures 4 and 5.
const SHARES_OVER_TIME: [f64; 2] = [0.05, 0.9];

const RATE: Quantity = Quantity { title: "", unit: Unit::Count, growth: Growth::Linear };
const TIME: Quantity = Quantity { title: "", unit: Unit::Seconds, growth: Growth::Log };
const SECONDS: Quantity = Quantity { title: "seconds", unit: Unit::Seconds, growth: Growth::Linear };

type Number = fn(&Point) -> Option<f64>;
type Papers = fn(&paper::Known) -> Option<f64>;

/// The quantities that are drawn over the question's variable.
const PANELS: [(&str, Quantity, Number, Papers); 3] = [
    ("Operations a second", RATE, |point| Some(point.watched.per_s), |known| known.per_s),
    (
        "p90 of look-ups",
        TIME,
        |point| Some(point.watched.reads.as_ref()?.p90_us * 1e-6),
        |known| Some(known.read_p90_us? * 1e-6),
    ),
    (
        "p90 of updates",
        TIME,
        |point| Some(point.watched.writes.as_ref()?.p90_us * 1e-6),
        |known| Some(known.write_p90_us? * 1e-6),
    ),
];

/// Drawn below them where writes wait one for another.
const QUEUE: (&str, Quantity, Number, Papers) =
    ("Writes that wait, on average", RATE, |point| Some(point.watched.waiting), |_| None);

pub(super) fn all(answer: &Answer, id: &str) -> Vec<Figure> {
    match answer.question {
        Question::Bursts => vec![over_time(answer, id, &[0.0])],
        Question::Writes => {
            vec![varying(answer, id), over_time(answer, id, &SHARES_OVER_TIME), distributions(answer, id)]
        }
        _ => vec![varying(answer, id)],
    }
}

fn curves(answer: &Answer) -> Vec<(String, Vec<&Point>)> {
    let mut all: Vec<(String, Vec<&Point>)> = Vec::new();
    for point in &answer.points {
        let name = point.name();
        match all.iter_mut().find(|(other, _)| *other == name) {
            Some((_, points)) => points.push(point),
            None => all.push((name, vec![point])),
        }
    }
    all
}

/// Rates and times over the question's variable.
fn varying(answer: &Answer, id: &str) -> Figure {
    let question = answer.question;
    let unit = if question.is_share() { Unit::Share } else { Unit::Count };
    let growth = if question.is_share() { Growth::Linear } else { Growth::Log2 };
    let x = Quantity { title: question.varied(), unit, growth };
    let title = format!("Over {}", question.varied());
    let (mut panels, mut keys) = (Vec::new(), Vec::new());
    let queue = (question == Question::Waiting).then_some(QUEUE);
    for (name, y, ours, papers) in PANELS.into_iter().chain(queue) {
        let mut drawn = Vec::new();
        for (number, (label, points)) in curves(answer).into_iter().enumerate() {
            let curve = |is_paper, points| Curve { number, label: label.clone(), is_paper, points };
            let known =
                points.iter().filter_map(|point| Some((point.x, papers(&paper::of(question, point))?)));
            drawn.push(curve(true, known.collect()));
            drawn.push(curve(
                false,
                points.iter().filter_map(|point| Some((point.x, ours(point)?))).collect(),
            ));
        }
        panels.push(panel(&title, name, x, y, &drawn));
        keys = legend(&drawn);
    }
    let caption = "Dashed: between the paper's figures, where its text has them.".into();
    Figure { id: format!("{id}-varied").into(), title, caption, legend: keys, panels }
}

/// Share of writes whose times are shown: Figures 6 and 7.
const WRITES_OF_DISTRIBUTIONS: f64 = 0.9;

const PART: Quantity = Quantity { title: "share of operations", unit: Unit::Share, growth: Growth::Linear };

/// How long operations take: a panel for look-ups and one for updates.
fn distributions(answer: &Answer, id: &str) -> Figure {
    let title = "Times of operations, 90 % writes";
    type Of = fn(&Point) -> Option<&Times>;
    let kinds: [(&str, Of); 2] = [
        ("look-ups", |point| point.watched.reads.as_ref()),
        ("updates", |point| point.watched.writes.as_ref()),
    ];
    let (mut panels, mut keys) = (Vec::new(), Vec::new());
    for (name, of) in kinds {
        let mut drawn = Vec::new();
        for (number, (label, points)) in curves(answer).into_iter().enumerate() {
            let is_meant = |point: &&Point| (point.x - WRITES_OF_DISTRIBUTIONS).abs() < 1e-9;
            let Some(times) = points.into_iter().find(is_meant).and_then(of) else { continue };
            let points = times.quantiles_us.iter().map(|us| us * 1e-6).zip(QUANTILES).collect();
            drawn.push(Curve { number, label, is_paper: false, points });
        }
        panels.push(panel(title, name, TIME, PART, &drawn));
        keys = legend(&drawn);
    }
    let caption = "Share of operations that take at most so long (Figures 6 and 7).".into();
    Figure { id: format!("{id}-times").into(), title: title.into(), caption, legend: keys, panels }
}

/// Operations a second, slice by slice: a panel for each value of the question's variable.
fn over_time(answer: &Answer, id: &str, values: &[f64]) -> Figure {
    let title = "Operations a second over time";
    let (mut panels, mut keys) = (Vec::new(), Vec::new());
    for value in values {
        let mut drawn = Vec::new();
        for (number, (label, points)) in curves(answer).into_iter().enumerate() {
            for point in points.into_iter().filter(|point| (point.x - value).abs() < 1e-9) {
                let points = point.watched.slices.iter().map(|slice| (slice.end_s, slice.per_s)).collect();
                drawn.push(Curve { number, label: label.clone(), is_paper: false, points });
            }
        }
        let name = match answer.question.varied() {
            "" => "Operations a second".to_owned(),
            what => format!("{:.0} % {what}", value * 100.0),
        };
        panels.push(panel(title, &name, SECONDS, RATE, &drawn));
        keys = legend(&drawn);
    }
    let caption = "Time is 1/256 of the paper's.".into();
    Figure { id: format!("{id}-time").into(), title: title.into(), caption, legend: keys, panels }
}
