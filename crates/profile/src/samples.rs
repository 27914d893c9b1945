//! The raw samples of a profile, in files next to it: tidy CSV of throughputs, and JSON lines of everything
//! else.

use std::io::Write;

use serde::Serialize;

use crate::schema::Regime;
use crate::series::{Repeat, Series};
use crate::trial::Work;

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct Samples {
    /// All trials of the experiments.
    pub series: Vec<Series>,
    /// The trials of the verification.
    pub verification: Vec<Series>,
}

/// A line of the CSV. The first columns are the model crate's, so that `compare` reads the file as it is.
#[derive(Serialize)]
struct Row<'a> {
    experiment: &'a str,
    repeat: u32,
    read_share: f64,
    request_bytes: f64,
    random_share: f64,
    concurrency: f64,
    bytes_per_second: f64,
    requests_per_second: f64,
    seconds: f64,
    cpu_us_per_request: f64,
    read_p50_us: Option<f64>,
    read_p99_us: Option<f64>,
    write_p50_us: Option<f64>,
    write_p99_us: Option<f64>,
    variant: Option<&'a str>,
    seed: u64,
    order: u32,
}

/// A repeat of a load with all its circumstances, as a JSON line.
#[derive(Serialize)]
struct LoadLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    row: Row<'a>,
}

/// The latencies of one group in one round of a sweep, as a JSON line.
#[derive(Serialize)]
struct SweepLine<'a> {
    kind: &'static str,
    experiment: &'a str,
    sweep: u32,
    read_bytes: u32,
    /// The write request size (`request-size`) or the offset into the chunk (`location`).
    group_bytes: u64,
    latencies_us: Vec<f64>,
}

fn row<'a>(series: &'a Series, index: usize, repeat: &Repeat) -> Option<Row<'a>> {
    let workload = series.trial.workload()?;
    Some(Row {
        experiment: series.trial.experiment.as_str(),
        repeat: index as u32,
        read_share: workload.read_share,
        request_bytes: workload.request_bytes,
        random_share: workload.random_share,
        concurrency: workload.concurrency,
        bytes_per_second: repeat.bytes_per_second,
        requests_per_second: repeat.requests_per_second,
        seconds: repeat.seconds,
        cpu_us_per_request: repeat.cpu_us_per_request,
        read_p50_us: repeat.read_p50_us,
        read_p99_us: repeat.read_p99_us,
        write_p50_us: repeat.write_p50_us,
        write_p99_us: repeat.write_p99_us,
        variant: series.trial.variant.as_deref().or(series.trial.regime.map(Regime::as_str)),
        seed: repeat.seed,
        order: repeat.order,
    })
}

/// Whether the models were fitted to it. Bursts have models of their own.
fn is_fitted(series: &Series) -> bool {
    series.trial.experiment.feeds_models() && series.trial.regime != Some(Regime::Burst)
}

fn rows(series: &Series) -> impl Iterator<Item = Row<'_>> {
    series.repeats.iter().enumerate().filter_map(|(index, repeat)| row(series, index, repeat))
}

impl Samples {
    /// Writes the throughputs that the models were fitted to, one line per repeat.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_csv<W: Write>(&self, writer: W) -> std::io::Result<()> {
        let mut csv = csv::Writer::from_writer(writer);
        for series in self.series.iter().filter(|series| is_fitted(series)) {
            for row in rows(series) {
                csv.serialize(row).map_err(std::io::Error::other)?;
            }
        }
        csv.flush()
    }

    /// Writes everything else: repeats of `sequential`, `interface`, `flush` and the verification, and every
    /// latency of the sweeps.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_json_lines<W: Write>(&self, mut writer: W) -> std::io::Result<()> {
        for series in &self.series {
            match &series.trial.work {
                Work::Load(_) if is_fitted(series) => {}
                Work::Load(_) => load_lines(&mut writer, series, "load")?,
                Work::Sweep(sweep) => sweep_lines(&mut writer, series, sweep)?,
            }
        }
        self.verification.iter().try_for_each(|series| load_lines(&mut writer, series, "verification"))?;
        writer.flush()
    }
}

fn load_lines<W: Write>(writer: &mut W, series: &Series, kind: &'static str) -> std::io::Result<()> {
    rows(series).try_for_each(|row| line(writer, &LoadLine { kind, row }))
}

fn sweep_lines<W: Write>(
    writer: &mut W,
    series: &Series,
    sweep: &crate::trial::Sweep,
) -> std::io::Result<()> {
    let rounds: std::collections::BTreeSet<u32> = series.reads.iter().map(|read| read.sweep).collect();
    for round in rounds {
        // A label may have several regions.
        let labels: std::collections::BTreeSet<u64> = sweep.groups.iter().map(|group| group.label).collect();
        for label in labels {
            let of_group = |read: &&crate::series::SweepRead| read.sweep == round && read.label == label;
            let latencies_us: Vec<f64> =
                series.reads.iter().filter(of_group).map(|read| read.latency_us).collect();
            if latencies_us.is_empty() {
                continue;
            }
            line(
                writer,
                &SweepLine {
                    kind: "sweep",
                    experiment: series.trial.experiment.as_str(),
                    sweep: round,
                    read_bytes: sweep.length_bytes,
                    group_bytes: label,
                    latencies_us,
                },
            )?;
        }
    }
    Ok(())
}

fn line<W: Write, T: Serialize>(writer: &mut W, value: &T) -> std::io::Result<()> {
    serde_json::to_writer(&mut *writer, value).map_err(std::io::Error::other)?;
    writer.write_all(b"\n")
}
