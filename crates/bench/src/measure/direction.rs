//! Rate and latency of requests of one direction, and the table of them.

use flashgrain_profile::load::Measured;
use flashgrain_profile::schema::Latency;
use flashgrain_report::unit;
use hdrhistogram::Histogram;
use serde::Serialize;

/// Rate and latency of one direction.
#[derive(Debug, Serialize)]
pub struct Direction {
    /// Completed in the measured time.
    pub requests_per_s: f64,
    /// Bandwidth of these requests.
    pub bytes_per_s: f64,
    /// Latency of each request.
    pub latency: Latency,
}

impl Direction {
    /// `None` if nothing was read.
    pub fn of_reads(measured: &Measured) -> Option<Self> {
        Self::new(measured.bytes_read, &measured.read_latency_ns, measured.elapsed.seconds())
    }

    /// `None` if nothing was written.
    pub fn of_writes(measured: &Measured) -> Option<Self> {
        Self::new(measured.bytes_written, &measured.write_latency_ns, measured.elapsed.seconds())
    }

    /// `None` if nothing was completed.
    pub fn new(bytes: u64, latency_ns: &Histogram<u64>, elapsed_s: f64) -> Option<Self> {
        (!latency_ns.is_empty()).then(|| Self {
            requests_per_s: latency_ns.len() as f64 / elapsed_s,
            bytes_per_s: bytes as f64 / elapsed_s,
            latency: Latency::of(latency_ns),
        })
    }
}

/// A line for each of two directions.
pub fn directions_table(read: Option<&Direction>, write: Option<&Direction>) -> String {
    let rows = [("reads", read), ("writes", write)];
    table(rows.into_iter().filter_map(|(name, direction)| Some((name.to_owned(), direction?))))
}

/// A line per direction with its name.
pub fn table<'a>(rows: impl Iterator<Item = (String, &'a Direction)>) -> String {
    let rows: Vec<_> = rows.collect();
    let width = rows.iter().map(|(name, _)| name.len() + 1).max().unwrap_or(0).max(7);
    let mut text = format!(
        "{:<width$}{:>9}{:>14}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
        "", "IOPS", "bandwidth", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"
    );
    if rows.is_empty() {
        text += "nothing was completed in the measured time\n";
    }
    for (name, Direction { requests_per_s, bytes_per_s, latency }) in rows {
        text += &format!("{name:<width$}{:>9}{:>14}", unit::count(*requests_per_s), unit::rate(*bytes_per_s));
        let Latency { mean_us, p50_us, p90_us, p99_us, p99_9_us, p99_99_us, max_us, .. } = latency;
        for micros in [mean_us, p50_us, p90_us, p99_us, p99_9_us, p99_99_us, max_us] {
            text += &format!("{:>10}", unit::micros(*micros));
        }
        text.push('\n');
    }
    text
}
