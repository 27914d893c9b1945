//! The way to the drive: backends, sequential streams, durable writes, and writes that do not stop.

use std::cmp::Ordering;

use flashgrain_model::{Access, Estimate};
use flashgrain_profile::schema::{InterfacePoint, Point, Sustain};
use flashgrain_profile::{DeviceProfile, describe_workload};

use super::{Drawn, Figure, Key, access_series, not_run, rate_mark};
use crate::svg::{Axis, Bar, Growth, Mark, Plot, Series, bars, colour};
use crate::unit::{self, Unit};

/// Pieces of a predicted line.
const LINE_POINTS: u32 = 64;

/// Requests per second and CPU time per request of each backend.
pub(crate) fn interface(profile: &DeviceProfile) -> Drawn {
    let points = &profile.measurements.interface;
    if points.is_empty() {
        return Err(not_run(profile, "interface"));
    }
    let title = "Backends".to_owned();
    let mut points: Vec<&InterfacePoint> = points.iter().collect();
    points.sort_by(|a, b| {
        let concurrency = |entry: &InterfacePoint| entry.point.workload.concurrency;
        concurrency(a).total_cmp(&concurrency(b)).then_with(|| a.backend.cmp(&b.backend))
    });
    let requests = |entry: &InterfacePoint| entry.point.bytes_per_second / entry.point.workload.request_bytes;
    let cpu = |entry: &InterfacePoint| entry.point.cpu_us_per_request * 1e-6;
    let panel = |words: &str, unit: Unit, value_of: &dyn Fn(&InterfacePoint) -> f64| {
        let axis = Axis::over(words, unit, Growth::Linear, points.iter().map(|entry| value_of(entry)));
        let rows: Vec<Bar> = points
            .iter()
            .map(|entry| {
                let label = format!("{}, {}", entry.backend, unit::count(entry.point.workload.concurrency));
                let value = value_of(entry);
                Bar {
                    tip: format!("{label} in flight: {}", unit.show(value)),
                    label,
                    value,
                    dot: None,
                    whisker: None,
                    shown: unit.show(value),
                    colour: if entry.backend == profile.provenance.identity.backend {
                        colour::READS
                    } else {
                        "var(--quiet)"
                    }
                    .into(),
                }
            })
            .collect();
        bars(&title, words, &axis, &rows)
    };
    let panels = vec![
        panel("Requests/s by backend and requests in flight", Unit::Count, &requests),
        panel("CPU time per request", Unit::Seconds, &cpu),
    ];
    let caption = points
        .iter()
        .max_by(|a, b| requests(a).total_cmp(&requests(b)))
        .map(|best| {
            format!(
                "Fastest: {}, {} requests per second with {} in flight and {} of CPU time each. Chosen: {} ({}).",
                best.backend,
                unit::count(requests(best)),
                unit::count(best.point.workload.concurrency),
                unit::seconds(cpu(best)),
                profile.provenance.identity.backend,
                profile.provenance.identity.backend_reason
            )
        })
        .unwrap_or_default();
    let legend = vec![Key::bar("chosen", colour::READS), Key::bar("others", "var(--quiet)")];
    Ok(Figure { id: "fig-interface".into(), title, caption, legend, panels })
}

