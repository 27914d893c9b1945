//! Panels with a curve for each of several things, the paper's dashed.

use flashgrain_report::page::{Axis, Growth, Key, Mark, Plot, Series, Unit};

use crate::colours::colour;

/// Points of one thing.
pub(super) struct Curve {
    /// Its number, which decides its colour.
    pub number: usize,
    /// Its name.
    pub label: String,
    /// Whether it is the paper's.
    pub is_paper: bool,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

/// The quantity of an axis.
#[derive(Clone, Copy)]
pub(super) struct Quantity {
    pub title: &'static str,
    pub unit: Unit,
    pub growth: Growth,
}

fn series(curve: &Curve) -> Series {
    Series {
        key: format!("c{}", curve.number),
        label: curve.label.clone(),
        colour: colour(curve.number).into(),
    }
}

/// A panel of curves.
pub(super) fn panel(figure: &str, title: &str, x: Quantity, y: Quantity, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let axis = |quantity: Quantity, values: Vec<f64>| {
        Axis::over(quantity.title, quantity.unit, quantity.growth, values)
    };
    let mut plot = Plot::new(
        title,
        axis(x, points().map(|(x, _)| *x).collect()),
        axis(y, points().map(|(_, y)| *y).collect()),
    );
    for curve in curves.iter().filter(|curve| curve.is_paper) {
        plot.line(&series(curve), "guide", curve.points.iter().copied());
    }
    for curve in curves.iter().filter(|curve| !curve.is_paper) {
        let series = series(curve);
        plot.line(&series, "trace", curve.points.iter().copied());
        let mark = |(x_value, y_value): &(f64, f64)| Mark {
            x: *x_value,
            y: *y_value,
            range: None,
            filled: true,
            tip: format!("{}, {} {}: {}", curve.label, x.unit.show(*x_value), x.title, y.unit.show(*y_value)),
        };
        let marks: Vec<Mark> = curve.points.iter().map(mark).collect();
        plot.marks(&series, &marks);
    }
    plot.finish(figure)
}

/// The legend of curves: one entry for each thing.
pub(super) fn legend(curves: &[Curve]) -> Vec<Key> {
    curves.iter().filter(|curve| !curve.is_paper).map(|curve| Key::series(&series(curve), "line")).collect()
}

/// The legend's entry for a curve without measurements.
pub(super) fn dashed_key(curve: &Curve) -> Key {
    Key::series(&series(curve), "dash")
}
