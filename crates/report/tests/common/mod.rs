//! A made-up drive and its profile, physically plausible: reads and writes with costs that fall with
//! concurrency, noise of a few per cent, hot locations at half a chunk. Only for looking at reports; nothing
//! here was measured.

use flashgrain_device::{Geometry, Identity};
use flashgrain_model::{Access, Estimate, FitOptions, Sample, Workload, compare, fit};
use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::*;
use flashgrain_profile::settings::{Bytes, Count, SyncMethod, drive, layout};

const PAGE_BYTES: f64 = 4096.0;

/// Noise that is the same on every machine.
struct Noise(u64);

impl Noise {
    /// Uniform in -1..1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    }

    fn about(&mut self, value: f64, share: f64) -> f64 {
        value * (1.0 + share * self.next())
    }
}

/// Device time per byte of the made-up drive.
fn seconds_per_byte(workload: &Workload) -> f64 {
    let k = workload.concurrency;
    let random = workload.random_accesses_per_byte();
    let read = random * 82e-6 * (1.0 / k + 1.0 / 55.0) + (1.0 + 1.2 / k) / 3.1e9;
    let write = random * 24e-6 * (1.0 / k + 1.0 / 9.0) + (1.0 + 0.6 / k) / 1.7e9;
    let share = workload.read_share;
    share * read + (1.0 - share) * write + share * (1.0 - share) * 1.1 * read.max(write)
}

fn latency(workload: &Workload, noise: &mut Noise) -> Latency {
    let mean_us = workload.concurrency * workload.request_bytes * seconds_per_byte(workload) * 1e6;
    let mean_us = noise.about(mean_us, 0.03);
    Latency {
        count: 4000,
        mean_us,
        p50_us: mean_us * 0.93,
        p90_us: mean_us * 1.25,
        p99_us: noise.about(mean_us * 2.1, 0.2),
        p99_9_us: noise.about(mean_us * 4.4, 0.3),
        p99_99_us: mean_us * 6.0,
        max_us: mean_us * 11.0,
    }
}

fn point(workload: Workload, noise: &mut Noise) -> Point {
    let mut rates: Vec<f64> = (0..3).map(|_| noise.about(1.0 / seconds_per_byte(&workload), 0.05)).collect();
    rates.sort_by(f64::total_cmp);
    Point {
        workload,
        bytes_per_second: rates[1],
        bytes_per_second_min: rates[0],
        bytes_per_second_max: rates[2],
        repeats: 3,
        read_latency: (workload.read_share > 0.0).then(|| latency(&workload, noise)),
        write_latency: (workload.read_share < 1.0).then(|| latency(&workload, noise)),
        regime: None,
        seconds_min: 0.0,
        cpu_us_per_request: 1.7,
    }
}

fn powers(from: u32, to: u32) -> impl Iterator<Item = f64> {
    (from..=to).map(|exponent| f64::from(exponent).exp2())
}