/// Rates of streams that never jump.
pub(crate) fn sequential(profile: &DeviceProfile) -> Drawn {
    let points = &profile.measurements.sequential;
    if points.is_empty() {
        return Err(not_run(profile, "sequential"));
    }
    let title = "Sequential streams".to_owned();
    let mut sorted: Vec<&Point> = points.iter().collect();
    let key = |point: &Point| {
        let workload = &point.workload;
        [-workload.read_share, workload.request_bytes, workload.concurrency]
    };
    sorted.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal));
    let axis =
        Axis::over("rate", Unit::Rate, Growth::Linear, points.iter().map(|point| point.bytes_per_second));
    let rows: Vec<Bar> = sorted
        .into_iter()
        .map(|point| {
            let workload = &point.workload;
            let series = access_series(workload.access());
            let streams = unit::count(workload.concurrency);
            Bar {
                label: format!("{streams} × {} {}", unit::bytes(workload.request_bytes), series.label),
                value: point.bytes_per_second,
                dot: None,
                whisker: None,
                shown: unit::rate(point.bytes_per_second),
                colour: series.colour,
                tip: rate_mark(0.0, point).tip,
            }
        })
        .collect();
    let best = |access| {
        let of_access = points.iter().filter(|point| point.workload.access() == Some(access));
        of_access.max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second))
    };
    let in_words = |point: &Point| {
        format!("{}: {}", describe_workload(&point.workload), unit::rate(point.bytes_per_second))
    };
    let fastest: Vec<String> =
        [best(Access::Read), best(Access::Write)].into_iter().flatten().map(in_words).collect();
    let caption = format!("Fastest: {}. The models are not fitted to these.", fastest.join("; "));
    let panels = vec![bars(&title, "Streams × request size", &axis, &rows)];
    let accesses = [Access::Read, Access::Write].into_iter().filter(|access| best(*access).is_some());
    let series = accesses.map(|access| access_series(Some(access)));
    let legend = series.map(|series| Key::bar(&series.label, &series.colour)).collect();
    Ok(Figure { id: "fig-sequential".into(), title, caption, legend, panels })
}

/// Latency of a durable 4 KiB write, by method.
pub(crate) fn flush(profile: &DeviceProfile) -> Drawn {
    let points = &profile.measurements.flush;
    if points.is_empty() {
        return Err(not_run(profile, "flush"));
    }
    let title = "Durable 4 KiB writes".to_owned();
    let axis = Axis::over(
        "latency",
        Unit::Seconds,
        Growth::Linear,
        points.iter().map(|point| point.latency.p99_us.max(point.latency.mean_us) * 1e-6),
    );
    // By the mean, which a stream of commits pays; a few slow flushes hardly move the median.
    let durable = points.iter().filter(|point| point.sync_method().is_some());
    let best = durable.min_by(|a, b| a.latency.mean_us.total_cmp(&b.latency.mean_us));
    let rows: Vec<Bar> = points
        .iter()
        .map(|point| {
            let latency = &point.latency;
            let is_best = best.is_some_and(|best| best.method == point.method);
            Bar {
                label: point.method.clone(),
                value: latency.mean_us * 1e-6,
                dot: Some(latency.p50_us * 1e-6),
                whisker: Some(latency.p99_us * 1e-6),
                shown: unit::micros(latency.mean_us),
                colour: if is_best { colour::WRITES } else { "var(--quiet)" }.into(),
                tip: format!(
                    "{}: mean {}, median {}, 90 % {}, 99 % {}, largest {} of {} writes",
                    point.method,
                    unit::micros(latency.mean_us),
                    unit::micros(latency.p50_us),
                    unit::micros(latency.p90_us),
                    unit::micros(latency.p99_us),
                    unit::micros(latency.max_us),
                    unit::count(latency.count as f64)
                ),
            }
        })
        .collect();
    let panels = vec![bars(&title, "Mean; whisker: 99 %", &axis, &rows)];
    let legend = vec![
        Key::bar("cheapest that is durable", colour::WRITES),
        Key::bar("others", "var(--quiet)"),
        Key::mark("median", "ring"),
    ];
    let caption = match best {
        Some(best) => format!(
            "Write and flush together. Cheapest: {}, {} in the mean, {} in the median, {} at the 99th percentile.",
            best.method,
            unit::micros(best.latency.mean_us),
            unit::micros(best.latency.p50_us),
            unit::micros(best.latency.p99_us)
        ),
        None => "No method that makes a write durable was measured.".into(),
    };
    Ok(Figure { id: "fig-flush".into(), title, caption, legend, panels })
}

