//! The device profile as it is stored: `profile.json`. Units are in the names of the keys.

use flashgrain_device::{Geometry, Identity};
use flashgrain_model::{Collection, Comparison, Estimate, Models, SteadyWrites, Workload};
use flashgrain_settings::{SyncMethod, drive, layout};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Version of the schema written by this build. Readers accept this and older ones.
pub const SCHEMA_VERSION: u32 = 1;

/// Value of [`DeviceProfile::format`] in every profile.
pub const FORMAT: &str = "flashgrain device profile";

/// Everything learned about one drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceProfile {
    /// Names the format of the file: always [`FORMAT`].
    pub format: String,
    /// [`SCHEMA_VERSION`] at the time of writing.
    pub schema_version: u32,
    /// Origin of the profile.
    pub provenance: Provenance,
    /// Planned and used time and bytes.
    pub budget: Budget,
    /// Measurements, summarised over repeats; the raw samples lie next to the profile.
    pub measurements: Measurements,
    /// The four models fitted to everything measured by `order`, `parallel`, `size`, `depth` and `mix`.
    pub models: Option<Models>,
    /// The models fitted to writes that the cache took; `models` are about sustained writes then. `None`
    /// where no cache shows, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_models: Option<Models>,
    /// The four models on held-out points.
    pub comparison: Option<Comparison>,
    /// Why the run cannot be trusted, in a sentence; then nothing was learned, decided or ranked. `None` of
    /// most runs, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distrust: Option<String>,
    /// Hidden parameters and working points.
    pub learned: Learned,
    /// Settings that follow, each with its number.
    pub decisions: Vec<drive::Decision>,
    /// Fresh workloads, predicted and then measured.
    pub verification: Vec<Verification>,
    /// A store with the layout that follows, compared with predictions and the raw device; `None` if none was
    /// built, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreRun>,
}

/// Drive, software, moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Provenance {
    /// Drive and the way to it.
    pub identity: Identity,
    /// Sizes and alignments in force.
    pub geometry: Geometry,
    /// UTC, RFC 3339.
    pub date_utc: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Version of Flashgrain.
    pub flashgrain_version: String,
    /// The state that the drive was brought to before measuring: `as found` or `preconditioned (...)`.
    pub precondition: String,
}

/// Limits and use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Budget {
    /// Time allowed.
    pub limit_s: f64,
    /// Bytes that may be written.
    pub limit_write_bytes: u64,
    /// Time taken from the start to the last measurement, layout and verification included.
    pub used_s: f64,
    /// Bytes written.
    pub used_write_bytes: u64,
    /// Size of the scratch file.
    pub file_bytes: u64,
    /// Experiments run, in the order of the report.
    pub experiments: Vec<ExperimentUse>,
    /// How the measuring threads fared with the processors; `None` on simulated drives, where the system does
    /// not tell, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<ProcessorUse>,
    /// Trials and models that were left out, and why, in words.
    pub left_out: Vec<String>,
}

/// How much of the processors the measuring threads got, in loads of no more threads than there are
/// processors. Latencies include the time that the threads waited for a processor, which is not the drive's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorUse {
    /// Seconds that they ran, all together.
    pub ran_s: f64,
    /// Seconds that they were ready to run while others did: the scheduler's run delay.
    pub waited_s: f64,
    /// Share of all processors' time that a hypervisor gave to others.
    pub stolen_share: Option<f64>,
}

impl ProcessorUse {
    /// From this share of waiting on latencies far out say more of the scheduler than of the drive. On idle
    /// machines threads that sleep and wake as often as requests come wait for up to a tenth: the kernel's
    /// own work comes first.
    const CONTENDED: f64 = 0.2;
    /// The same limit for stolen time.
    const STOLEN: f64 = 0.05;

    /// Share of the threads' ready time that they had to wait; 0 if they never were ready.
    pub fn waited_share(&self) -> f64 {
        let ready_s = self.ran_s + self.waited_s;
        if ready_s > 0.0 { self.waited_s / ready_s } else { 0.0 }
    }

