//! The load generator on a real scratch file, through every backend.

use std::sync::atomic::AtomicBool;

use flashgrain_device::{BackendKind, Device, FileDevice, Op, OpenOptions};
use flashgrain_model::{Access, Workload};
use flashgrain_profile::Error;
use flashgrain_profile::load::{Load, Pattern, Region, Stop, Sync, run, time_each};

const FILE_BYTES: u64 = 8 << 20;
static NEVER: AtomicBool = AtomicBool::new(false);

#[expect(clippy::unwrap_used, reason = "a test helper")]
fn device(backend: BackendKind) -> FileDevice {
    let options = OpenOptions { backend: Some(backend), ..OpenOptions::default() };
    FileDevice::scratch(&[env!("CARGO_TARGET_TMPDIR").into()], FILE_BYTES, &options).unwrap()
}

fn backends() -> impl Iterator<Item = BackendKind> {
    BackendKind::FOR_FILES.into_iter().filter(|backend| backend.available().is_ok())
}

fn load(workload: Workload, requests: u64) -> Load {
    Load {
        workload,
        pattern: Pattern::Mixed { align_bytes: None },
        region: Region { offset_bytes: 0, length_bytes: FILE_BYTES },
        workers: 1,
        sync: Sync::None,
        rate_per_s: None,
        polled: false,
        warmup_share: 0.0,
        stop: Stop { after_requests: Some(requests), ..Stop::default() },
        seed: 42,
    }
}

#[test]
fn every_request_is_done_and_counted_once() {
    for backend in backends() {
        let device = device(backend);
        for (read_share, workers) in [(1.0, 1), (0.0, 1), (0.5, 2)] {
            let workload =
                Workload { read_share, request_bytes: 4096.0, random_share: 1.0, concurrency: 8.0 };
            let measured = run(&device, &Load { workers, ..load(workload, 600) }, &NEVER).unwrap();
            // The tail, when streams run out of work, is drained but not counted.
            assert!((584..=600).contains(&measured.requests), "{backend:?}: {}", measured.requests);
            let bytes = measured.bytes_read + measured.bytes_written;
            assert_eq!(bytes, measured.requests * 4096);
            assert_eq!(measured.read_latency_ns.len() * 4096, measured.bytes_read);
            assert_eq!(measured.write_latency_ns.len() * 4096, measured.bytes_written);
            assert!(measured.bytes_written_total >= measured.bytes_written && measured.elapsed.0 > 0);
        }
    }
}

#[test]
fn fixed_work_too_short_for_a_steady_state_is_counted_whole() {
    let workload = Workload::random(Access::Write, 65536.0, 32.0);
    let measured =
        run(&device(BackendKind::Sync), &Load { warmup_share: 0.5, ..load(workload, 40) }, &NEVER).unwrap();
    assert_eq!((measured.requests, measured.bytes_written_total), (40, 40 * 65536));
}

#[test]
fn the_write_bound_is_never_exceeded() {
    let workload = Workload { read_share: 0.3, ..Workload::random(Access::Write, 16384.0, 16.0) };
    let stop = Stop { after_bytes_written: Some(1 << 20), ..Stop::default() };
    let measured = run(&device(BackendKind::IoUring), &Load { stop, ..load(workload, 0) }, &NEVER).unwrap();
    assert!(measured.bytes_written_total <= 1 << 20 && measured.bytes_written_total > 900 << 10);
}

