//! Throughput over the share of random pages: the MQSSD grid with all four models' predictions.

use flashgrain_model::{Access, ComparedPoint, Comparison, ModelName, Models, Workload};
use flashgrain_profile::schema::Point;
use flashgrain_profile::{DeviceProfile, describe_workload};

use super::{Drawn, Figure, Key, distinct, measured_in_words, not_run, predicted_rate, ramp_series};
use crate::facts::kind_name;
use crate::svg::{Axis, Growth, Mark, Plot, Series};
use crate::unit::{self, Unit};

const PAGE_BYTES: f64 = 4096.0;

/// One panel per model. With a comparison, predictions come from fits that saw only the training points;
/// without one, from those to everything.
pub(crate) fn order(profile: &DeviceProfile, access: Access) -> Drawn {
    let is_of_kind = |workload: &Workload| workload.access() == Some(access);
    let points: Vec<ComparedPoint> = match &profile.comparison {
        Some(comparison) => {
            let of_order = comparison.points.iter().filter(|point| point.experiment == "order");
            of_order.filter(|point| is_of_kind(&point.workload)).cloned().collect()
        }
        None => {
            let measured = profile.measurements.order.iter().filter(|point| is_of_kind(&point.workload));
            measured.map(|point| predicted_by_all(point, profile.models.as_ref())).collect()
        }
    };
    if points.is_empty() {
        return Err(not_run(profile, "order"));
    }
    let comparison = profile.comparison.as_ref();
    let concurrencies = distinct(points.iter().map(|point| point.workload.concurrency));
    let series = ramp_series("k", &concurrencies, |k| format!("k = {}", unit::count(k)));

    let title = format!("Throughput of {} over the share of random pages", kind_name(Some(access)));
    let x = Axis::over("random pages r", Unit::Share, Growth::Log, points.iter().map(random_pages));
    let y = Axis::over("throughput", Unit::Rate, Growth::Log, shown_rates(&points));
    let panels = ModelName::ALL
        .iter()
        .map(|model| {
            let mut plot = Plot::new(&panel_title(comparison, access, *model), x.clone(), y.clone());
            for (k, series) in &series {
                draw_series(&mut plot, series, &points, *k, *model);
            }
            plot.finish(&title)
        })
        .collect();

    let mut legend: Vec<Key> = series.iter().map(|(_, series)| Key::series(series, "line")).collect();
    legend.push(Key::mark("predicted", "line"));
    legend.push(Key::mark("measured, held out", "dot"));
    legend.push(Key::mark("measured, used for fitting", "ring"));
    let id = if access == Access::Read { "fig-order-reads" } else { "fig-order-writes" };
    Ok(Figure { id: id.into(), title, caption: caption(comparison, access), legend, panels })
}

/// A measured point with the predictions of the fits to all samples.
fn predicted_by_all(point: &Point, models: Option<&Models>) -> ComparedPoint {
    let models = models.into_iter().flat_map(Models::iter);
    ComparedPoint {
        experiment: "order".into(),
        workload: point.workload,
        bytes_per_second: point.bytes_per_second,
        bytes_per_second_min: point.bytes_per_second_min,
        bytes_per_second_max: point.bytes_per_second_max,
        repeats: point.repeats as usize,
        held_out: false,
        predicted_bytes_per_second: models
            .filter_map(|model| Some((model.name(), predicted_rate(model, &point.workload)?)))
            .collect(),
    }
}

fn random_pages(point: &ComparedPoint) -> f64 {
    point.workload.random_pages_share(PAGE_BYTES)
}

/// Everything measured, and predictions as far as they stay near; a model that is wrong by more leaves the
/// frame.
fn shown_rates(points: &[ComparedPoint]) -> Vec<f64> {
    let measured = points.iter().map(|point| point.bytes_per_second);
    let low = measured.clone().fold(f64::INFINITY, f64::min) / 2.0;
    let high = measured.clone().fold(0.0, f64::max) * 2.0;
    let ranges = points.iter().flat_map(|point| [point.bytes_per_second_min, point.bytes_per_second_max]);
    let predicted = points
        .iter()
        .flat_map(|point| point.predicted_bytes_per_second.iter().map(|(_, rate)| rate.clamp(low, high)));
    measured.chain(ranges).chain(predicted).collect()
}

fn draw_series(plot: &mut Plot, series: &Series, points: &[ComparedPoint], k: f64, model: ModelName) {
    let mut of_series: Vec<&ComparedPoint> =
        points.iter().filter(|point| point.workload.concurrency == k).collect();
    of_series.sort_by(|a, b| random_pages(a).total_cmp(&random_pages(b)));
    let predictions =
        of_series.iter().filter_map(|point| Some((random_pages(point), point.predicted(model)?)));
    plot.line(series, "fit", predictions);
    let marks: Vec<Mark> = of_series
        .iter()
        .map(|point| Mark {
            x: random_pages(point),
            y: point.bytes_per_second,
            range: Some((point.bytes_per_second_min, point.bytes_per_second_max)),
            filled: point.held_out,
            tip: tip(point, model),
        })
        .collect();
    plot.marks(series, &marks);
}

fn tip(point: &ComparedPoint, model: ModelName) -> String {
    let measured = measured_in_words(
        point.bytes_per_second,
        point.bytes_per_second_min,
        point.bytes_per_second_max,
        point.repeats,
    );
    let predicted = point.predicted(model).map_or_else(
        || format!("{model} says nothing"),
        |rate| {
            let error = rate / point.bytes_per_second - 1.0;
            let sign = if error < 0.0 { "−" } else { "+" };
            format!("{model} {} ({sign}{})", unit::rate(rate), unit::share(error.abs()))
        },
    );
    let held_out = if point.held_out { "; held out" } else { "" };
    format!("{}: measured {measured}, {predicted}{held_out}", describe_workload(&point.workload))
}

fn panel_title(comparison: Option<&Comparison>, access: Access, model: ModelName) -> String {
    match median_error(comparison, access, model) {
        Some(error) => format!("{model} · median error {}", unit::share(error)),
        None => model.to_string(),
    }
}

fn median_error(comparison: Option<&Comparison>, access: Access, model: ModelName) -> Option<f64> {
    let row = comparison?.rows.iter().find(|row| row.model == model && row.access == Some(access))?;
    Some(row.median_relative_error)
}

fn caption(comparison: Option<&Comparison>, access: Access) -> String {
    let mut errors: Vec<(ModelName, f64)> = ModelName::ALL
        .iter()
        .filter_map(|model| Some((*model, median_error(comparison, access, *model)?)))
        .collect();
    errors.sort_by(|a, b| a.1.total_cmp(&b.1));
    let Some(((best, error), others)) = errors.split_first() else {
        return "Nothing was held out: the lines are those of models fitted to these very points.".into();
    };
    let others: Vec<String> =
        others.iter().map(|(model, error)| format!("{model} {}", unit::share(*error))).collect();
    let noise = comparison
        .and_then(|comparison| comparison.noise_floor.iter().find(|floor| floor.access == Some(access)))
        .map_or_else(String::new, |floor| {
            format!(" A repeat misses the others by {}.", unit::share(floor.median_relative_error))
        });
    let rest = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    format!(
        "{best} is closest: it misses held-out points of all experiments by {} in the median{rest}.{noise} Lines that leave a panel are wrong by more than a factor of two.",
        unit::share(*error)
    )
}
