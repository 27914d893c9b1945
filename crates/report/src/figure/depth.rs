//! Queue depth and page size: rates as maps, latency as curves.

use flashgrain_model::Access;
use flashgrain_profile::schema::{Latency, Point};
use flashgrain_profile::{DeviceProfile, describe_workload};

use super::{Drawn, Figure, Key, distinct, not_run, ramp_series};
use crate::facts::kind_name;
use crate::svg::{Axis, Growth, Heat, HeatCell, Mark, Plot, heat};
use crate::unit::{self, Unit};

/// Cells of more columns would be narrower than their numbers.
const COLUMNS_MAX: usize = 10;

fn latency_of(point: &Point) -> Option<Latency> {
    point.read_latency.or(point.write_latency)
}

fn requests_per_second(point: &Point) -> f64 {
    point.bytes_per_second / point.workload.request_bytes
}

/// Maps of requests per second, bandwidth and latency.
pub(crate) fn depth_map(profile: &DeviceProfile, access: Access) -> Drawn {
    let points: Vec<&Point> =
        profile.measurements.depth.iter().filter(|point| point.workload.access() == Some(access)).collect();
    if points.is_empty() {
        return Err(not_run(profile, "depth"));
    }
    let title = format!("Random {} by requests in flight and size", kind_name(Some(access)));
    let panels = vec![
        map(&title, &points, "Requests per second", Unit::Count, requests_per_second, f64::max),
        map(&title, &points, "Bandwidth", Unit::Rate, |point| point.bytes_per_second, f64::max),
        map(
            &title,
            &points,
            "Mean latency",
            Unit::Seconds,
            |point| latency_of(point).map_or(f64::NAN, |latency| latency.mean_us * 1e-6),
            f64::min,
        ),
    ];
    let most = points.iter().max_by(|a, b| requests_per_second(a).total_cmp(&requests_per_second(b)));
    let fastest = points.iter().max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second));
    let mut caption = String::new();
    if let Some(most) = most {
        caption += &format!(
            "Most requests: {} per second of {} with {} in flight. ",
            unit::count(requests_per_second(most)),
            unit::bytes(most.workload.request_bytes),
            unit::count(most.workload.concurrency)
        );
    }
    if let Some(fastest) = fastest {
        caption += &format!(
            "Most bytes: {} with {} and {} in flight. The best cell of each map is framed.",
            unit::rate(fastest.bytes_per_second),
            unit::bytes(fastest.workload.request_bytes),
            unit::count(fastest.workload.concurrency)
        );
    }
    let id = if access == Access::Read { "fig-depth" } else { "fig-depth-writes" };
    Ok(Figure { id: id.into(), title, caption, legend: Vec::new(), panels })
}

fn map(
    figure: &str,
    points: &[&Point],
    title: &str,
    unit: Unit,
    value_of: impl Fn(&Point) -> f64,
    better: fn(f64, f64) -> f64,
) -> String {
    let mut depths = distinct(points.iter().map(|point| point.workload.concurrency));
    // Numbers need room: of many depths every second one is shown, the deepest always.
    while depths.len() > COLUMNS_MAX {
        let is_even = depths.len() % 2 == 0;
        depths = depths.into_iter().skip(usize::from(is_even)).step_by(2).collect();
    }
    let points: Vec<&Point> =
        points.iter().copied().filter(|point| depths.contains(&point.workload.concurrency)).collect();
    let sizes = distinct(points.iter().map(|point| point.workload.request_bytes));
    let best = points.iter().map(|point| value_of(point)).filter(|value| value.is_finite()).reduce(better);
    let largest =
        points.iter().map(|point| value_of(point)).filter(|value| value.is_finite()).fold(0.0, f64::max);
    // One unit for the whole map, chosen so that no cell has more than four digits: it stands in the title.
    let (factor, suffix) = match unit {
        Unit::Count if largest >= 1e7 => (1e6, " M"),
        Unit::Count if largest >= 1e4 => (1e3, " k"),
        Unit::Count => (1.0, ""),
        _ => unit.scale_for(largest / 100.0),
    };
    let cell = |size: f64, depth: f64| {
        let at_place =
            |point: &&&Point| point.workload.request_bytes == size && point.workload.concurrency == depth;
        let point = points.iter().find(at_place)?;
        let value = value_of(point);
        value.is_finite().then(|| HeatCell {
            value,
            shown: four_characters(value / factor),
            best: best == Some(value),
            tip: format!("{}: {}", describe_workload(&point.workload), unit.show(value)),
        })
    };
    let unit_name = if unit == Unit::Count {
        suffix.trim().replace('k', "thousands").replace('M', "millions")
    } else {
        suffix.trim().into()
    };
    let title = if unit_name.is_empty() { title.to_owned() } else { format!("{title}, {unit_name}") };
    heat(
        figure,
        &Heat {
            title,
            x_title: "requests in flight".into(),
            y_title: "size".into(),
            columns: depths.iter().map(|depth| unit::count(*depth)).collect(),
            rows: sizes.iter().map(|size| depths.iter().map(|depth| cell(*size, *depth)).collect()).collect(),
            row_labels: sizes.iter().map(|size| unit::bytes(*size)).collect(),
        },
    )
}