fn measurements(noise: &mut Noise) -> Measurements {
    let mut all = Measurements::default();
    for access in [Access::Read, Access::Write] {
        for k in powers(0, 7) {
            for r in [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0] {
                let run_bytes = PAGE_BYTES * (1.0_f64 / r).floor();
                let workload = Workload::random(access, run_bytes, k);
                all.order.push(point(workload, noise));
            }
        }
    }
    for p in [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 16.0, 32.0, 64.0] {
        let mut measured = point(Workload::random(Access::Read, 65536.0, p), noise);
        let rate = noise.about(2.9e9 * (p / 5.4).min(1.0), 0.04);
        measured.bytes_per_second = rate;
        measured.bytes_per_second_min = rate * 0.97;
        measured.bytes_per_second_max = rate * 1.04;
        all.parallel.push(measured);
    }
    all.size = powers(12, 24).map(|size| point(Workload::random(Access::Read, size, 1.0), noise)).collect();
    for page in powers(9, 16) {
        for depth in powers(0, 7) {
            all.depth.push(point(Workload::random(Access::Read, page, depth), noise));
        }
    }
    for k in [1.0, 8.0, 64.0] {
        for share in [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0] {
            let workload = Workload { read_share: share, ..Workload::random(Access::Read, PAGE_BYTES, k) };
            all.mix.push(point(workload, noise));
        }
    }
    for (k, bytes) in [(64.0, 4096.0), (16.0, 1_048_576.0), (1.0, 4096.0), (1.0, 1_048_576.0)] {
        for access in [Access::Read, Access::Write] {
            let workload = Workload { random_share: 0.0, ..Workload::random(access, bytes, k) };
            all.sequential.push(point(workload, noise));
        }
    }
    for backend in ["io_uring", "libaio", "sync"] {
        for depth in [1.0, 32.0, 128.0] {
            let depth = if backend == "sync" { 1.0 } else { depth };
            let mut measured = point(Workload::random(Access::Read, PAGE_BYTES, depth), noise);
            measured.cpu_us_per_request = if backend == "io_uring" { 1.6 } else { 2.7 };
            all.interface.push(InterfacePoint { backend: backend.into(), point: measured });
        }
    }
    all.interface.truncate(7);
    for (method, p50_us) in
        [("no flush", 24.0), ("fdatasync", 1450.0), ("RWF_DSYNC", 870.0), ("linked flush", 1390.0)]
    {
        let latency = Latency {
            count: 300,
            mean_us: p50_us * 1.1,
            p50_us,
            p90_us: p50_us * 1.4,
            p99_us: p50_us * 2.2,
            p99_9_us: p50_us * 3.9,
            p99_99_us: p50_us * 5.0,
            max_us: p50_us * 6.0,
        };
        all.flush.push(FlushPoint {
            method: method.into(),
            latency,
            mean_us_min: Some(latency.mean_us * 0.98),
            mean_us_max: Some(latency.mean_us * 1.02),
        });
    }
    for write in powers(10, 19) {
        for read in [4096.0, 65536.0] {
            let amplification = if write < 32768.0 { 1.0 + 0.14 * (32768.0 / write).log2() } else { 1.0 };
            let mean = noise.about(read / 4096.0 * 9.0 + 80.0 * amplification, 0.02);
            all.request_size.push(RequestSizePoint {
                write_request_bytes: write as u64,
                read_request_bytes: read as u64,
                latency: Latency { count: 2000, mean_us: mean, p50_us: mean * 0.95, ..Latency::default() },
                mean_low_us: mean * 0.97,
                mean_high_us: mean * 1.035,
            });
        }
    }
    for chunk in [4096_u64, 16384, 65536, 262_144] {
        let groups = 16.min(chunk / 1024);
        for group in 0..groups {
            let offset = chunk / groups * group;
            let hot = chunk == 65536 && offset == 32768;
            let mean = noise.about(80.0 + chunk as f64 / 3000.0, 0.02) * if hot { 0.61 } else { 1.0 };
            all.location.push(LocationPoint {
                chunk_bytes: chunk,
                offset_bytes: offset,
                latency: Latency { count: 1000, mean_us: mean, p50_us: mean * 0.96, ..Latency::default() },
                mean_low_us: mean * 0.965,
                mean_high_us: mean * 1.03,
            });
        }
    }
    all
}

fn sustain(noise: &mut Noise) -> Sustain {
    let mut written_bytes = 0;
    let rounds: Vec<SustainRound> = (0..40)
        .map(|round| {
            let at_s = f64::from(round) * 15.0;
            let level =
                if round < 12 { 1.6e9 } else { 0.42e9 + 0.9e9 * (-f64::from(round - 12) / 4.0).exp() };
            let bytes_per_second = noise.about(level, 0.04);
            written_bytes += (bytes_per_second * 15.0) as u64;
            SustainRound { at_s, bytes_per_second, written_bytes }
        })
        .collect();
    Sustain {
        request_bytes: 131_072,
        concurrency: 32,
        rounds,
        steady: true,
        steady_from_round: Some(31),
        burst_bytes_per_second: 1.6e9,
        sustained_bytes_per_second: determined(0.43e9, 0.42e9, 0.44e9),
        by_valid_data: Vec::new(),
        collection: None,
    }
}

pub fn determined(value: f64, low: f64, high: f64) -> Estimate {
    Estimate::Determined { value, low, high }
}

fn undetermined(why: &str) -> Estimate {
    Estimate::Undetermined { why: why.into() }
}

fn learned_value(estimate: Estimate, evidence: &str, confidence: f64) -> LearnedValue {
    LearnedValue { estimate, evidence: evidence.into(), confidence }
}

