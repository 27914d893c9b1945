//! Whole runs on a drive whose properties are known.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Character, TestDrive};
use flashgrain_device::{FileDevice, Op, OpenOptions, ThreadTimes};
use flashgrain_profile::schema::FlushPoint;
use flashgrain_profile::{
    Config, Error, ExperimentName, Plan, Precondition, Profiled, Progress, Silent, Step, Target, run,
};

fn profile(drive: &TestDrive, config: &Config) -> Result<Profiled, Error> {
    run(&Target::new(drive), config, &mut Silent, &AtomicBool::new(false))
}

fn config(budget_s: f64, write_bytes: u64) -> Config {
    Config { budget_s, write_bytes, ..Config::default() }
}

fn only(names: &[ExperimentName], budget_s: f64, write_bytes: u64) -> Config {
    Config { experiments: names.to_vec(), ..config(budget_s, write_bytes) }
}

fn value(learned: &flashgrain_profile::schema::LearnedValue) -> f64 {
    learned.estimate.value().unwrap_or_else(|| panic!("{learned:?}"))
}

#[test]
fn a_run_learns_what_the_drive_is() {
    let drive = TestDrive::new(Character::default());
    let Profiled { profile, .. } = profile(&drive, &config(30.0, 2 << 30)).unwrap();
    let learned = &profile.learned;
    // 80 µs of setup against 0.5 ns per byte.
    let half = value(&learned.half_bandwidth_bytes);
    assert!((half / 160e3 - 1.0).abs() < 0.1, "{half}");
    // The link carries 2 GB/s.
    let saturation = value(&learned.saturation_bytes_per_second);
    assert!((saturation / 2e9 - 1.0).abs() < 0.1, "{saturation}");
    // A read of 64 KiB takes 80 µs on a server and 33 µs on the link, which one of them after the other keeps
    // busy.
    let parallelism = value(&learned.parallelism);
    assert!((2.8..4.2).contains(&parallelism), "{parallelism}");
    // Eight servers with 80 µs each.
    let depth = value(&learned.depth_90);
    assert!((6.0..9.5).contains(&depth), "{depth}");
    // Nothing is hidden in this drive.
    assert!(
        learned.chunk_bytes.estimate.value().is_none() && learned.stripe_bytes.estimate.value().is_none()
    );
    assert_eq!(value(&learned.desirable_write_bytes), 1024.0);
    assert!(profile.models.is_some() && profile.comparison.is_some());
    assert!(profile.verification.len() > 40, "{}", profile.verification.len());
    assert!(profile.decisions.len() > 8);
    assert_eq!(drive.unwritten_reads(), 0, "reads of places that the layout left out");
}

#[test]
fn a_run_finds_what_is_hidden() {
    let drive = TestDrive::new(Character {
        hot: Some((64 << 10, 32 << 10, 0.39)),
        desirable: Some((32 << 10, 2.5)),
        capacity_bytes: 1 << 30,
        ..Character::default()
    });
    let experiments = [ExperimentName::RequestSize, ExperimentName::Location];
    let Profiled { profile, .. } = profile(&drive, &only(&experiments, 20.0, 2 << 30)).unwrap();
    let learned = &profile.learned;
    // This drive cuts no writes: those of 40 and 48 KiB are as good as multiples of 32, nothing shows a
    // stripe, and the desirable size may be any above 24.
    assert!(learned.desirable_write_bytes.estimate.value().is_none());
    assert!(learned.stripe_bytes.estimate.value().is_none());
    assert_eq!(value(&learned.chunk_bytes), f64::from(64 << 10));
    assert_eq!(value(&learned.hot_offset_bytes), f64::from(32 << 10));
    assert!(learned.flash_page_bytes.estimate.value().is_none());
}

#[test]
fn no_run_writes_more_or_takes_longer_than_allowed() {
    let slow = Character {
        servers: 1,
        read_setup_s: 8e-3,
        write_setup_s: 8e-3,
        seconds_per_byte: 1e-8,
        flush_s: 15e-3,
        capacity_bytes: 64 << 20,
        ..Character::default()
    };
    for character in [Character::default(), slow] {
        for (budget_s, write_bytes) in [(2.0, 0), (3.0, 16 << 20), (20.0, 100 << 20), (8.0, 3 << 30)] {
            let drive = TestDrive::new(character.clone());
            let result = profile(&drive, &config(budget_s, write_bytes)).unwrap();
            let case = format!("{budget_s} s, {write_bytes} bytes, {character:?}");
            let budget = &result.profile.budget;
            assert!(drive.written_bytes() <= write_bytes, "{} bytes: {case}", drive.written_bytes());
            assert_eq!(drive.written_bytes(), budget.used_write_bytes, "{case}");
            assert!(drive.now_s() <= budget_s * 1.2, "{} s: {case}", drive.now_s());
            assert!(!budget.experiments.is_empty(), "{case}");
        }
    }
}

