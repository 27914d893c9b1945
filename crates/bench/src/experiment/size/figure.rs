//! The chart of cost over size.

use flashgrain_report::page::{Axis, Figure, Growth, Mark, Plot, Series, Unit};

use super::{SizeResult, SizeRow};
use crate::colours::colour;

/// A curve: its name, and its value of a row.
type Curve = (&'static str, fn(&SizeRow) -> Option<f64>);

/// A panel: its title, its unit, and its curves.
const PANELS: [(&str, Unit, &[Curve]); 6] = [
    ("Memory beside the cache", Unit::Bytes, &[("memory", |row| Some(row.memory_bytes as f64))]),
    (
        "Opening",
        Unit::Seconds,
        &[("after a close", |row| Some(row.opened_s)), ("after a kill", |row| Some(row.killed_opened_s))],
    ),
    ("Look-ups, of the drive's reads", Unit::Share, &[("reads", |row| row.share_of_raw)]),
    ("Reads of the drive for each look-up", Unit::Plain, &[("reads", |row| Some(row.reads_per_lookup))]),
    ("Longest checkpoint", Unit::Seconds, &[("checkpoint", |row| Some(row.longest_checkpoint_s))]),
    ("Page table, for each byte of a changed page", Unit::Share, &[("page table", |row| row.map_share)]),
];

/// All panels; `None` without rows.
pub(super) fn figure(result: &SizeResult) -> Option<Figure> {
    (!result.rows.is_empty()).then(|| Figure {
        id: "size".into(),
        title: "Cost over size".into(),
        caption: format!(
            "Stores of records of {} bytes with a cache of {} of them; look-ups and updates by {} tasks.",
            result.bytes_of_record(),
            Unit::Share.show(result.cache_share()),
            result.tasks
        ),
        legend: Vec::new(),
        panels: PANELS.iter().map(|panel| drawn(panel, &result.rows)).collect(),
    })
}

fn drawn((title, unit, curves): &(&str, Unit, &[Curve]), rows: &[SizeRow]) -> String {
    let points = |of: fn(&SizeRow) -> Option<f64>| {
        rows.iter().filter_map(move |row| Some((row.record_bytes as f64, of(row)?)))
    };
    let ys: Vec<f64> = curves.iter().flat_map(|(_, of)| points(*of).map(|(_, y)| y)).collect();
    let mut plot = Plot::new(
        title,
        Axis::over("records", Unit::Bytes, Growth::Log2, rows.iter().map(|row| row.record_bytes as f64)),
        Axis::over("", *unit, Growth::Linear, ys),
    );
    for (number, (name, of)) in curves.iter().enumerate() {
        let series =
            Series { key: format!("c{number}"), label: (*name).into(), colour: colour(number).into() };
        plot.line(&series, "trace", points(*of));
        let mark = |(x, y): (f64, f64)| {
            let tip = format!("{name}, {}: {}", Unit::Bytes.show(x), unit.show(y));
            Mark { x, y, range: None, filled: true, tip }
        };
        let marks: Vec<Mark> = points(*of).map(mark).collect();
        plot.marks(&series, &marks);
    }
    plot.finish(title)
}