/// Nothing learned: every number undetermined.
pub fn nothing_learned() -> Learned {
    let nothing = || learned_value(undetermined("the experiment was not run"), "", 0.0);
    Learned {
        cap: None,
        desirable_write_bytes: nothing(),
        stripe_bytes: nothing(),
        chunk_bytes: nothing(),
        hot_offset_bytes: nothing(),
        hot_latency_drop: nothing(),
        flash_page_bytes: nothing(),
        best_page_iops_bytes: nothing(),
        best_page_latency_bytes: nothing(),
        depth_90: nothing(),
        depth_99: nothing(),
        parallelism: nothing(),
        saturation_bytes_per_second: nothing(),
        half_bandwidth_bytes: nothing(),
    }
}

fn learned() -> Learned {
    let exactly = |value: f64| determined(value, value, value);
    Learned {
        cap: None,
        desirable_write_bytes: learned_value(
            exactly(32768.0),
            "mean latency of 4 KiB reads falls from 145 µs (written by 1 KiB) to 89 µs at 32 KiB and stays within 3 % above",
            0.98,
        ),
        stripe_bytes: learned_value(exactly(65536.0), "latency repeats with a period of 64 KiB", 0.91),
        chunk_bytes: learned_value(
            exactly(65536.0),
            "offset groups differ by 39 % at 64 KiB and by less than 4 % elsewhere",
            1.0,
        ),
        hot_offset_bytes: learned_value(
            exactly(32768.0),
            "the offset group at 32 KiB is fastest in 998 of 1000 resamples",
            0.998,
        ),
        hot_latency_drop: learned_value(
            determined(0.39, 0.37, 0.41),
            "62 µs against 102 µs at the other offsets",
            0.998,
        ),
        flash_page_bytes: learned_value(
            undetermined(
                "no offset group of a chunk smaller than 64 KiB differs from the others by more than the noise of 3.1 %",
            ),
            "",
            0.0,
        ),
        best_page_iops_bytes: learned_value(
            exactly(4096.0),
            "612 k reads/s at 4 KiB, 604 k at 2 KiB, 371 k at 8 KiB",
            0.87,
        ),
        best_page_latency_bytes: learned_value(exactly(4096.0), "85 µs at 4 KiB, 86 µs at 512 B", 0.71),
        depth_90: learned_value(determined(48.0, 44.0, 55.0), "551 k of 612 k reads/s", 0.93),
        depth_99: learned_value(
            undetermined("throughput still rises at the deepest queue measured (128)"),
            "606 k reads/s at 64, 641 k at 128",
            0.0,
        ),
        parallelism: learned_value(
            determined(5.4, 5.1, 5.7),
            "segmented regression over 11 points, R² 0.981",
            0.95,
        ),
        saturation_bytes_per_second: learned_value(
            determined(2.9e9, 2.84e9, 2.97e9),
            "plateau of the segmented regression",
            0.95,
        ),
        half_bandwidth_bytes: learned_value(
            determined(118_784.0, 110_000.0, 127_000.0),
            "setup 84 µs, transfer 0.71 ns per byte",
            0.99,
        ),
    }
}

/// Samples that the models would have been fitted to: the repeats of every workload.
fn samples(all: &Measurements) -> Vec<Sample> {
    let experiments = [
        ("order", &all.order),
        ("parallel", &all.parallel),
        ("size", &all.size),
        ("depth", &all.depth),
        ("mix", &all.mix),
    ];
    let of_point = |experiment: &str, point: &Point| {
        let rates = [point.bytes_per_second_min, point.bytes_per_second, point.bytes_per_second_max];
        (0..3)
            .zip(rates)
            .map(|(repeat, bytes_per_second)| Sample {
                experiment: experiment.into(),
                repeat,
                workload: point.workload,
                bytes_per_second,
            })
            .collect::<Vec<_>>()
    };
    experiments
        .into_iter()
        .flat_map(|(name, points)| points.iter().flat_map(move |point| of_point(name, point)))
        .collect()
}

