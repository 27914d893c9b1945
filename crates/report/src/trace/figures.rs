//! Where requests begin within a stripe, against how long they are (hidden-parameters paper, Figures 6 to 8).

use flashgrain_trace::check::{FileReport, Report, SpreadPoint};

use super::tables;
use crate::figure::{Figure, Key};
use crate::svg::{Axis, Growth, Mark, Plot, Series, colour};
use crate::unit::{self, Unit};

/// The most marks of one panel; beyond them the rarest are left out.
const MARKS_MAX: usize = 400;

/// Writes and reads of one file.
pub(super) fn spread(report: &Report, file: &FileReport, number: usize) -> Figure {
    let reads = Series { key: "reads".into(), label: "reads".into(), colour: colour::READS.into() };
    let writes = Series { key: "writes".into(), label: "writes".into(), colour: colour::WRITES.into() };
    let mut panels = Vec::new();
    let mut legend = Vec::new();
    let mut left_out = file.spread_unshown;
    for (series, is_read) in [(writes, false), (reads, true)] {
        let mut points: Vec<_> = file.spread.iter().filter(|point| point.is_read == is_read).collect();
        if points.is_empty() {
            continue;
        }
        let all: u64 = points.iter().map(|point| point.requests).sum();
        points = thinned(points);
        left_out += all - points.iter().map(|point| point.requests).sum::<u64>();
        panels.push(panel(report, &points, &series, &file.name));
        legend.push(Key::series(&series, "dot"));
    }
    let stripe = unit::bytes(report.spread_stripe_bytes as f64);
    let mut caption =
        format!("{}{}: {}. {}", file.kind.label(), tables::where_seen(file), file.name, said(file, &stripe));
    if left_out > 0 {
        caption += &format!(
            " Not drawn: {}, as there are too many different ones.",
            unit::things(left_out, "request")
        );
    }
    Figure {
        id: format!("fig-spread-{number}").into(),
        title: format!("{}{}", short(&file.name), tables::where_seen(file)),
        caption,
        legend,
        panels,
    }
}

/// As many points as are drawn: the half with the most requests, and a regular sample of the others in the
/// order of their offsets.
fn thinned(mut points: Vec<&SpreadPoint>) -> Vec<&SpreadPoint> {
    if points.len() <= MARKS_MAX {
        return points;
    }
    points.sort_by_key(|point| std::cmp::Reverse(point.requests));
    let mut others = points.split_off(MARKS_MAX / 2);
    others.sort_by_key(|point| (point.offset_bytes, point.length_bytes));
    let step = others.len().div_ceil(MARKS_MAX / 2);
    points.extend(others.into_iter().step_by(step));
    points
}

/// The name without its folder.
pub(super) fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn said(file: &FileReport, stripe: &str) -> String {
    let writes: u64 = file.spread.iter().filter(|point| !point.is_read).map(|point| point.requests).sum();
    let aligned: u64 = file
        .spread
        .iter()
        .filter(|point| !point.is_read && point.offset_bytes == 0)
        .map(|point| point.requests)
        .sum();
    if writes == 0 {
        return "It is only read.".to_owned();
    }
    format!("{} of the writes begin at a stripe of {stripe}.", unit::share(aligned as f64 / writes as f64))
}

fn panel(report: &Report, points: &[&SpreadPoint], series: &Series, name: &str) -> String {
    let stripe = report.spread_stripe_bytes as f64;
    let x = Axis::exactly("offset within the stripe", Unit::Bytes, 0.0, stripe);
    // All panels reach from a sector to a stripe, so that they can be compared.
    let lengths = points.iter().map(|point| point.length_bytes as f64).chain([512.0, stripe]);
    let y = Axis::over("length", Unit::Bytes, Growth::Log2, lengths);
    let mut plot = Plot::new(if series.key == "reads" { "Reads" } else { "Writes" }, x, y);
    let parameter = |name: &str| {
        report
            .parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .and_then(|parameter| parameter.bytes)
    };
    let hot = parameter("hot_offset_bytes").zip(parameter("chunk_bytes"));
    if let Some((hot, _)) =
        hot.filter(|(hot, chunk)| series.key == "reads" && *hot > 0 && *chunk as f64 == stripe)
    {
        plot.rule(hot as f64, "hot");
    }
    let marks = points.iter().map(|point| Mark {
        x: point.offset_bytes as f64,
        y: point.length_bytes as f64,
        range: None,
        filled: true,
        tip: format!(
            "{} {} of {} at {} into the stripe",
            unit::count(point.requests as f64),
            series.label,
            unit::bytes(point.length_bytes as f64),
            unit::bytes(point.offset_bytes as f64)
        ),
    });
    plot.marks(series, &marks.collect::<Vec<_>>());
    plot.finish(short(name))
}
