//! Facts in a profile about a drive, as far as a simulated drive needs them.

use anyhow::anyhow;
use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::{Cap, FlushPoint, LearnedValue, Measurements, Point, WriteRates};
use flashgrain_profile::settings::SyncMethod;

/// Size of the reads that latency and parallelism are taken from.
pub const READ_BYTES: f64 = 4096.0;

/// A flush that takes no longer than this many times a write has nothing to write.
const NOTHING_TO_FLUSH: f64 = 2.0;

/// Largest size that means anything.
const BYTES_MAX: u64 = 1 << 40;

/// A value with its evidence in the profile, or the reason why there is none.
pub type Fact<T> = Result<(T, String), String>;

/// See the module. Times are in seconds.
#[derive(Clone, Debug)]
pub struct Facts {
    pub name: String,
    /// Of the drive; a profile of a file does not know it.
    pub capacity_bytes: Fact<u64>,
    /// One 4 KiB random read at a time.
    pub read_s: f64,
    /// Most 4 KiB random reads per second, and how many were in flight then.
    pub reads_per_s: f64,
    pub reads_in_flight: f64,
    /// Most bytes read per second.
    pub read_bytes_per_s: f64,
    /// One 4 KiB write at a time.
    pub write_s: Fact<f64>,
    /// Most 4 KiB random writes per second.
    pub writes_per_s: Fact<f64>,
    /// Most bytes written per second.
    pub write_bytes_per_s: Fact<f64>,
    /// Capacity of the write cache.
    pub cache_bytes: Fact<u64>,
    /// Whether flushes have something to do.
    pub volatile_cache: Fact<bool>,
    pub chunk_bytes: Fact<u64>,
    pub stripe_bytes: Fact<u64>,
    pub desirable_write_bytes: Fact<u64>,
    pub page_bytes: Fact<u64>,
    /// The limit before the drive.
    pub cap: Option<Cap>,
}

impl Facts {
    /// Takes the facts from a profile.
    ///
    /// # Errors
    /// If the profile has no 4 KiB random reads one at a time: no drive can be made of it then.
    pub fn of(profile: &DeviceProfile) -> anyhow::Result<Self> {
        let measurements = &profile.measurements;
        let reads: Vec<&Point> = points(measurements).filter(|point| is_random_read(point)).collect();
        let single = reads.iter().find(|point| point.workload.concurrency == 1.0).ok_or_else(|| {
            anyhow!("the profile has no 4 KiB random reads one at a time: make one with `flashgrain profile --only depth,order`, or without --only")
        })?;
        let per_s = |point: &Point| point.bytes_per_second / READ_BYTES;
        let most =
            reads.iter().copied().max_by(|one, other| per_s(one).total_cmp(&per_s(other))).unwrap_or(single);
        let pure =
            |wanted: f64| points(measurements).filter(move |point| point.workload.read_share == wanted);
        let fastest = |share: f64| {
            pure(share)
                .filter(|point| point.is_long_enough())
                .map(|point| point.bytes_per_second)
                .reduce(f64::max)
        };
        let learned = &profile.learned;
        Ok(Self {
            name: profile_name(profile),
            capacity_bytes: capacity(profile),
            read_s: READ_BYTES / single.bytes_per_second,
            reads_per_s: per_s(most),
            reads_in_flight: most.workload.concurrency,
            read_bytes_per_s: fastest(1.0).unwrap_or(single.bytes_per_second),
            write_s: single_write(measurements),
            writes_per_s: most_writes(measurements),
            write_bytes_per_s: fastest(0.0)
                .map(|rate| match measurements.sustained_write_bytes_per_second() {
                    Some(lasting) if lasting < rate => {
                        (lasting, format!("writes reached {:.0} MB/s, sustained", lasting / 1e6))
                    }
                    _ => {
                        (rate, format!("writes reached {:.0} MB/s{}", rate / 1e6, about_writes(measurements)))
                    }
                })
                .ok_or_else(|| "no writes were measured".to_owned()),
            cache_bytes: match &measurements.write_cache {
                Some(cache) => fact(&cache.capacity_bytes),
                None => Err("the write cache was not looked for".into()),
            },
            volatile_cache: volatile_cache(measurements),
            chunk_bytes: fact(&learned.chunk_bytes),
            stripe_bytes: fact(&learned.stripe_bytes),
            desirable_write_bytes: fact(&learned.desirable_write_bytes),
            page_bytes: fact(&learned.flash_page_bytes),
            cap: learned.cap.clone(),
        })
    }
}