/// Rate of sustained random writes over time.
pub(crate) fn sustain(profile: &DeviceProfile) -> Drawn {
    let sustain = profile.measurements.sustain.as_ref().ok_or_else(|| not_run(profile, "sustain"))?;
    let rounds = &sustain.rounds;
    let series = access_series(Some(Access::Write));
    let x = Axis::over("time", Unit::Seconds, Growth::Linear, rounds.iter().map(|round| round.at_s));
    let y = Axis::over("rate", Unit::Rate, Growth::Linear, rounds.iter().map(|round| round.bytes_per_second));
    let title = "Burst and sustained writes".to_owned();
    let panel_title = format!(
        "Random writes of {}, {} in flight",
        unit::bytes(sustain.request_bytes as f64),
        sustain.concurrency
    );
    let mut plot = Plot::new(&panel_title, x, y);
    let end = rounds.last().map_or(0.0, |round| round.at_s);
    let steady_from =
        sustain.steady_from_round.and_then(|round| rounds.get(round as usize)).map(|round| round.at_s);
    if let (true, Some(from)) = (sustain.steady, steady_from) {
        plot.span(from, end);
        plot.rule(from, "steady");
    }
    let level = Series { key: "level".into(), label: "sustained rate".into(), colour: "var(--ink)".into() };
    let mut legend = vec![Key { label: "rate of a round".into(), ..Key::series(&series, "line") }];
    if let Some(rate) = sustain.sustained_bytes_per_second.value() {
        plot.line(&level, "guide", [(0.0, rate), (end, rate)]);
        legend.push(Key::series(&level, "dash"));
    }
    plot.line(&series, "trace", rounds.iter().map(|round| (round.at_s, round.bytes_per_second)));
    let marks: Vec<Mark> = rounds
        .iter()
        .map(|round| Mark {
            x: round.at_s,
            y: round.bytes_per_second,
            range: None,
            filled: true,
            tip: format!(
                "{}: {}, {} written",
                unit::seconds(round.at_s),
                unit::rate(round.bytes_per_second),
                unit::bytes(round.written_bytes as f64)
            ),
        })
        .collect();
    plot.marks(&series, &marks);
    let caption = match &sustain.sustained_bytes_per_second {
        Estimate::Determined { value, .. } => format!(
            "Writes start at {} and settle at {}: {} of the burst.",
            unit::rate(sustain.burst_bytes_per_second),
            unit::rate(*value),
            unit::share(value / sustain.burst_bytes_per_second)
        ),
        Estimate::Undetermined { why } => {
            format!("Writes start at {}; no steady state: {why}.", unit::rate(sustain.burst_bytes_per_second))
        }
    };
    Ok(Figure {
        id: "fig-sustain".into(),
        title,
        caption,
        legend,
        panels: [plot.finish("Sustained writes")].into_iter().chain(by_valid_data(sustain)).collect(),
    })
}

/// Steady rates by the volume of valid data, with the line of the term for garbage collection.
fn by_valid_data(sustain: &Sustain) -> Option<String> {
    let states = &sustain.by_valid_data;
    let [least, .., most] = &states[..] else { return None };
    let series = access_series(Some(Access::Write));
    let x =
        Axis::over("valid data", Unit::Bytes, Growth::Linear, states.iter().map(|state| state.valid_bytes));
    let y = Axis::over("rate", Unit::Rate, Growth::Linear, states.iter().map(|state| state.bytes_per_second));
    let mut plot = Plot::new("Steady rate by the volume of valid data", x, y);
    if let Some(term) = &sustain.collection {
        let step = (most.valid_bytes - least.valid_bytes) / f64::from(LINE_POINTS);
        let volumes = (0..=LINE_POINTS).map(|point| least.valid_bytes + f64::from(point) * step);
        let line = volumes.filter_map(|bytes| Some((bytes, term.bytes_per_second(bytes)?)));
        plot.line(&series, "trace", line);
    }
    let marks: Vec<Mark> = states
        .iter()
        .map(|state| Mark {
            x: state.valid_bytes,
            y: state.bytes_per_second,
            range: None,
            filled: true,
            tip: format!("{} valid: {}", unit::bytes(state.valid_bytes), unit::rate(state.bytes_per_second)),
        })
        .collect();
    plot.marks(&series, &marks);
    Some(plot.finish("Sustained writes by valid data"))
}
