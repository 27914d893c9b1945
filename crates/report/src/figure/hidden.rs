//! The request-size and location profiles (hidden-parameters paper, Experiments 1 and 2).

use flashgrain_model::Estimate;
use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::{LearnedValue, LocationPoint};

use super::{Drawn, Figure, Key, distinct, not_run, ramp_series};
use crate::svg::{Axis, Growth, Mark, Plot, Series, colour};
use crate::unit::{self, Unit};

fn in_words(name: &str, value: &LearnedValue, unit: Unit) -> String {
    match &value.estimate {
        Estimate::Determined { value: number, .. } => {
            format!("{name}: {}, {}", unit.show(*number), value.evidence)
        }
        Estimate::Undetermined { why } => format!("{name}: undetermined, {why}"),
    }
}

/// Latency of reads over the size of the writes that made what they read.
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
        let mut marks: Vec<Mark> = points
            .iter()
            .filter(|point| point.read_request_bytes as f64 == *read)
            .map(|point| Mark {
                x: point.write_request_bytes as f64,
                y: point.latency.mean_us * 1e-6,
                range: Some((point.mean_low_us * 1e-6, point.mean_high_us * 1e-6)),
                filled: true,
                tip: format!(
                    "written by {}, read by {}: mean {} ({} – {})",
                    unit::bytes(point.write_request_bytes as f64),
                    unit::bytes(*read),
                    unit::micros(point.latency.mean_us),
                    unit::micros(point.mean_low_us),
                    unit::micros(point.mean_high_us)
                ),
            })
            .collect();
        marks.sort_by(|a, b| a.x.total_cmp(&b.x));
        plot.line(series, "trace", marks.iter().map(|mark| (mark.x, mark.y)));
        plot.marks(series, &marks);
    }
    let mut legend: Vec<Key> = series.iter().map(|(_, series)| Key::series(series, "line")).collect();
    legend.push(Key::mark("mean, 95 % interval", "dot"));
    let caption = format!(
        "{}. {}.",
        in_words("Desirable write size", learned, Unit::Bytes),
        in_words("Stripe size", &profile.learned.stripe_bytes, Unit::Bytes)
    );
    let title = "Request-size profile".to_owned();
    let panels = vec![plot.finish("Request-size profile")];
    Ok(Figure { id: "fig-request-size", title, caption, legend, panels })
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
    let panels = distinct(points.iter().map(|point| point.chunk_bytes as f64))
        .into_iter()
        .map(|size| {
            let here: Vec<&LocationPoint> =
                points.iter().filter(|point| point.chunk_bytes as f64 == size).collect();
            let hot = hot.filter(|_| chunk == Some(size));
            location_panel(&title, size, &here, hot)
        })
        .collect();
    let caption = format!(
        "{}. {}. {}. The vertical axes start at zero.",
        in_words("Chunk size", &learned.chunk_bytes, Unit::Bytes),
        in_words("Hot offset", &learned.hot_offset_bytes, Unit::Bytes),
        in_words("Flash page", &learned.flash_page_bytes, Unit::Bytes)
    );
    let legend = vec![Key::mark("mean of the offset group, 95 % interval", "dot")];
    Ok(Figure { id: "fig-location", title, caption, legend, panels })
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
    let mut marks: Vec<Mark> = points
        .iter()
        .map(|point| Mark {
            x: point.offset_bytes as f64,
            y: point.latency.mean_us * 1e-6,
            range: Some((point.mean_low_us * 1e-6, point.mean_high_us * 1e-6)),
            filled: true,
            tip: format!(
                "chunk {}, offset {}: mean {} ({} – {})",
                unit::bytes(chunk),
                unit::bytes(point.offset_bytes as f64),
                unit::micros(point.latency.mean_us),
                unit::micros(point.mean_low_us),
                unit::micros(point.mean_high_us)
            ),
        })
        .collect();
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    plot.line(&series, "trace", marks.iter().map(|mark| (mark.x, mark.y)));
    plot.marks(&series, &marks);
    plot.finish(figure)
}