/// Suffix that names the regime of the rates of writes.
fn about_writes(measurements: &Measurements) -> &'static str {
    match measurements.write_rates() {
        WriteRates::Sustained { .. } => ", sustained",
        WriteRates::NoFall { .. } => ", which did not fall",
        WriteRates::Bursts => " in short bursts",
    }
}

/// Throughputs, as far as they are any: a file may say anything.
fn points(measurements: &Measurements) -> impl Iterator<Item = &Point> {
    let Measurements { order, parallel, depth, mix, sequential, .. } = measurements;
    let sound = |point: &&Point| {
        point.bytes_per_second >= 1.0 && point.bytes_per_second < 1e15 && point.workload.concurrency >= 1.0
    };
    [order, parallel, depth, mix, sequential].into_iter().flatten().filter(sound)
}

fn is_random_read(point: &Point) -> bool {
    let workload = &point.workload;
    workload.read_share == 1.0 && workload.random_share == 1.0 && workload.request_bytes == READ_BYTES
}

fn profile_name(profile: &DeviceProfile) -> String {
    let identity = &profile.provenance.identity;
    format!("{} as learned", identity.model.as_ref().unwrap_or(&identity.target))
}

fn capacity(profile: &DeviceProfile) -> Fact<u64> {
    let provenance = &profile.provenance;
    match provenance.identity.kind.as_str() {
        "file" => Err("a file was profiled: the size of its drive is unknown".into()),
        "simulated" => Ok((provenance.geometry.capacity_bytes, "size of the simulated drive".into())),
        kind => Ok((provenance.geometry.capacity_bytes, format!("size of the {kind}"))),
    }
}

fn single_write(measurements: &Measurements) -> Fact<f64> {
    // Writes into the cache show the time on the way to the drive best.
    let single = measurements.burst.iter().chain(points(measurements)).find(|point| {
        let workload = &point.workload;
        workload.read_share == 0.0 && workload.concurrency == 1.0 && workload.request_bytes == READ_BYTES
    });
    let of_points =
        single.filter(|point| point.bytes_per_second >= 1.0).map(|point| READ_BYTES / point.bytes_per_second);
    let of_flush = || {
        measurements
            .flush
            .iter()
            .find(|point| point.method == FlushPoint::NO_FLUSH)
            .map(|point| point.latency.mean_us * 1e-6)
            .filter(|write_s| *write_s > 0.0)
    };
    of_points
        .or_else(of_flush)
        .map(|write_s| (write_s, format!("a 4 KiB write takes {:.1} us", write_s * 1e6)))
        .ok_or_else(|| "no single 4 KiB writes were measured".to_owned())
}

fn most_writes(measurements: &Measurements) -> Fact<f64> {
    let is_random_write = |point: &&Point| {
        let workload = &point.workload;
        workload.read_share == 0.0
            && workload.random_share == 1.0
            && workload.request_bytes == READ_BYTES
            && point.is_long_enough()
    };
    let lasting = measurements.sustained_write_bytes_per_second().unwrap_or(f64::INFINITY);
    points(measurements)
        .filter(is_random_write)
        .map(|point| point.bytes_per_second.min(lasting) / READ_BYTES)
        .reduce(f64::max)
        .map(|rate| (rate, format!("{rate:.0} random writes of 4 KiB a second are reached")))
        .ok_or_else(|| "no random writes of 4 KiB were measured".to_owned())
}

fn volatile_cache(measurements: &Measurements) -> Fact<bool> {
    let mean_us = |is_wanted: fn(&&FlushPoint) -> bool| {
        measurements.flush.iter().find(is_wanted).map(|point| point.latency.mean_us)
    };
    let plain_us = mean_us(|point| point.method == FlushPoint::NO_FLUSH);
    let flushed_us = mean_us(|point| point.sync_method() == Some(SyncMethod::Fdatasync));
    let (Some(write_us), Some(flushed_us)) = (plain_us, flushed_us) else {
        return Err("flush was not run".into());
    };
    let text = format!("a 4 KiB write takes {write_us:.1} us, with a flush {flushed_us:.1} us");
    Ok((flushed_us > NOTHING_TO_FLUSH * write_us, text))
}

fn fact(learned: &LearnedValue) -> Fact<u64> {
    use flashgrain_model::Estimate;
    match &learned.estimate {
        Estimate::Determined { value, .. } => {
            Ok(((*value as u64).clamp(1, BYTES_MAX), learned.evidence.clone()))
        }
        Estimate::Undetermined { why } => Err(why.clone()),
    }
}