    /// Whether the machine was so busy with other things that the highest percentiles of latency are not the
    /// drive's.
    pub fn is_contended(&self) -> bool {
        self.waited_share() > Self::CONTENDED || self.stolen_share.is_some_and(|share| share > Self::STOLEN)
    }
}

/// Time and bytes that one experiment used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExperimentUse {
    /// Name, as for `profile --only`.
    pub name: String,
    /// Trials, repeats included.
    pub trials: u32,
    /// Seconds.
    pub used_s: f64,
    /// Bytes written.
    pub used_write_bytes: u64,
    /// Median over the workloads of the relative half width of the 95 % interval of their mean: the noise of
    /// this experiment. `None` without repeats.
    pub noise: Option<f64>,
}

/// Latency percentiles in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Requests measured.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p99_9_us: f64,
    /// 99.99th percentile; 0 in files that are older than it.
    #[serde(default)]
    pub p99_99_us: f64,
    /// Largest.
    pub max_us: f64,
}

impl Latency {
    /// Percentiles of a histogram of nanoseconds.
    pub fn of(histogram_ns: &Histogram<u64>) -> Self {
        let percentile_us = |percentile| histogram_ns.value_at_quantile(percentile) as f64 * 1e-3;
        Self {
            count: histogram_ns.len(),
            mean_us: histogram_ns.mean() * 1e-3,
            p50_us: percentile_us(0.5),
            p90_us: percentile_us(0.9),
            p99_us: percentile_us(0.99),
            p99_9_us: percentile_us(0.999),
            p99_99_us: percentile_us(0.9999),
            max_us: histogram_ns.max() as f64 * 1e-3,
        }
    }
}

/// A workload and its results, over its repeats.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The workload.
    pub workload: Workload,
    /// Median over repeats.
    pub bytes_per_second: f64,
    /// Smallest repeat.
    pub bytes_per_second_min: f64,
    /// Largest repeat.
    pub bytes_per_second_max: f64,
    /// Repeats.
    pub repeats: u32,
    /// Read latency over all repeats.
    pub read_latency: Option<Latency>,
    /// Write latency over all repeats.
    pub write_latency: Option<Latency>,
    /// CPU time of the driver per request.
    pub cpu_us_per_request: f64,
    /// Whether the writes among the requests went into the cache or at the medium's rate. `None` for reads,
    /// where no cache shows, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime: Option<Regime>,
    /// Counted span of the shortest repeat; 0 in older files.
    #[serde(default)]
    pub seconds_min: f64,
}

/// The part of the drive that limits a rate of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regime {
    /// The drive's write cache, which was empty at the start and takes all of it.
    Burst,
    /// The medium, as the cache was full from the start.
    Sustained,
}

impl Regime {
    /// Name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::Sustained => "sustained",
        }
    }
}

/// Mean latencies that the shortest repeat must have lasted before its rate may stand for the drive: in less,
/// the requests that happen to complete together decide.
const HEADLINE_LATENCIES_MIN: f64 = 16.0;

impl Point {
    /// Whether its repeats lasted long enough for a headline or an export.
    pub fn is_long_enough(&self) -> bool {
        let mean_us = [self.read_latency, self.write_latency]
            .into_iter()
            .flatten()
            .map(|latency| latency.mean_us)
            .fold(0.0, f64::max);
        let is_old = self.seconds_min == 0.0;
        is_old || self.seconds_min >= HEADLINE_LATENCIES_MIN * mean_us * 1e-6
    }
}

/// The write cache, found by writing until the rate fell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriteCache {
    /// The workload that searched for the cache: random writes.
    pub workload: Workload,
    /// Bytes written altogether.
    pub written_bytes: u64,
    /// Bytes that the drive took before its rate fell; undetermined if it did not fall.
    pub burst_bytes: LearnedValue,
    /// Bytes that the cache holds: those of the burst without those that were passed on meanwhile.
    pub capacity_bytes: LearnedValue,
    /// Rate before.
    pub burst_bytes_per_second: f64,
    /// Rate after; undetermined if it did not fall.
    pub sustained_bytes_per_second: LearnedValue,
}