#[test]
fn the_same_seed_repeats_the_same_run() {
    let samples = |seed: u64| {
        let drive = TestDrive::new(Character::default());
        let config =
            Config { seed, ..only(&[ExperimentName::Parallel, ExperimentName::Location], 3.0, 128 << 20) };
        let result = profile(&drive, &config).unwrap();
        let rates: Vec<f64> = result
            .samples
            .series
            .iter()
            .flat_map(|one| one.repeats.iter().map(|repeat| repeat.bytes_per_second))
            .collect();
        let learned = serde_json::to_string(&result.profile.learned).unwrap();
        (rates, learned)
    };
    let first = samples(1);
    assert!(!first.0.is_empty());
    assert_eq!(first, samples(1));
    assert_ne!(first, samples(2));
}

#[test]
fn what_fails_by_itself_is_left_out_with_the_reason() {
    let drive = TestDrive::new(Character {
        fails: Some((Op::WriteDsync, libc_errno::EOPNOTSUPP)),
        ..Character::default()
    });
    let result = profile(&drive, &only(&[ExperimentName::Flush], 3.0, 256 << 20)).unwrap();
    let methods: Vec<&str> =
        result.profile.measurements.flush.iter().map(|point| point.method.as_str()).collect();
    assert!(methods.contains(&"fdatasync") && !methods.contains(&"RWF_DSYNC"), "{methods:?}");
    let left_out = &result.profile.budget.left_out;
    assert!(
        left_out.iter().any(|text| text.contains("RWF_DSYNC") && text.contains("not supported")),
        "{left_out:?}"
    );
}

#[test]
fn a_drive_that_fails_ends_the_run() {
    for (op, errno) in [(Op::Read, libc_errno::EIO), (Op::Write, libc_errno::EIO)] {
        let drive = TestDrive::new(Character { fails: Some((op, errno)), ..Character::default() });
        let error = profile(&drive, &config(3.0, 256 << 20)).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error:?}");
    }
}

/// Linux's numbers, for which a dependency would be too much.
mod libc_errno {
    pub const EIO: i32 = 5;
    pub const EOPNOTSUPP: i32 = 95;
}

/// Interrupts while the models are fitted, when no request is under way.
struct StopAtFitting<'a>(&'a AtomicBool);

impl Progress for StopAtFitting<'_> {
    fn step(&mut self, step: &Step<'_>) {
        self.0.fetch_or(step.what == "fitting", Ordering::Relaxed);
    }
}

#[test]
fn an_interrupt_during_the_fits_ends_the_run_too() {
    let drive = TestDrive::new(Character::default());
    let flag = AtomicBool::new(false);
    let config = Config { verify: false, ..only(&[ExperimentName::Size], 2.0, 100 << 20) };
    let result = run(&Target::new(&drive), &config, &mut StopAtFitting(&flag), &flag);
    assert!(matches!(result, Err(Error::Interrupted)));
}

struct StopAt<'a> {
    step: u32,
    flag: &'a AtomicBool,
    planned: u32,
    last_fraction: f64,
}

impl Progress for StopAt<'_> {
    fn planned(&mut self, plan: &Plan) {
        assert!(plan.seconds() <= plan.budget_s * 1.0001);
        self.planned += 1;
    }

    fn step(&mut self, step: &Step<'_>) {
        assert!(step.fraction >= self.last_fraction && step.fraction <= 1.0);
        self.last_fraction = step.fraction;
        self.step = self.step.saturating_sub(1);
        self.flag.fetch_or(self.step == 0, Ordering::Relaxed);
    }
}

#[test]
fn an_interrupt_ends_the_run_wherever_it_is() {
    for step in [1, 3, 8, 40, 100] {
        let drive = TestDrive::new(Character::default());
        let flag = AtomicBool::new(false);
        let mut progress = StopAt { step, flag: &flag, planned: 0, last_fraction: 0.0 };
        let before_s = drive.now_s();
        let result = run(&Target::new(&drive), &config(30.0, 1 << 30), &mut progress, &flag);
        assert!(matches!(result, Err(Error::Interrupted)), "step {step}");
        assert_eq!(progress.planned, 1);
        assert!(drive.now_s() - before_s < 29.0);
    }
}

#[test]
fn without_leave_to_write_only_reads_are_measured() {
    let drive = TestDrive::new(Character::default());
    let result = profile(&drive, &config(5.0, 0)).unwrap();
    let measured = &result.profile.measurements;
    assert_eq!(drive.written_bytes(), 0);
    assert!(measured.order.iter().all(|point| point.workload.read_share == 1.0));
    assert!(!measured.depth.is_empty() && measured.flush.is_empty() && measured.location.is_empty());
    assert!(result.profile.budget.left_out[0].contains("everything that writes"));
}

#[test]
fn preconditioning_fills_the_region_as_often_as_it_says() {
    for (precondition, fills, text) in [
        (Precondition::None, 1, "as found"),
        (Precondition::Sequential, 2, "sequentially twice"),
        (Precondition::Random, 3, "random 4 KiB writes"),
    ] {
        let drive = TestDrive::new(Character { capacity_bytes: 32 << 20, ..Character::default() });
        let config = Config { precondition, ..only(&[ExperimentName::Parallel], 10.0, 1 << 30) };
        let result = profile(&drive, &Config { verify: false, ..config }).unwrap();
        assert_eq!(drive.written_bytes(), fills * (32 << 20), "{precondition:?}");
        assert!(
            result.profile.provenance.precondition.contains(text),
            "{}",
            result.profile.provenance.precondition
        );
    }
}

