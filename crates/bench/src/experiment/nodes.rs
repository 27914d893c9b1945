//! Look-ups and range queries over sizes of nodes, compared with the predictions of the drive's profile: the
//! question of the dictionaries paper, §5 and §7, about this project's own B+-tree.

use std::sync::atomic::Ordering;

use flashgrain::Stats;
use flashgrain_advisor::Interval;
use flashgrain_advisor::engine::TreeStructure;
use flashgrain_report::unit;
use serde::Serialize;

use super::{Experiment, Operation, operate};
use crate::store::{Options, StoreLocation};

/// All sizes, and how well the predictions did.
#[derive(Debug, Serialize)]
pub struct NodesResult {
    target: String,
    records: u64,
    record_bytes: u64,
    cache_bytes: u64,
    clients: u32,
    range_bytes: u64,
    seed: u64,
    lookups: Curve,
    ranges: Curve,
    /// It was ended early: sizes are missing.
    pub interrupted: bool,
}

/// Operations of one kind over the size of a node.
#[derive(Debug, Serialize)]
struct Curve {
    points: Vec<Point>,
    /// Median over the sizes of the predictions' error, as a share of the measured value.
    median_error: f64,
    /// Size with the highest measured rate.
    best_bytes: u64,
    /// Size with the highest predicted rate.
    predicted_best_bytes: u64,
    /// Measured rate of the size that was predicted to be best over the highest measured rate.
    predicted_best_over_best: f64,
}

/// A node size.
#[derive(Clone, Copy, Debug, Serialize)]
struct Point {
    node_bytes: u64,
    operations_per_s: f64,
    reads_per_operation: f64,
    predicted: Interval,
}

/// Fills a store with nodes of each of `sizes_bytes`, and measures look-ups and range queries of
/// `range_bytes`.
///
/// # Errors
/// [`Error::Argument`](flashgrain_profile::Error::Argument) without a profile, otherwise errors of the
/// target and the stores.
pub fn nodes(
    mut experiment: Experiment<'_>,
    sizes_bytes: &[u64],
    range_bytes: u64,
) -> anyhow::Result<NodesResult> {
    let prediction = experiment.prepare_predictions()?;
    let record_bytes = experiment.options.records.record_bytes();
    let range_records = u32::try_from(range_bytes / record_bytes.max(1)).unwrap_or(u32::MAX).max(1);
    let asked = [Operation::Lookup, Operation::Range(range_records)];
    let mut curves = [Vec::new(), Vec::new()];
    for &node_bytes in sizes_bytes {
        experiment.listener.note(&format!("nodes of {}", unit::bytes(node_bytes as f64)));
        experiment.options.store.node_bytes = Some(node_bytes);
        let place = experiment.place()?;
        let measured = measure(&experiment, &place, asked);
        place.remove()?;
        let Some(rates) = measured? else { break };
        for ((curve, operation), (operations_per_s, reads_per_operation, stats)) in
            curves.iter_mut().zip(asked).zip(&rates)
        {
            let tree = (TreeStructure::BTree, node_bytes);
            let predicted = prediction.of(&experiment.options, operation, tree, stats).rate_per_second;
            let (operations_per_s, reads_per_operation) = (*operations_per_s, *reads_per_operation);
            curve.push(Point { node_bytes, operations_per_s, reads_per_operation, predicted });
        }
    }
    let [lookups, ranges] = curves;
    let Options { records, store, seed, .. } = &experiment.options;
    Ok(NodesResult {
        target: experiment.options.target.display().to_string(),
        records: records.count,
        record_bytes,
        cache_bytes: store.cache_bytes,
        clients: store.tasks,
        range_bytes: u64::from(range_records) * record_bytes,
        seed: *seed,
        interrupted: lookups.len() < sizes_bytes.len(),
        lookups: Curve::of(lookups),
        ranges: Curve::of(ranges),
    })
}

