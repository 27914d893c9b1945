//! The charts: the part of a profile that each shows, and a sentence that describes the result.

mod costs;
mod depth;
mod durability;
mod errors;
mod hidden;
mod mix;
mod order;
mod store;
mod verification;
mod working;

pub(crate) use costs::{setup_costs, transfer_costs};
pub(crate) use depth::{depth_map, percentiles};
pub(crate) use durability::{flush, interface, sequential, sustain};
pub(crate) use errors::errors;
pub(crate) use hidden::{location, request_size};
pub(crate) use mix::mix;
pub(crate) use order::order;
pub(crate) use store::store;
pub(crate) use verification::verification;
pub(crate) use working::{affine, parallel};

use std::borrow::Cow;

use flashgrain_model::{Access, IoModel, Workload};
use flashgrain_profile::schema::Point;
use flashgrain_profile::{DeviceProfile, describe_workload};

use crate::svg::{Mark, Series, colour};
use crate::unit;

/// A figure: panels drawn, words written.
pub struct Figure {
    /// Anchor on the page.
    pub id: Cow<'static, str>,
    /// Text above it.
    pub title: String,
    /// Describes the result in the figure, with numbers.
    pub caption: String,
    /// Meaning of its colours and marks.
    pub legend: Vec<Key>,
    /// SVG text.
    pub panels: Vec<String>,
}

impl Figure {
    /// Class of the style sheet: how much of the page's width it takes.
    pub(crate) fn span(&self) -> &'static str {
        match self.panels.len() {
            1 => "one",
            2 => "two",
            _ => "many",
        }
    }
}

/// An entry of the legend.
pub struct Key {
    /// The series that it stands for; empty for a kind of mark.
    pub series: String,
    /// Text of the entry.
    pub label: String,
    /// CSS colour.
    pub colour: String,
    /// Class of its swatch: `line`, `dash`, `dot`, `ring`, `bar`.
    pub shape: &'static str,
}

/// A figure, or why there is none.
pub(crate) type Drawn = Result<Figure, String>;

impl Key {
    /// The key of a series.
    pub fn series(series: &Series, shape: &'static str) -> Self {
        Self { series: series.key.clone(), label: series.label.clone(), colour: series.colour.clone(), shape }
    }

    /// The key of bars of one colour.
    fn bar(label: &str, colour: &str) -> Self {
        Self { series: String::new(), label: label.into(), colour: colour.into(), shape: "bar" }
    }

    fn mark(label: &str, shape: &'static str) -> Self {
        Self { series: String::new(), label: label.into(), colour: "var(--quiet)".into(), shape }
    }
}

/// Why an experiment has nothing to show: the reason in the budget, if there is one.
fn not_run(profile: &DeviceProfile, experiment: &str) -> String {
    let left_out = profile.budget.left_out.iter().find(|words| words.starts_with(experiment));
    match left_out {
        Some(words) => format!("not run: {words}"),
        None => format!("not run; measured by flashgrain profile --only {experiment}"),
    }
}

/// One series per value of something that rises, such as the concurrency.
fn ramp_series(prefix: &str, values: &[f64], label: impl Fn(f64) -> String) -> Vec<(f64, Series)> {
    let count = values.len();
    values
        .iter()
        .enumerate()
        .map(|(index, value)| {
            let series = Series {
                key: format!("{prefix}{value}"),
                label: label(*value),
                colour: colour::ramp_of(index, count),
            };
            (*value, series)
        })
        .collect()
}

/// Reads, writes or mixed in the colour that they have everywhere.
fn access_series(access: Option<Access>) -> Series {
    let (key, colour) = match access {
        Some(Access::Read) => ("reads", colour::READS),
        Some(Access::Write) => ("writes", colour::WRITES),
        None => ("mixed", colour::MIXED),
    };
    Series { key: key.into(), label: crate::facts::kind_name(access).into(), colour: colour.into() }
}

/// The different values, rising.
fn distinct(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// Bytes per second that a model predicts.
fn predicted_rate(model: &dyn IoModel, workload: &Workload) -> Option<f64> {
    model.seconds_per_byte(workload).filter(|cost| *cost > 0.0).map(f64::recip)
}

/// `512 MiB/s (498 MiB/s – 530 MiB/s, 3 repeats)`.
fn measured_in_words(rate: f64, low: f64, high: f64, repeats: usize) -> String {
    if repeats < 2 {
        return format!("{}, once", unit::rate(rate));
    }
    format!("{} ({} – {}, {repeats} repeats)", unit::rate(rate), unit::rate(low), unit::rate(high))
}

/// A point's throughput as a mark over `x`.
fn rate_mark(x: f64, point: &Point) -> Mark {
    let measured = measured_in_words(
        point.bytes_per_second,
        point.bytes_per_second_min,
        point.bytes_per_second_max,
        point.repeats as usize,
    );
    Mark {
        x,
        y: point.bytes_per_second,
        range: Some((point.bytes_per_second_min, point.bytes_per_second_max)),
        filled: true,
        tip: format!("{}: {measured}", describe_workload(&point.workload)),
    }
}
