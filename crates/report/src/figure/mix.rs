//! Mixed reads and writes: measurements, and MQSSD with and without its interference term.

use flashgrain_model::{IoModel, Mqssd, Workload};
use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::Point;

use super::{Drawn, Figure, Key, distinct, not_run, predicted_rate, ramp_series, rate_mark};
use crate::svg::{Axis, Growth, Mark, Plot};
use crate::unit::{self, Unit};

/// Reads and writes that take turns without disturbing each other: their costs add.
fn rate_without_interference(model: &Mqssd, workload: &Workload) -> Option<f64> {
    let cost = |read_share: f64| model.seconds_per_byte(&Workload { read_share, ..*workload });
    let share = workload.read_share;
    let reads = if share > 0.0 { share * cost(1.0)? } else { 0.0 };
    let writes = if share < 1.0 { (1.0 - share) * cost(0.0)? } else { 0.0 };
    Some((reads + writes).recip()).filter(|rate| rate.is_finite())
}

/// Throughput over the read share, one panel per request size.
pub(crate) fn mix(profile: &DeviceProfile) -> Drawn {
    let points = &profile.measurements.mix;
    if points.is_empty() {
        return Err(not_run(profile, "mix"));
    }
    let mqssd = profile.models.as_ref().and_then(|models| models.mqssd.as_ref());
    let series = ramp_series("k", &distinct(points.iter().map(|point| point.workload.concurrency)), |k| {
        format!("k = {}", unit::count(k))
    });
    let title = "Throughput over the share of reads".to_owned();
    let sizes = distinct(points.iter().map(|point| point.workload.request_bytes));
    let mut panels = Vec::new();
    for size in &sizes {
        let here: Vec<&Point> = points.iter().filter(|point| point.workload.request_bytes == *size).collect();
        let x = Axis::exactly("share of reads", Unit::Share, 0.0, 1.0);
        let rates = here.iter().flat_map(|point| [point.bytes_per_second_min, point.bytes_per_second_max]);
        let y = Axis::over("throughput", Unit::Rate, Growth::Log, rates);
        let mut plot = Plot::new(&format!("Requests of {}", unit::bytes(*size)), x, y);
        for (k, series) in &series {
            let of_series: Vec<&Point> =
                here.iter().copied().filter(|point| point.workload.concurrency == *k).collect();
            if let (Some(mqssd), Some(first)) = (mqssd, of_series.first()) {
                let at = |read_share: f64| Workload { read_share, ..first.workload };
                if mqssd.interference().is_some() {
                    plot.curve(series, "guide", |share| rate_without_interference(mqssd, &at(share)));
                }
                plot.curve(series, "fit", |share| predicted_rate(mqssd, &at(share)));
            }
            let marks: Vec<Mark> =
                of_series.iter().map(|point| rate_mark(point.workload.read_share, point)).collect();
            plot.marks(series, &marks);
        }
        panels.push(plot.finish(&title));
    }
    let mut legend: Vec<Key> = series.iter().map(|(_, series)| Key::series(series, "line")).collect();
    legend.push(Key::mark("measured", "dot"));
    match mqssd.map(Mqssd::interference) {
        Some(Some(_)) => {
            legend.push(Key::mark("MQSSD with interference", "line"));
            legend.push(Key::mark("without", "dash"));
        }
        Some(None) => legend.push(Key::mark("MQSSD", "line")),
        None => {}
    }
    Ok(Figure { id: "fig-mix".into(), title, caption: caption(points, mqssd), legend, panels })
}

fn median_error(points: &[Point], predict: impl Fn(&Workload) -> Option<f64>) -> Option<f64> {
    let mixed = points.iter().filter(|point| point.workload.access().is_none());
    let errors =
        mixed.filter_map(|point| Some((predict(&point.workload)? / point.bytes_per_second - 1.0).abs()));
    let rising = distinct(errors);
    rising.get(rising.len() / 2).copied()
}

fn caption(points: &[Point], mqssd: Option<&Mqssd>) -> String {
    let Some(mqssd) = mqssd else { return "Measured only: MQSSD was not fitted.".into() };
    let with = median_error(points, |workload| predicted_rate(mqssd, workload));
    let without = median_error(points, |workload| rate_without_interference(mqssd, workload));
    match (with, without, mqssd.interference()) {
        (Some(with), Some(without), Some(_)) if !mqssd.interference_by_concurrency().is_empty() => {
            let of_each = mqssd.interference_by_concurrency().iter();
            let gammas: Vec<String> =
                of_each.map(|(k, gamma)| format!("{} at k = {k}", unit::three_digits(*gamma))).collect();
            format!(
                "Mixing reads and writes changes their time by γ where they would take equal time: {}. With this term MQSSD \
                 misses mixed points by {} in the median, without it by {}.",
                gammas.join(", "),
                unit::share(with),
                unit::share(without)
            )
        }
        (Some(with), Some(without), Some(gamma)) => format!(
            "Where reads and writes would take equal time, mixing them takes {} {} time than their sum (γ = {}). With this \
             term MQSSD misses mixed points by {} in the median, without it by {}.",
            unit::share(gamma.abs()),
            if gamma < 0.0 { "less" } else { "more" },
            unit::three_digits(gamma),
            unit::share(with),
            unit::share(without)
        ),
        (_, Some(without), None) => format!(
            "No interference term was kept: it did not lower the error. Adding the times of reads and writes misses mixed \
             points by {} in the median.",
            unit::share(without)
        ),
        _ => "Measured only: MQSSD says nothing about mixed workloads.".into(),
    }
}