fn decisions() -> Vec<drive::Decision> {
    let decision = |setting, because: &str, from_default| drive::Decision {
        setting,
        because: because.into(),
        from_default,
        hidden_by_noise: false,
    };
    vec![
        decision(
            drive::Setting::LeafSize(Bytes(4 << 10)),
            "most random reads per second: 612 k at 4 KiB against 371 k at 8 KiB",
            false,
        ),
        decision(
            drive::Setting::RequestsInFlight(Count(48)),
            "90 % of the plateau of 4 KiB random reads",
            false,
        ),
        decision(
            drive::Setting::WriteUnit(Bytes(64 << 10)),
            "stripe size 64 KiB; write sizes from 32 KiB are desirable",
            false,
        ),
        decision(
            drive::Setting::LogBlock(Bytes(4 << 10)),
            "flash page undetermined: the logical block is used",
            true,
        ),
        decision(
            drive::Setting::SyncMethod(SyncMethod::Dsync),
            "870 µs in the median against 1.45 ms with fdatasync",
            false,
        ),
    ]
}

fn verification(noise: &mut Noise) -> Vec<Verification> {
    [
        (1.0, 4096.0, 1.0, 24.0),
        (0.0, 16384.0, 0.5, 6.0),
        (0.7, 8192.0, 1.0, 48.0),
        (1.0, 131_072.0, 1.0, 3.0),
        (0.0, 65536.0, 0.02, 12.0),
    ]
    .into_iter()
    .map(|(read_share, request_bytes, random_share, concurrency)| {
        let workload = Workload { read_share, request_bytes, random_share, concurrency };
        let predicted = 1.0 / seconds_per_byte(&workload);
        let measured = noise.about(predicted, 0.12);
        Verification {
            workload,
            predicted_bytes_per_second: predicted,
            measured_bytes_per_second: measured,
            measured_min_bytes_per_second: measured * 0.96,
            measured_max_bytes_per_second: measured * 1.05,
            relative_error: (predicted - measured).abs() / measured,
            regime: None,
        }
    })
    .collect()
}

fn provenance() -> Provenance {
    Provenance {
        identity: Identity {
            target: "/data/scratch".into(),
            kind: "file".into(),
            block_device: Some("nvme0n1".into()),
            model: Some("Made-up SSD 1000".into()),
            firmware: Some("3B7QCXE7".into()),
            kernel: Some("6.12.8-amd64".into()),
            file_system: Some("ext4".into()),
            mount_options: Some("rw,relatime,errors=remount-ro".into()),
            scheduler: Some("none".into()),
            write_cache: Some("write back".into()),
            rotational: Some(false),
            poll_queues: Some(false),
            queue_requests: Some(1023),
            max_transfer_bytes: Some(131_072),
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4096),
            backend: "io_uring".into(),
            backend_reason: "the kernel allows it and it costs the least CPU per request".into(),
            notes: vec!["This profile is made up: it was computed, not measured.".into()],
        },
        geometry: Geometry {
            capacity_bytes: 8 << 30,
            offset_align_bytes: 512,
            memory_align_bytes: 512,
            preferred_max_transfer_bytes: 131_072,
            direct: true,
            writable: true,
            members: 1,
            stripe_unit_bytes: None,
        },
        date_utc: "2026-11-21T20:58:00Z".into(),
        seed: 42,
        flashgrain_version: "0.1.0".into(),
        precondition: "as found".into(),
    }
}

fn budget() -> Budget {
    let used = |name: &str, trials, used_s, used_write_bytes, noise| ExperimentUse {
        name: name.into(),
        trials,
        used_s,
        used_write_bytes,
        noise,
    };
    Budget {
        limit_s: 60.0,
        limit_write_bytes: 4 << 30,
        used_s: 57.3,
        used_write_bytes: 3_300_000_000,
        file_bytes: 4 << 30,
        experiments: vec![
            used("order", 336, 27.1, 2_400_000_000, Some(0.031)),
            used("parallel", 33, 4.2, 0, Some(0.022)),
            used("size", 39, 3.9, 0, Some(0.18)),
            used("depth", 192, 9.6, 0, Some(0.027)),
            used("mix", 63, 6.3, 600_000_000, Some(0.046)),
            used("flush", 4, 2.1, 4_900_000, None),
        ],
        processor: Some(ProcessorUse { ran_s: 21.0, waited_s: 9.0, stolen_share: Some(0.012) }),
        left_out: vec![
            "sustain: opt-in, needs several minutes of writing".into(),
            "location at chunks above 256 KiB: no time left".into(),
        ],
    }
}

