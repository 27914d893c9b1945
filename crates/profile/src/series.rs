//! Results of the repeats of one trial.

use flashgrain_model::Sample;
use hdrhistogram::Histogram;

use crate::load::Measured;
use crate::schema::{Latency, Point};
use crate::stats::{mean, median, relative_half_width};
use crate::trial::{Trial, Work};

/// A trial and its repeats so far.
#[derive(Debug)]
pub struct Series {
    /// The trial.
    pub trial: Trial,
    /// Repeats of a load, in order of time.
    pub repeats: Vec<Repeat>,
    /// Reads of a sweep, in order of time.
    pub reads: Vec<SweepRead>,
    read_latency: Latencies,
    write_latency: Latencies,
}

/// One repeat of a load.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repeat {
    /// Bytes moved per second.
    pub bytes_per_second: f64,
    /// Requests per second.
    pub requests_per_second: f64,
    /// Counted span.
    pub seconds: f64,
    /// CPU time of the driver per request.
    pub cpu_us_per_request: f64,
    /// Median read latency.
    pub read_p50_us: Option<f64>,
    /// 99th percentile of it.
    pub read_p99_us: Option<f64>,
    /// Median write latency.
    pub write_p50_us: Option<f64>,
    /// 99th percentile of it.
    pub write_p99_us: Option<f64>,
    /// Seed of this repeat.
    pub seed: u64,
    /// Position among all trials of the run.
    pub order: u32,
}

/// One read of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct SweepRead {
    /// The round that it was made in.
    pub sweep: u32,
    /// The group's label.
    pub label: u64,
    /// Number of the region among those of its label; regions are repeats of each other.
    pub region: u32,
    /// First byte on the device.
    pub offset_bytes: u64,
    /// Latency.
    pub latency_us: f64,
}

impl Series {
    /// A series without repeats.
    pub fn new(trial: Trial) -> Self {
        Self {
            trial,
            repeats: Vec::new(),
            reads: Vec::new(),
            read_latency: Latencies::default(),
            write_latency: Latencies::default(),
        }
    }

    /// Adds a repeat; a repeat without a request counts for nothing.
    pub fn add(&mut self, measured: &Measured, seed: u64, order: u32) {
        let seconds = measured.elapsed.seconds();
        if measured.requests == 0 || seconds <= 0.0 {
            return;
        }
        let requests = measured.requests as f64;
        let at = |histogram: &Histogram<u64>, share: f64| {
            (!histogram.is_empty()).then(|| histogram.value_at_quantile(share) as f64 / 1e3)
        };
        self.repeats.push(Repeat {
            bytes_per_second: measured.bytes_per_second(),
            requests_per_second: requests / seconds,
            seconds,
            cpu_us_per_request: measured.cpu.seconds() * 1e6 / requests,
            read_p50_us: at(&measured.read_latency_ns, 0.5),
            read_p99_us: at(&measured.read_latency_ns, 0.99),
            write_p50_us: at(&measured.write_latency_ns, 0.5),
            write_p99_us: at(&measured.write_latency_ns, 0.99),
            seed,
            order,
        });
        self.read_latency.add(&measured.read_latency_ns);
        self.write_latency.add(&measured.write_latency_ns);
    }

    /// Takes the repeats of more requests per second away. The latencies of those that stay cannot be told
    /// from theirs, and go, too.
    pub(crate) fn take_faster_than(&mut self, requests_per_second: f64) -> Vec<Repeat> {
        let (faster, stay): (Vec<Repeat>, Vec<Repeat>) = std::mem::take(&mut self.repeats)
            .into_iter()
            .partition(|repeat| repeat.requests_per_second > requests_per_second);
        if !faster.is_empty() {
            self.read_latency = Latencies::default();
            self.write_latency = Latencies::default();
        }
        self.repeats = stay;
        faster
    }

    /// Throughput of each repeat.
    pub fn throughputs(&self) -> Vec<f64> {
        self.repeats.iter().map(|repeat| repeat.bytes_per_second).collect()
    }

    /// Relative half width of the 95 % interval of the mean throughput; `None` with fewer than two repeats
    /// and for sweeps.
    pub fn noise(&self) -> Option<f64> {
        relative_half_width(&self.throughputs())
    }

    /// The series as a point of the profile; `None` without repeats.
    pub fn point(&self) -> Option<Point> {
        let workload = *self.trial.workload()?;
        let throughputs = self.throughputs();
        let cpu: Vec<f64> = self.repeats.iter().map(|repeat| repeat.cpu_us_per_request).collect();
        Some(Point {
            workload,
            bytes_per_second: median(&throughputs)?,
            bytes_per_second_min: throughputs.iter().copied().fold(f64::INFINITY, f64::min),
            bytes_per_second_max: throughputs.iter().copied().fold(0.0, f64::max),
            repeats: u32::try_from(throughputs.len()).unwrap_or(u32::MAX),
            read_latency: self.read_latency(),
            write_latency: self.write_latency(),
            cpu_us_per_request: mean(&cpu)?,
            regime: self.trial.regime,
            seconds_min: self.repeats.iter().map(|repeat| repeat.seconds).fold(f64::INFINITY, f64::min),
        })
    }

    /// Read latency over all repeats.
    pub fn read_latency(&self) -> Option<Latency> {
        self.read_latency.summary()
    }

    /// Write latency over all repeats.
    pub fn write_latency(&self) -> Option<Latency> {
        self.write_latency.summary()
    }