/// All measurements, by experiment; empty where an experiment was not run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measurements {
    /// The MQSSD grid: r x k, reads and writes.
    pub order: Vec<Point>,
    /// PDAM rounds.
    pub parallel: Vec<Point>,
    /// Affine: one block to 16 MiB.
    pub size: Vec<Point>,
    /// Queue depth x page size.
    pub depth: Vec<Point>,
    /// Read shares and their interference.
    pub mix: Vec<Point>,
    /// Sequential streams of small and of large requests. Models are not fitted to these.
    #[serde(default)]
    pub sequential: Vec<Point>,
    /// The backends.
    pub interface: Vec<InterfacePoint>,
    /// Durable 4 KiB writes.
    pub flush: Vec<FlushPoint>,
    /// Hidden-parameters paper, Experiment 1.
    pub request_size: Vec<RequestSizePoint>,
    /// Hidden-parameters paper, Experiment 2.
    pub location: Vec<LocationPoint>,
    /// Burst against sustained writes.
    pub sustain: Option<Sustain>,
    /// The write cache, as far as it shows; `None` if nothing was written, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCache>,
    /// Writes of `order` that the cache took; the writes in `order` are sustained then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub burst: Vec<Point>,
}

/// Meaning of the write rates in `order`, `mix` and `sequential`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteRates {
    /// At the rate of the medium, after the cache, which takes the first `burst_bytes` faster.
    Sustained {
        /// Bytes that are written before the rate falls.
        burst_bytes: f64,
    },
    /// No cache shows: the rate did not fall while this number of bytes was written.
    NoFall {
        /// Bytes of the search.
        written_bytes: u64,
    },
    /// The cache was not looked for: trials of some milliseconds, which a cache may have taken.
    Bursts,
}

impl Measurements {
    /// Meaning of the write rates.
    pub fn write_rates(&self) -> WriteRates {
        let Some(found) = &self.write_cache else { return WriteRates::Bursts };
        match found.burst_bytes.estimate.value() {
            Some(burst_bytes) => WriteRates::Sustained { burst_bytes },
            None => WriteRates::NoFall { written_bytes: found.written_bytes },
        }
    }

    /// Bytes per second of writes once the drive's write cache is full, if `sustain` found its steady state.
    pub fn sustained_write_bytes_per_second(&self) -> Option<f64> {
        self.sustain.as_ref().and_then(|sustain| sustain.sustained_bytes_per_second.value())
    }
}

/// One backend at one depth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InterfacePoint {
    /// `io_uring`, `libaio`, `sync`.
    pub backend: String,
    /// Its rate and latency.
    pub point: Point,
}

/// One way to make a 4 KiB write durable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlushPoint {
    /// `fdatasync`, `RWF_DSYNC`, `linked flush`; `no flush` and `growing file` for comparison.
    pub method: String,
    /// Latency of write and flush together.
    pub latency: Latency,
    /// Smallest mean of a repeat; `None` without repeats, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_us_min: Option<f64>,
    /// Largest mean of a repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_us_max: Option<f64>,
}

impl FlushPoint {
    /// The method of writes that are not made durable.
    pub const NO_FLUSH: &'static str = "no flush";

    /// Writes to a file that grows, made durable with `fdatasync`.
    pub const GROWING_FILE: &'static str = "growing file";

    /// The method as a setting; `None` for [`FlushPoint::NO_FLUSH`], [`FlushPoint::GROWING_FILE`], and
    /// methods of other versions.
    pub fn sync_method(&self) -> Option<SyncMethod> {
        SyncMethod::named(&self.method)
    }
}

/// Reads of a range that had been written with requests of one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestSizePoint {
    /// Size of the writes that made the range.
    pub write_request_bytes: u64,
    /// Size of the reads.
    pub read_request_bytes: u64,
    /// Latency of the reads.
    pub latency: Latency,
    /// 95 % bootstrap interval of the mean latency.
    pub mean_low_us: f64,
    /// Its upper end.
    pub mean_high_us: f64,
}

/// Reads of one supposed chunk size at one offset into the chunk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LocationPoint {
    /// Supposed chunk size, also the size of the reads.
    pub chunk_bytes: u64,
    /// Offset group.
    pub offset_bytes: u64,
    /// Latency of the reads.
    pub latency: Latency,
    /// 95 % bootstrap interval of the mean latency.
    pub mean_low_us: f64,
    /// Its upper end.
    pub mean_high_us: f64,
}