fn store() -> StoreRun {
    let operation =
        |name: &str, concurrency: u32, rates: [f64; 3], reads: f64, written: f64, requests: &str| {
            let [measured, predicted, raw] = rates;
            let p50_us = f64::from(concurrency) / measured * 0.9e6;
            StoreOperation {
                operation: name.into(),
                concurrency,
                measured_per_second: measured,
                predicted_per_second: Some(predicted),
                raw_per_second: Some(raw),
                raw_repeats_per_second: vec![raw * 0.98, raw * 1.02],
                latency: Latency {
                    count: 50_000,
                    mean_us: p50_us * 1.1,
                    p50_us,
                    p99_us: p50_us * 3.0,
                    ..Latency::default()
                },
                reads_per_operation: reads,
                read_bytes_per_operation: reads * 4096.0,
                written_bytes_per_operation: written,
                requests: requests.into(),
                cpu_us_per_operation: Some(2.5),
                cpu_busy_share: Some(measured * 2.5e-6 / 4.0),
            }
        };
    let both = "4 KiB reads, 64 in flight; 64 KiB writes, 4 in flight";
    let one = "one 16 KiB write at a time, by RWF_DSYNC";
    StoreRun {
        layout: vec![
            layout::Decision {
                setting: layout::Setting::WriteUnit(Bytes(64 << 10)),
                because: "the desirable write size".into(),
            },
            layout::Decision {
                setting: layout::Setting::LogBlock(Bytes(16 << 10)),
                because: "the flash page: a smaller block is padded to it (rule 5)".into(),
            },
        ],
        records: 1_398_101,
        key_bytes: 8,
        value_bytes: 120,
        stored_bytes: 214_748_364,
        cache_bytes: 32 << 20,
        workers: 4,
        used_s: 11.4,
        used_write_bytes: 900 << 20,
        operations: vec![
            operation(
                "inserts by hundreds",
                4,
                [1.2e6, 5.6e6, 5.9e6],
                0.0,
                270.0,
                "64 KiB writes, 4 in flight",
            ),
            operation("random look-ups", 64, [420e3, 460e3, 440e3], 0.85, 0.0, "4 KiB reads, 64 in flight"),
            operation("random updates", 64, [170e3, 200e3, 210e3], 0.85, 4300.0, both),
            operation("durable commits", 1, [1.02e3, 1.04e3, 1.06e3], 0.0, 16384.0, one),
            operation(
                "durable commits",
                64,
                [58e3, 67e3, 68e3],
                0.0,
                400.0,
                "one 16 KiB write at a time, by RWF_DSYNC, for each 64 commits",
            ),
        ],
    }
}

/// A profile in which every experiment was run, with fitted models.
pub fn full() -> DeviceProfile {
    let mut profile = unfitted();
    let samples = samples(&profile.measurements);
    let options = FitOptions { resamples: 20, ..FitOptions::default() };
    profile.models = fit(&samples, &options).ok();
    profile.comparison = compare(&samples, &options).ok();
    profile
}

/// The same without models: nothing in it depends on how they are fitted.
pub fn unfitted() -> DeviceProfile {
    let mut noise = Noise(42);
    let mut measurements = measurements(&mut noise);
    measurements.sustain = Some(sustain(&mut noise));
    DeviceProfile {
        format: "flashgrain device profile".into(),
        schema_version: SCHEMA_VERSION,
        provenance: provenance(),
        budget: budget(),
        models: None,
        burst_models: None,
        comparison: None,
        distrust: None,
        learned: learned(),
        decisions: decisions(),
        verification: verification(&mut noise),
        measurements,
        store: Some(store()),
    }
}

/// A profile with a drive and nothing else.
pub fn empty() -> DeviceProfile {
    DeviceProfile {
        format: "flashgrain device profile".into(),
        schema_version: SCHEMA_VERSION,
        provenance: Provenance {
            identity: Identity { target: "/empty".into(), ..Identity::default() },
            ..provenance()
        },
        budget: Budget {
            limit_s: 60.0,
            limit_write_bytes: 0,
            used_s: 0.0,
            used_write_bytes: 0,
            file_bytes: 0,
            experiments: Vec::new(),
            processor: None,
            left_out: Vec::new(),
        },
        measurements: Measurements::default(),
        models: None,
        burst_models: None,
        comparison: None,
        distrust: None,
        learned: nothing_learned(),
        decisions: Vec::new(),
        verification: Vec::new(),
        store: None,
    }
}