/// Operations per second, reads of each, and the state after them, of the operations on one store, one after
/// the other; `None` if the user ended it.
fn measure(
    experiment: &Experiment<'_>,
    place: &StoreLocation,
    asked: [Operation; 2],
) -> anyhow::Result<Option<Vec<(f64, f64, Stats)>>> {
    let mut store = experiment.filled(place)?;
    let mut rates = Vec::new();
    for operation in asked {
        let driven = operate(&mut store, operation, &experiment.options, experiment.interrupt)?;
        if driven.is_interrupted || experiment.interrupt.load(Ordering::Relaxed) {
            store.close()?;
            return Ok(None);
        }
        let operations = driven.tally.operations() as f64;
        let reads = driven.after.device.reads - driven.before.device.reads;
        rates.push((
            operations / driven.elapsed.as_secs_f64(),
            reads as f64 / operations.max(1.0),
            driven.after,
        ));
    }
    store.close()?;
    Ok(Some(rates))
}

impl Curve {
    fn of(points: Vec<Point>) -> Self {
        let best = |of: fn(&Point) -> f64| {
            points.iter().max_by(|a, b| of(a).total_cmp(&of(b))).copied().unwrap_or(Point::NONE)
        };
        let measured = best(|point| point.operations_per_s);
        let predicted = best(|point| point.predicted.value);
        let mut errors: Vec<f64> = points.iter().map(Point::error).collect();
        errors.sort_by(f64::total_cmp);
        Self {
            median_error: errors.get(errors.len() / 2).copied().unwrap_or(0.0),
            best_bytes: measured.node_bytes,
            predicted_best_bytes: predicted.node_bytes,
            predicted_best_over_best: predicted.operations_per_s / measured.operations_per_s,
            points,
        }
    }
}

impl Point {
    const NONE: Self = Self {
        node_bytes: 0,
        operations_per_s: 0.0,
        reads_per_operation: 0.0,
        predicted: Interval { low: 0.0, value: 0.0, high: 0.0 },
    };

    /// The prediction's error, as a share of the measured value.
    fn error(&self) -> f64 {
        (self.predicted.value / self.operations_per_s - 1.0).abs()
    }
}

impl NodesResult {
    /// The result as tables for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{}: {} of {} bytes, {} of cache, {}, seed {}\n",
            self.target,
            unit::things(self.records, "record"),
            self.record_bytes,
            unit::bytes(self.cache_bytes as f64),
            unit::things(self.clients.into(), "client"),
            self.seed
        );
        let ranges = format!("range queries of {}", unit::bytes(self.range_bytes as f64));
        for (name, curve) in [("look-ups", &self.lookups), (ranges.as_str(), &self.ranges)] {
            text += &format!(
                "\n{name}\n{:>10} {:>12} {:>12} {:>26} {:>8} {:>10}\n",
                "node", "measured/s", "predicted/s", "interval", "ratio", "reads each"
            );
            for point in &curve.points {
                let Interval { low, value, high } = point.predicted;
                text += &format!(
                    "{:>10} {:>12} {:>12} {:>26} {:>8.2} {:>10.2}\n",
                    unit::bytes(point.node_bytes as f64),
                    unit::count(point.operations_per_s),
                    unit::count(value),
                    format!("{} to {}", unit::count(low), unit::count(high)),
                    value / point.operations_per_s,
                    point.reads_per_operation
                );
            }
            text += &format!(
                "median error {}; best measured {}, best predicted {}, which reaches {} of the best\n",
                unit::share(curve.median_error),
                unit::bytes(curve.best_bytes as f64),
                unit::bytes(curve.predicted_best_bytes as f64),
                unit::share(curve.predicted_best_over_best)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(node_bytes: u64, operations_per_s: f64, predicted: f64) -> Point {
        Point {
            node_bytes,
            operations_per_s,
            reads_per_operation: 1.0,
            predicted: Interval::exact(predicted),
        }
    }

    #[test]
    fn a_curve_knows_its_best_sizes_and_its_error() {
        let points = vec![point(4096, 100.0, 110.0), point(8192, 90.0, 120.0), point(16384, 50.0, 50.0)];
        let curve = Curve::of(points);
        assert_eq!((curve.best_bytes, curve.predicted_best_bytes), (4096, 8192));
        assert!((curve.predicted_best_over_best - 0.9).abs() < 1e-9, "{curve:?}");
        assert!((curve.median_error - 0.1).abs() < 1e-9, "{curve:?}");
    }
}
