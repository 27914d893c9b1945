//! PDAM's knee and the affine line: one curve each over concurrency and over size.

use flashgrain_model::{Estimate, line_fit};
use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::Point;

use super::{Drawn, Figure, Key, access_series, not_run, predicted_rate, rate_mark};
use crate::svg::{Axis, Growth, Mark, Plot, Series};
use crate::unit::{self, Unit};

/// Throughput over concurrency with the segmented fit.
pub(crate) fn parallel(profile: &DeviceProfile) -> Drawn {
    let points = &profile.measurements.parallel;
    let first = points.first().ok_or_else(|| not_run(profile, "parallel"))?;
    let title = "Throughput over requests in flight".to_owned();
    let knee = profile.learned.parallelism.estimate.value();
    let saturation = profile.learned.saturation_bytes_per_second.estimate.value();

    let rates = points.iter().flat_map(|point| [point.bytes_per_second, point.bytes_per_second_max]);
    let x = Axis::over(
        "requests in flight p",
        Unit::Count,
        Growth::Log2,
        points.iter().map(|p| p.workload.concurrency),
    );
    let y = Axis::over("throughput", Unit::Rate, Growth::Linear, rates.chain(saturation));
    let mut plot = Plot::new(&format!("Random reads of {}", unit::bytes(first.workload.request_bytes)), x, y);
    let measured = access_series(first.workload.access());
    let fit = Series { key: "fit".into(), label: "segmented fit".into(), colour: "var(--ink)".into() };
    if let (Some(knee), Some(saturation)) = (knee, saturation) {
        plot.curve(&fit, "fit", |p| Some(saturation * (p / knee).min(1.0)));
        plot.rule(knee, &format!("P = {}", unit::three_digits(knee)));
    }
    let marks: Vec<Mark> = points.iter().map(|point| rate_mark(point.workload.concurrency, point)).collect();
    plot.marks(&measured, &marks);

    let caption = match (&profile.learned.parallelism.estimate, saturation) {
        (Estimate::Determined { value, low, high }, Some(saturation)) => format!(
            "Throughput rises until P = {} requests are in flight and stays at {} beyond.",
            Unit::Count.show_interval(*value, *low, *high),
            unit::rate(saturation)
        ),
        (Estimate::Undetermined { why }, _) => format!("P is undetermined: {why}."),
        (Estimate::Determined { value, .. }, None) => {
            format!("P = {}; the plateau is undetermined.", unit::three_digits(*value))
        }
    };
    let mut legend = vec![Key { label: "measured".into(), ..Key::series(&measured, "dot") }];
    if knee.is_some() && saturation.is_some() {
        legend.push(Key::series(&fit, "line"));
    }
    Ok(Figure { id: "fig-parallel".into(), title, caption, legend, panels: vec![plot.finish("PDAM knee")] })
}

/// Seconds of one request over its size with the affine model.
pub(crate) fn affine(profile: &DeviceProfile) -> Drawn {
    let points = &profile.measurements.size;
    if points.is_empty() {
        return Err(not_run(profile, "size"));
    }
    let first_concurrency = points.first().map_or(1.0, |point| point.workload.concurrency);
    // Little's law: the time of one request, with `in_flight` in flight.
    let seconds_of =
        |rate: f64, point: &Point| point.workload.request_bytes * point.workload.concurrency / rate;
    let x = Axis::over(
        "request size",
        Unit::Bytes,
        Growth::Log2,
        points.iter().map(|p| p.workload.request_bytes),
    );
    let times = points.iter().flat_map(|point| {
        [point.bytes_per_second_min, point.bytes_per_second_max].map(|rate| seconds_of(rate, point))
    });
    let y = Axis::over("time per request", Unit::Seconds, Growth::Log, times);
    let mut plot =
        Plot::new(&format!("One after the other, {} in flight", unit::count(first_concurrency)), x, y);

    let fitted = profile.models.as_ref().and_then(|models| models.affine.as_ref());
    let line = Series { key: "line".into(), label: "line through these".into(), colour: "var(--ink)".into() };
    let everything = Series {
        key: "affine".into(),
        label: "affine model of everything".into(),
        colour: "var(--quiet)".into(),
    };
    let mut legend = Vec::new();
    let seen: Vec<(f64, f64)> = points
        .iter()
        .map(|point| (point.workload.request_bytes, seconds_of(point.bytes_per_second, point)))
        .collect();
    if let Some((setup, transfer)) = line_through(&seen, profile.provenance.seed) {
        plot.curve(&line, "fit", |size| Some(setup + size * transfer));
        legend.push(Key::series(&line, "line"));
    }
    if let (Some(affine), Some(point)) = (fitted, points.first()) {
        plot.curve(&everything, "guide", |size| {
            let workload = flashgrain_model::Workload { request_bytes: size, ..point.workload };
            Some(size * first_concurrency / predicted_rate(affine, &workload)?)
        });
        legend.push(Key::series(&everything, "dash"));
    }
    let half = &profile.learned.half_bandwidth_bytes.estimate;
    if let Some(half) = half.value() {
        plot.rule(half, &format!("half at {}", unit::bytes(half)));
    }
    for access in [Some(flashgrain_model::Access::Read), Some(flashgrain_model::Access::Write), None] {
        let of_access: Vec<Mark> = points
            .iter()
            .filter(|point| point.workload.access() == access)
            .map(|point| {
                let seconds = seconds_of(point.bytes_per_second, point);
                let low = seconds_of(point.bytes_per_second_max, point);
                let high = seconds_of(point.bytes_per_second_min, point);
                let mark = rate_mark(point.workload.request_bytes, point);
                Mark {
                    y: seconds,
                    range: Some((low, high)),
                    tip: format!("{}; {} per request", mark.tip, unit::seconds(seconds)),
                    ..mark
                }
            })
            .collect();
        if !of_access.is_empty() {
            let series = access_series(access);
            plot.marks(&series, &of_access);
            legend.insert(0, Key::series(&series, "dot"));
        }
    }
    let caption = match half {
        Estimate::Determined { value, low, high } => format!(
            "Setup costs as much as the transfer at {}: smaller requests get less than half of the bandwidth ({}).",
            Unit::Bytes.show_interval(*value, *low, *high),
            profile.learned.half_bandwidth_bytes.evidence
        ),
        Estimate::Undetermined { why } => format!("The half-bandwidth size is undetermined: {why}."),
    };
    let title = "Time of a request over its size".to_owned();
    Ok(Figure { id: "fig-affine".into(), title, caption, legend, panels: vec![plot.finish("Affine line")] })
}

/// Seconds of setup and seconds per byte, as the learned half-bandwidth size was found; `None` where the
/// points do not support them.
fn line_through(points: &[(f64, f64)], seed: u64) -> Option<(f64, f64)> {
    const RESAMPLES: u32 = 50;
    let line = line_fit(points, RESAMPLES, seed).ok()?;
    Some((line.intercept.value()?, line.slope.value()?))
}
