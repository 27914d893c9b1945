//! The request-size and location profiles (hidden-parameters paper, Experiments 1 and 2).

use flashgrain_model::Estimate;
use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::{Latency, LearnedValue, LocationPoint};

use super::{Drawn, Figure, Key, distinct, not_run, ramp_series};
use crate::svg::{Axis, Growth, Mark, Plot, Series, colour};
use crate::unit::{self, Unit};

/// Learned values, in sentences; values that are undetermined for the same reason share a sentence.
fn in_words(values: &[(&str, &LearnedValue, Unit)]) -> String {
    let mut sentences = Vec::new();
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, value, unit) in values {
        match &value.estimate {
            Estimate::Determined { value: number, .. } => {
                sentences.push(format!("{} is {}: {}.", capital(name), unit.show(*number), value.evidence));
            }
            Estimate::Undetermined { why } => match reasons.iter_mut().find(|(reason, _)| reason == why) {
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            },
        }
    }
    for (why, names) in reasons {
        let (verb, names) = match names.split_last() {
            Some((last, [])) => ("is", (*last).to_owned()),
            Some((last, others)) => ("are", format!("{} and {last}", others.join(", "))),
            None => continue,
        };
        sentences.push(format!("{} {verb} undetermined: {why}.", capital(&names)));
    }
    sentences.join(" ")
}