    /// The repeats as the models see them.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        let workload = self.trial.workload().copied();
        self.repeats.iter().enumerate().filter_map(move |(index, repeat)| {
            Some(Sample {
                experiment: self.trial.experiment.as_str().to_owned(),
                repeat: index as u32,
                workload: workload?,
                bytes_per_second: repeat.bytes_per_second,
            })
        })
    }

    /// Latencies of a sweep's group.
    pub fn group_latencies_us(&self, label: u64) -> Vec<f64> {
        self.reads.iter().filter(|read| read.label == label).map(|read| read.latency_us).collect()
    }

    /// Adds the reads of another series of the same trial, whose regions were made anew.
    pub(crate) fn extend(&mut self, other: Self) {
        let next =
            |own: &dyn Fn(&SweepRead) -> u32| self.reads.iter().map(own).max().map_or(0, |last| last + 1);
        let (sweeps, regions) = (next(&|read| read.sweep), next(&|read| read.region));
        self.reads.extend(other.reads.into_iter().map(|read| SweepRead {
            sweep: read.sweep + sweeps,
            region: read.region + regions,
            ..read
        }));
    }

    /// Visits so far: repeats of a load, rounds of a sweep.
    pub fn visits(&self) -> u32 {
        match &self.trial.work {
            Work::Load(_) => self.repeats.len() as u32,
            Work::Sweep(_) => self.reads.last().map_or(0, |read| read.sweep + 1),
        }
    }
}

/// Latencies over all repeats. Counts of 32 bits and growth on demand keep hundreds of these small.
#[derive(Default)]
struct Latencies {
    histogram: Option<Histogram<u32>>,
    sum_ns: f64,
    max_ns: u64,
}

impl std::fmt::Debug for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.summary().fmt(f)
    }
}

impl Latencies {
    fn add(&mut self, other: &Histogram<u64>) {
        if other.is_empty() {
            return;
        }
        if self.histogram.is_none() {
            self.histogram = Histogram::new(3).ok();
        }
        let Some(histogram) = &mut self.histogram else { return };
        histogram.auto(true);
        for bucket in other.iter_recorded() {
            let count = u32::try_from(bucket.count_at_value()).unwrap_or(u32::MAX);
            // Only a value beyond 64 bits of range could fail to be recorded.
            let _ = histogram.record_n(bucket.value_iterated_to(), count);
        }
        self.sum_ns += other.mean() * other.len() as f64;
        self.max_ns = self.max_ns.max(other.max());
    }

    fn summary(&self) -> Option<Latency> {
        let histogram = self.histogram.as_ref()?;
        let us = |share: f64| histogram.value_at_quantile(share) as f64 / 1e3;
        Some(Latency {
            count: histogram.len(),
            mean_us: self.sum_ns / histogram.len() as f64 / 1e3,
            p50_us: us(0.5),
            p90_us: us(0.9),
            p99_us: us(0.99),
            p99_9_us: us(0.999),
            p99_99_us: us(0.9999),
            max_us: self.max_ns as f64 / 1e3,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ExperimentName;
    use flashgrain_device::Nanos;
    use flashgrain_model::{Access, Workload};

    fn measured(bytes: u64, requests: u64, latency_ns: u64) -> Measured {
        let mut read_latency_ns = Histogram::new(3).unwrap();
        read_latency_ns.record_n(latency_ns, requests).unwrap();
        Measured {
            elapsed: Nanos(500_000_000),
            streams: 1,
            bytes_read: bytes,
            bytes_written: 0,
            requests,
            bytes_written_total: 0,
            read_latency_ns,
            write_latency_ns: Histogram::new(3).unwrap(),
            cpu: Nanos(1_000_000),
            ..Measured::default()
        }
    }

    #[test]
    fn a_point_summarises_its_repeats() {
        let workload = Workload::random(Access::Read, 4096.0, 1.0);
        let mut series = Series::new(Trial::load(ExperimentName::Depth, 0, workload));
        assert!(series.point().is_none());
        for (order, (requests, latency_ns)) in
            [(1000, 100_000), (2000, 200_000), (4000, 400_000)].into_iter().enumerate()
        {
            series.add(&measured(requests * 4096, requests, latency_ns), 1, order as u32);
        }
        let point = series.point().unwrap();
        assert_eq!(point.bytes_per_second, 2.0 * 2000.0 * 4096.0);
        assert_eq!(point.bytes_per_second_min, 2.0 * 1000.0 * 4096.0);
        assert_eq!(point.repeats, 3);
        assert!(point.write_latency.is_none());
        let latency = point.read_latency.unwrap();
        assert_eq!(latency.count, 7000);
        assert!((latency.mean_us - 300.0).abs() < 0.5, "{latency:?}");
        assert!((latency.p50_us - 400.0).abs() < 1.0, "{latency:?}");
        let samples: Vec<_> = series.samples().collect();
        assert_eq!(samples.len(), 3);
        assert_eq!((samples[2].repeat, samples[2].experiment.as_str()), (2, "depth"));
    }

    #[test]
    fn an_empty_repeat_counts_for_nothing() {
        let workload = Workload::random(Access::Read, 4096.0, 1.0);
        let mut series = Series::new(Trial::load(ExperimentName::Depth, 0, workload));
        series.add(&measured(0, 0, 1), 1, 0);
        assert_eq!(series.visits(), 0);
    }
}