/// Sustained random writes over time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sustain {
    /// Size of the writes.
    pub request_bytes: u64,
    /// Outstanding writes.
    pub concurrency: u32,
    /// Rounds in order of time.
    pub rounds: Vec<SustainRound>,
    /// Whether the steady-state rule held (SNIA PTS: five rounds with an excursion of at most 20 % and a
    /// slope of at most 10 % of the average).
    pub steady: bool,
    /// The first round of the five that fulfil it.
    pub steady_from_round: Option<u32>,
    /// Rate at the start, bytes per second.
    pub burst_bytes_per_second: f64,
    /// Rate in the steady state, bytes per second.
    pub sustained_bytes_per_second: Estimate,
    /// Steady states by the valid data, the least first; those that were not steady are left out. Empty
    /// unless asked for, and in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_valid_data: Vec<SteadyWrites>,
    /// The term for garbage collection that was fitted to these; `None` unless asked for, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<Collection>,
}

/// One round of sustained writes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SustainRound {
    /// Start, since the experiment began.
    pub at_s: f64,
    /// Rate of the round.
    pub bytes_per_second: f64,
    /// Bytes written since the experiment began, at the end of the round.
    pub written_bytes: u64,
}

/// A learned number, how it was learned and how sure it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LearnedValue {
    /// The number, or why there is none.
    pub estimate: Estimate,
    /// Observations that support the value, in words with numbers.
    pub evidence: String,
    /// 0 to 1: the share of bootstrap resamples that lead to the same value; 0 if undetermined.
    pub confidence: f64,
}

/// A limit before the drive, as clouds limit volumes and hosts: requests and bytes a second that no workload
/// exceeds for long, whatever its kind, size and order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cap {
    /// Requests per second; `None` if bytes alone are limited.
    pub requests_per_second: Option<f64>,
    /// Bytes per second; `None` if requests alone are limited.
    pub bytes_per_second: Option<f64>,
    /// Repeats that were faster at first; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits: Option<Credits>,
    /// Observations that support the cap, in words with numbers.
    pub evidence: String,
}

/// Repeats that were faster than the cap, on credits that a bucket held. Nothing else in the profile is made
/// from them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Credits {
    /// How many.
    pub repeats: u32,
    /// The most requests per second of any.
    pub requests_per_second_max: f64,
    /// The most bytes per second of any.
    pub bytes_per_second_max: f64,
}

impl Cap {
    /// Requests of `bytes` that it lets through per second.
    pub fn requests_per_second_of(&self, bytes: f64) -> f64 {
        let by_bytes = self.bytes_per_second.map_or(f64::INFINITY, |rate| rate / bytes);
        self.requests_per_second.unwrap_or(f64::INFINITY).min(by_bytes)
    }

    /// Such as `a cap of 3000 requests/s and 125 MB/s`.
    pub fn describe(&self) -> String {
        format!("a cap of {}", self.limits())
    }

    /// Such as `3000 requests/s and 125 MB/s`.
    pub fn limits(&self) -> String {
        let requests = self.requests_per_second.map(|rate| format!("{rate:.0} requests/s"));
        let bytes = self.bytes_per_second.map(|rate| format!("{:.0} MB/s", rate / 1e6));
        [requests, bytes].into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }
}