#[test]
fn full_size_runs_move_the_bytes_they_were_asked_to() {
    let drive = TestDrive::new(Character::default());
    let config =
        Config { bytes_per_stream: Some(16 << 20), ..only(&[ExperimentName::Parallel], 600.0, 1 << 30) };
    let result = profile(&drive, &Config { verify: false, ..config }).unwrap();
    assert_eq!(result.samples.series.len(), 11);
    for series in &result.samples.series {
        let streams = series.trial.workload().unwrap().concurrency;
        for repeat in &series.repeats {
            // Requests of warm-up and cool-down move bytes, too, but are not counted.
            let counted = repeat.bytes_per_second * repeat.seconds / (streams * f64::from(16 << 20));
            assert!((0.7..=1.0).contains(&counted), "{counted} of {:?}", series.trial);
        }
    }
}

#[test]
fn samples_are_kept_as_csv_that_compare_reads_and_as_json_lines() {
    let drive = TestDrive::new(Character::default());
    let experiments = [ExperimentName::Order, ExperimentName::Flush, ExperimentName::Location];
    let result = profile(&drive, &only(&experiments, 15.0, 1 << 30)).unwrap();
    let mut csv = Vec::new();
    result.samples.write_csv(&mut csv).unwrap();
    let samples = flashgrain_model::read_csv(csv.as_slice()).unwrap();
    let repeats: u32 = result.profile.measurements.order.iter().map(|point| point.repeats).sum();
    assert_eq!(samples.len() as u32, repeats);
    assert!(samples.iter().all(|sample| sample.experiment == "order"));
    let mut lines = Vec::new();
    result.samples.write_json_lines(&mut lines).unwrap();
    let lines: Vec<serde_json::Value> =
        String::from_utf8(lines).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    let counts = [count("load"), count("sweep"), count("verification")];
    assert!(counts[0] >= 8 && counts[1] > 100 && counts[2] > 40, "{counts:?}");
    let sweep = lines.iter().find(|line| line["kind"] == "sweep").unwrap();
    assert_eq!(sweep["experiment"], "location");
    assert!(sweep["latencies_us"].as_array().is_some_and(|latencies| !latencies.is_empty()));
}

#[test]
fn a_real_file_is_profiled_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let device = FileDevice::scratch(&[folder.path().to_owned()], 24 << 20, &OpenOptions::default()).unwrap();
    let target = Target::of_files(&device);
    let experiments = [ExperimentName::Interface, ExperimentName::Flush, ExperimentName::Size];
    let config = Config { resamples: 20, ..only(&experiments, 1.5, 100 << 20) };
    let result = run(&target, &config, &mut Silent, &AtomicBool::new(false)).unwrap();
    let profile = &result.profile;
    assert!(profile.budget.used_write_bytes <= 100 << 20, "{:?}", profile.budget);
    if ThreadTimes::of_this_thread().is_some() {
        let processor = profile.budget.processor.unwrap();
        assert!(processor.ran_s > 0.0 && processor.ran_s < profile.budget.used_s, "{processor:?}");
    }
    assert!(
        !profile.measurements.interface.is_empty() || !profile.measurements.size.is_empty(),
        "{:?}",
        profile.budget
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn durable_writes_to_a_growing_file_are_measured_in_directories_only() {
    let folder = tempfile::tempdir().unwrap();
    let device = FileDevice::scratch(&[folder.path().to_owned()], 24 << 20, &OpenOptions::default()).unwrap();
    let config = Config { resamples: 20, ..only(&[ExperimentName::Flush], 3.0, 100 << 20) };
    let of = |target: &Target<'_>| {
        let result = run(target, &config, &mut Silent, &AtomicBool::new(false)).unwrap();
        let points = result.profile.measurements.flush;
        points.iter().filter(|point| point.method == FlushPoint::GROWING_FILE).count()
    };
    assert_eq!(of(&Target::of_files(&device)), 1);
    assert_eq!(of(&Target::new(&device)), 0, "this one does not say that it is a scratch file");
}

#[test]
fn sustain_runs_on_its_own_budget() {
    let drive = TestDrive::new(Character { capacity_bytes: 64 << 20, ..Character::default() });
    let mut config = only(&[ExperimentName::Flush, ExperimentName::Sustain], 2.0, 200 << 20);
    config.sustain.write_bytes = 800 << 20;
    config.sustain.seconds = 10.0;
    config.sustain.round_s = 0.05;
    let result = profile(&drive, &config).unwrap();
    let sustain = result.profile.measurements.sustain.unwrap();
    assert!(sustain.steady, "{sustain:?}");
    assert!(sustain.sustained_bytes_per_second.value().is_some());
    assert!(drive.written_bytes() <= 1000 << 20);
    assert_eq!(result.profile.budget.limit_write_bytes, 1000 << 20);
}