fn capital(words: &str) -> String {
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Means with their intervals, joined; medians dashed, because single slow reads do not move them.
fn draw_latencies(plot: &mut Plot, series: &Series, mut marks: Vec<Mark>, mut medians: Vec<(f64, f64)>) {
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    plot.line(series, "guide", medians);
    plot.line(series, "trace", marks.iter().map(|mark| (mark.x, mark.y)));
    plot.marks(series, &marks);
}

fn latency_mark(x: f64, latency: &Latency, low_us: f64, high_us: f64, label: &str) -> Mark {
    Mark {
        x,
        y: latency.mean_us * 1e-6,
        range: Some((low_us * 1e-6, high_us * 1e-6)),
        filled: true,
        tip: format!(
            "{label}: mean {} ({} – {}), median {} of {} reads",
            unit::micros(latency.mean_us),
            unit::micros(low_us),
            unit::micros(high_us),
            unit::micros(latency.p50_us),
            unit::count(latency.count as f64)
        ),
    }
}

/// Latency of reads over the size of the writes that wrote the data.
pub(crate) fn request_size(profile: &DeviceProfile) -> Drawn {
    let points = &profile.measurements.request_size;
    if points.is_empty() {
        return Err(not_run(profile, "request-size"));
    }
    let reads = distinct(points.iter().map(|point| point.read_request_bytes as f64));
    let series = ramp_series("r", &reads, |size| format!("reads of {}", unit::bytes(size)));
    let x = Axis::over(
        "size of the writes before",
        Unit::Bytes,
        Growth::Log2,
        points.iter().map(|p| p.write_request_bytes as f64),
    );
    let y = Axis::over(
        "mean read latency",
        Unit::Seconds,
        Growth::Log,
        points.iter().flat_map(|p| [p.mean_low_us * 1e-6, p.mean_high_us * 1e-6]),
    );
    let mut plot = Plot::new("Reads after sequential writes of one size", x, y);
    let learned = &profile.learned.desirable_write_bytes;
    if let Some(size) = learned.estimate.value() {
        let largest = points.iter().map(|point| point.write_request_bytes as f64).fold(size, f64::max);
        plot.span(size, largest * 2.0);
        plot.rule(size, &format!("desirable from {}", unit::bytes(size)));
    }
    for (read, series) in &series {
        let here = || points.iter().filter(|point| point.read_request_bytes as f64 == *read);
        let marks = here().map(|point| {
            let written = point.write_request_bytes as f64;
            let label = format!("written by {}, read by {}", unit::bytes(written), unit::bytes(*read));
            latency_mark(written, &point.latency, point.mean_low_us, point.mean_high_us, &label)
        });
        let medians = here().map(|point| (point.write_request_bytes as f64, point.latency.p50_us * 1e-6));
        draw_latencies(&mut plot, series, marks.collect(), medians.collect());
    }
    let mut legend: Vec<Key> = series.iter().map(|(_, series)| Key::series(series, "line")).collect();
    legend.push(Key::mark("mean, 95 % interval", "dot"));
    legend.push(Key::mark("median", "dash"));
    let caption = in_words(&[
        ("the smallest desirable write size", learned, Unit::Bytes),
        ("the stripe size", &profile.learned.stripe_bytes, Unit::Bytes),
    ]);
    let title = "Request-size profile".to_owned();
    let panels = vec![plot.finish("Request-size profile")];
    Ok(Figure { id: "fig-request-size".into(), title, caption, legend, panels })
}

/// Latency over the offset into a supposed chunk, one panel per chunk size.
pub(crate) fn location(profile: &DeviceProfile) -> Drawn {
    let points = &profile.measurements.location;
    if points.is_empty() {
        return Err(not_run(profile, "location"));
    }
    let title = "Location profile".to_owned();
    let learned = &profile.learned;
    let chunk = learned.chunk_bytes.estimate.value();
    let hot = learned.hot_offset_bytes.estimate.value();
    let tried = distinct(points.iter().map(|point| point.chunk_bytes as f64));
    let shown = around(&tried, chunk);
    let panels = shown
        .iter()
        .map(|&size| {
            let here: Vec<&LocationPoint> =
                points.iter().filter(|point| point.chunk_bytes as f64 == size).collect();
            let hot = hot.filter(|_| chunk == Some(size));
            location_panel(&title, size, &here, hot)
        })
        .collect();
    let mut caption = in_words(&[
        ("the chunk size", &learned.chunk_bytes, Unit::Bytes),
        ("the offset of hot locations", &learned.hot_offset_bytes, Unit::Bytes),
        ("the flash page size", &learned.flash_page_bytes, Unit::Bytes),
    ]);
    caption.push_str(" The vertical axes start at zero.");
    if shown.len() < tried.len() {
        let others = tried.len() - shown.len();
        caption += &format!(" Results for {others} other supposed sizes are in the profile.");
    }
    let legend =
        vec![Key::mark("mean of the offset group, 95 % interval", "dot"), Key::mark("median", "dash")];
    Ok(Figure { id: "fig-location".into(), title, caption, legend, panels })
}

/// The sizes to look at: those around the learned one, or some from the smallest to the largest.
fn around(tried: &[f64], learned: Option<f64>) -> Vec<f64> {
    const PANELS_MAX: usize = 6;
    let spare = tried.len().saturating_sub(PANELS_MAX);
    if let Some(place) = tried.iter().position(|size| Some(*size) == learned) {
        let first = place.saturating_sub(PANELS_MAX / 2 - 1).min(spare);
        return tried.iter().copied().skip(first).take(PANELS_MAX).collect();
    }
    let last = tried.len().saturating_sub(1);
    let panels = tried.len().min(PANELS_MAX);
    (0..panels)
        .filter_map(|panel| tried.get(panel * last / panels.max(2).saturating_sub(1)))
        .copied()
        .collect()
}

fn location_panel(figure: &str, chunk: f64, points: &[&LocationPoint], hot: Option<f64>) -> String {
    let series = Series { key: "mean".into(), label: "mean".into(), colour: colour::READS.into() };
    let title = match hot {
        Some(_) => format!("Chunks of {} · learned", unit::bytes(chunk)),
        None => format!("Chunks of {}", unit::bytes(chunk)),
    };
    let x = Axis::exactly("offset into the chunk", Unit::Bytes, 0.0, chunk);
    let y = Axis::over(
        "mean read latency",
        Unit::Seconds,
        Growth::Linear,
        points.iter().map(|p| p.mean_high_us * 1e-6),
    );
    let mut plot = Plot::new(&title, x, y);
    if let Some(offset) = hot {
        plot.rule(offset, &format!("hot at {}", unit::bytes(offset)));
    }
    let marks = points.iter().map(|point| {
        let offset = point.offset_bytes as f64;
        let label = format!("chunk {}, offset {}", unit::bytes(chunk), unit::bytes(offset));
        latency_mark(offset, &point.latency, point.mean_low_us, point.mean_high_us, &label)
    });
    let medians = points.iter().map(|point| (point.offset_bytes as f64, point.latency.p50_us * 1e-6));
    draw_latencies(&mut plot, &series, marks.collect(), medians.collect());
    plot.finish(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_sizes_around_the_learned_one_are_drawn() {
        let tried: Vec<f64> = (1..=18).map(f64::from).collect();
        assert_eq!(around(&tried, Some(9.0)), [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
        assert_eq!(around(&tried, Some(1.0)), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(around(&tried, Some(18.0)), [13.0, 14.0, 15.0, 16.0, 17.0, 18.0]);
        assert_eq!(around(&tried, None), [1.0, 4.0, 7.0, 11.0, 14.0, 18.0]);
        assert_eq!(around(&[4.0, 8.0], None), [4.0, 8.0]);
        assert_eq!(around(&[4.0], None), [4.0]);
    }
}