/// Hidden parameters (hidden-parameters paper §3.1) and working points.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Learned {
    /// A limit before the drive; `None` if none was recognised, and in older files. Parameters that the cap
    /// hides are undetermined, and rates that reach the cap are the cap's rather than the drive's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Cap>,
    /// Smallest desirable write request; all larger powers of two are desirable too.
    pub desirable_write_bytes: LearnedValue,
    /// Stripe size.
    pub stripe_bytes: LearnedValue,
    /// Chunk size.
    pub chunk_bytes: LearnedValue,
    /// Offset of the hot locations into a chunk.
    pub hot_offset_bytes: LearnedValue,
    /// Relative drop of latency at hot locations, 0 to 1.
    pub hot_latency_drop: LearnedValue,
    /// Flash page size.
    pub flash_page_bytes: LearnedValue,
    /// Page size with the most random reads per second.
    pub best_page_iops_bytes: LearnedValue,
    /// Page size with the lowest latency at depth 1.
    pub best_page_latency_bytes: LearnedValue,
    /// Queue depth for 90 % of the plateau of 4 KiB random reads.
    pub depth_90: LearnedValue,
    /// Queue depth for 99 % of it.
    pub depth_99: LearnedValue,
    /// PDAM's P.
    pub parallelism: LearnedValue,
    /// Rate at the PDAM plateau.
    pub saturation_bytes_per_second: LearnedValue,
    /// Size of a random read at depth 1 that reaches half of the transfer bandwidth: setup divided by
    /// transfer cost per byte.
    pub half_bandwidth_bytes: LearnedValue,
}

impl DeviceProfile {
    /// The value of a setting, such as [`drive::Setting::write_unit`], and how it was decided; `None` if the
    /// profile does not have it.
    pub fn decided<T>(&self, setting: fn(&drive::Setting) -> Option<T>) -> Option<(T, &drive::Decision)> {
        drive::decided(&self.decisions, setting)
    }
}

/// A fresh workload that no fit has seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verification {
    /// The workload.
    pub workload: Workload,
    /// MQSSD's prediction.
    pub predicted_bytes_per_second: f64,
    /// Measured, median over repeats.
    pub measured_bytes_per_second: f64,
    /// Smallest repeat.
    pub measured_min_bytes_per_second: f64,
    /// Largest repeat.
    pub measured_max_bytes_per_second: f64,
    /// |predicted - measured| / measured.
    pub relative_error: f64,
    /// Whether its writes are bursts or sustained, as in [`Point::regime`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime: Option<Regime>,
}

/// A store that was built on the drive, much larger than its cache, with the layout that follows from this
/// profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreRun {
    /// How its layout was decided.
    pub layout: Vec<layout::Decision>,
    /// Records in it.
    pub records: u64,
    /// Bytes of each key.
    pub key_bytes: u32,
    /// Bytes of each value.
    pub value_bytes: u32,
    /// Bytes of all pages as they lie on the drive.
    pub stored_bytes: u64,
    /// Memory for pages.
    pub cache_bytes: u64,
    /// Worker threads; on a simulated drive their processors cost nothing.
    pub workers: u32,
    /// Time that it took, raw measurements included.
    pub used_s: f64,
    /// Bytes written, raw measurements included.
    pub used_write_bytes: u64,
    /// Operations that were run on the store.
    pub operations: Vec<StoreOperation>,
}

/// One kind of operation on the store: its measured rate, and the rate that the drive allows for its
/// requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreOperation {
    /// Such as `random look-ups`.
    pub operation: String,
    /// Operations under way at a time.
    pub concurrency: u32,
    /// Operations per second.
    pub measured_per_second: f64,
    /// Operations per second if the drive took as long for their requests as the models and the flush
    /// measurements of this profile say; `None` without these.
    pub predicted_per_second: Option<f64>,
    /// The same from the latency of such requests on the raw device in the same run.
    pub raw_per_second: Option<f64>,
    /// The same from each repeat of the raw device's measurement; empty in older profiles.
    #[serde(default)]
    pub raw_repeats_per_second: Vec<f64>,
    /// Of single operations; of inserts by hundreds, of a hundred.
    pub latency: Latency,
    /// Reads that an operation brings about on the drive.
    pub reads_per_operation: f64,
    /// Bytes that it brings about to be read.
    pub read_bytes_per_operation: f64,
    /// Bytes that it brings about to be written: pages, log, cleaning.
    pub written_bytes_per_operation: f64,
    /// The requests that the prediction and the raw device are based on.
    pub requests: String,
    /// Processor time of the process per operation; `None` on a simulated drive.
    pub cpu_us_per_operation: Option<f64>,
    /// Processor time over the time of the workers' processors, 0 to 1; `None` on a simulated drive.
    pub cpu_busy_share: Option<f64>,
}