/// Three digits, or fewer where these do not fit into a cell.
fn four_characters(value: f64) -> String {
    let shown = unit::three_digits(value);
    if value.abs() >= 10.0 || shown.chars().count() <= 4 { shown } else { format!("{value:.2}") }
}

/// Latency percentiles over depth, for 4 KiB or the nearest size.
pub(crate) fn percentiles(profile: &DeviceProfile) -> Drawn {
    let points = &profile.measurements.depth;
    let is_read =
        |point: &&Point| point.workload.access() == Some(Access::Read) && point.read_latency.is_some();
    let distance = |size: f64| (size / 4096.0).ln().abs();
    let size = points
        .iter()
        .filter(is_read)
        .map(|point| point.workload.request_bytes)
        .min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
        .ok_or_else(|| not_run(profile, "depth"))?;
    let mut shown: Vec<(&Point, Latency)> = points
        .iter()
        .filter(is_read)
        .filter(|point| point.workload.request_bytes == size)
        .filter_map(|point| Some((point, point.read_latency?)))
        .collect();
    shown.sort_by(|a, b| a.0.workload.concurrency.total_cmp(&b.0.workload.concurrency));

    type Level = (&'static str, fn(&Latency) -> f64);
    const LEVELS: [Level; 4] = [
        ("50 %", |latency| latency.p50_us),
        ("90 %", |latency| latency.p90_us),
        ("99 %", |latency| latency.p99_us),
        ("99.9 %", |latency| latency.p99_9_us),
    ];
    let series = ramp_series("p", &[0.0, 1.0, 2.0, 3.0], |level| {
        LEVELS.get(level as usize).map_or_else(String::new, |(name, _)| (*name).to_owned())
    });
    let times = shown.iter().flat_map(|(_, latency)| LEVELS.map(|(_, level)| level(latency) * 1e-6));
    let x = Axis::over(
        "requests in flight",
        Unit::Count,
        Growth::Log2,
        shown.iter().map(|(p, _)| p.workload.concurrency),
    );
    let y = Axis::over("latency", Unit::Seconds, Growth::Log, times);
    let mut plot = Plot::new(&format!("Random reads of {}", unit::bytes(size)), x, y);
    for ((name, level), (_, series)) in LEVELS.iter().zip(&series) {
        let at = |(point, latency): &(&Point, Latency)| (point.workload.concurrency, level(latency) * 1e-6);
        plot.line(series, "trace", shown.iter().map(at));
        let marks: Vec<Mark> = shown
            .iter()
            .map(|entry| {
                let (x, y) = at(entry);
                let tip = format!(
                    "{} in flight: {name} within {} of {} requests",
                    unit::count(x),
                    unit::seconds(y),
                    unit::count(entry.1.count as f64)
                );
                Mark { x, y, range: None, filled: true, tip }
            })
            .collect();
        plot.marks(series, &marks);
    }
    let ends = shown.first().zip(shown.last());
    let caption = ends.map_or_else(String::new, |(first, last)| {
        format!(
            "Alone, half of the reads take {} or less and 99.9 % {}; with {} in flight {} and {}.",
            unit::micros(first.1.p50_us),
            unit::micros(first.1.p99_9_us),
            unit::count(last.0.workload.concurrency),
            unit::micros(last.1.p50_us),
            unit::micros(last.1.p99_9_us)
        )
    });
    let legend = series.iter().map(|(_, series)| Key::series(series, "line")).collect();
    let title = "Latency percentiles over requests in flight".to_owned();
    Ok(Figure {
        id: "fig-latency".into(),
        title,
        caption,
        legend,
        panels: vec![plot.finish("Latency percentiles")],
    })
}