#[test]
fn durable_writes_work_on_every_backend() {
    for backend in backends() {
        let device = device(backend);
        for sync in [Sync::Dsync, Sync::LinkedFlush, Sync::WriteThenFdatasync] {
            let workload = Workload::random(Access::Write, 4096.0, 2.0);
            let measured = run(&device, &Load { sync, ..load(workload, 10) }, &NEVER).unwrap();
            assert_eq!(measured.bytes_written_total, 10 * 4096, "{backend:?} {sync:?}");
        }
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let stop = Stop { after_s: Some(0.5), ..Stop::default() };
    let workload = Workload::random(Access::Read, 4096.0, 64.0);
    let load = Load { stop, rate_per_s: Some(400.0), ..load(workload, 0) };
    let measured = run(&device(BackendKind::IoUring), &load, &NEVER).unwrap();
    // 200 arrivals are expected; a Poisson count is within 6 standard deviations of that.
    assert!((115..=285).contains(&measured.requests), "{}", measured.requests);
}

#[test]
fn the_interrupt_flag_ends_a_load() {
    let stop = Stop { after_s: Some(3600.0), ..Stop::default() };
    let workload = Workload::random(Access::Read, 4096.0, 4.0);
    for rate_per_s in [None, Some(1.0)] {
        let load = Load { stop, rate_per_s, ..load(workload, 0) };
        let measured = run(&device(BackendKind::IoUring), &load, &AtomicBool::new(true)).unwrap();
        assert!(measured.interrupted);
    }
}

#[test]
fn loads_that_make_no_sense_are_refused() {
    let device = device(BackendKind::Sync);
    let good = load(Workload::random(Access::Read, 4096.0, 1.0), 1);
    let with = |change: &dyn Fn(&mut Load)| {
        let mut load = good.clone();
        change(&mut load);
        load
    };
    let bad = [
        with(&|load| load.workload.request_bytes = 100.0),
        with(&|load| load.workload.request_bytes = f64::NAN),
        with(&|load| load.workload.concurrency = 0.0),
        with(&|load| load.workload.concurrency = 1e9),
        with(&|load| load.workload.read_share = 3.0),
        with(&|load| load.workers = 0),
        with(&|load| load.workers = 2),
        with(&|load| load.region.length_bytes = FILE_BYTES + 1),
        with(&|load| load.region.length_bytes = 512),
        with(&|load| load.region.offset_bytes = u64::MAX - 511),
        with(&|load| load.rate_per_s = Some(0.0)),
        with(&|load| load.stop = Stop::default()),
        with(&|load| load.stop.after_s = Some(-1.0)),
    ];
    for load in bad {
        assert!(matches!(run(&device, &load, &NEVER), Err(Error::Argument(_))), "{load:?}");
    }
}

#[test]
fn what_was_written_is_what_is_read_back() {
    // Through a stripe set, with requests that straddle units: the bytes on the members are those of the
    // whole.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let paths: Vec<_> = (0..3).map(|member| directory.path().join(member.to_string())).collect();
    for path in &paths {
        std::fs::write(path, vec![0; 1 << 20]).unwrap();
    }
    let options = OpenOptions { write: true, stripe_unit_bytes: 8192, ..OpenOptions::default() };
    let device = FileDevice::existing(&paths, &paths, &options).unwrap();
    let workload = Workload { random_share: 0.0, ..Workload::random(Access::Write, 20480.0, 1.0) };
    let region = Region { offset_bytes: 0, length_bytes: 20480 * 100 };
    run(&device, &Load { region, ..load(workload, 100) }, &NEVER).unwrap();
    drop(device);
    let members: Vec<_> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    // One stream writes the same memory again and again: the whole repeats with the request's period.
    let whole: Vec<u8> = (0..20480 * 100)
        .map(|offset| members[offset / 8192 % 3][offset / 8192 / 3 * 8192 + offset % 8192])
        .collect();
    assert!(whole.chunks(20480).all(|chunk| chunk == &whole[..20480]));
    assert!(whole[..20480].iter().any(|&byte| byte != 0));
}

#[test]
fn each_request_is_timed_by_place() {
    let device = device(BackendKind::IoUring);
    let offsets = [65536, 0, 4096];
    let timed = time_each(&device, Op::Read, 4096, &offsets, &NEVER).unwrap();
    assert_eq!(timed.iter().map(|timed| timed.offset_bytes).collect::<Vec<_>>(), offsets);
    assert!(timed.iter().all(|timed| timed.latency.0 > 0));
    assert_eq!(device.geometry().capacity_bytes, FILE_BYTES);
}
