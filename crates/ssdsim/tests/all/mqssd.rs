//! The drives of the MQSSD paper: how much slower requests of one page are than large ones, its Figure 1.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;

use flashgrain_model::{Access, Workload};
use flashgrain_profile::load::{self, Load, Pattern, Region, Stop, Sync};
use flashgrain_ssdsim::{SimConfig, SimDevice};

/// The paper's file.
const FILE_BYTES: u64 = 50_000_000_000;

/// One operation when every page is reached by a random access, and when 0.1 % of them are.
const PAGE_BYTES: u64 = 4096;
const LARGE_BYTES: u64 = 1000 * PAGE_BYTES;

/// The paper's finding for all three drives (§3.3.2): single-threaded throughput falls by this factor from
/// 0.1 % to 100 % of the pages, and so does that of 128 threads.
const SINGLE_READS: RangeInclusive<f64> = 18.0..=23.0;
const SINGLE_WRITES: RangeInclusive<f64> = 38.0..=57.0;
const MANY_READS: RangeInclusive<f64> = 1.3..=1.5;
const MANY_WRITES: RangeInclusive<f64> = 5.0..=7.8;

/// Bytes per second of `streams` that read or write so many bytes at random places of the file.
fn rate(config: &SimConfig, access: Access, bytes: u64, streams: u32) -> f64 {
    let device = SimDevice::new(config, "a drive of the MQSSD paper", 1).unwrap();
    let requests = u64::from(streams) * if bytes == PAGE_BYTES { 100 } else { 2 };
    let load = Load {
        workload: Workload::random(access, bytes as f64, f64::from(streams)),
        pattern: Pattern::Mixed { align_bytes: None },
        region: Region { offset_bytes: 0, length_bytes: FILE_BYTES },
        workers: 1,
        sync: Sync::None,
        rate_per_s: None,
        polled: false,
        warmup_share: 0.3,
        stop: Stop { after_requests: Some(requests), ..Stop::default() },
        seed: 7,
    };
    let measured = load::run(&device, &load, &AtomicBool::new(false)).unwrap();
    measured.iops() * bytes as f64
}

/// By which factor the throughput falls.
fn factor(name: &str, access: Access, streams: u32) -> f64 {
    let config = SimConfig::named(name).unwrap();
    let [large, page] = [LARGE_BYTES, PAGE_BYTES].map(|bytes| rate(&config, access, bytes, streams));
    println!(
        "{name:<8} {access:?} k = {streams:>3}: {:>7.0} and {:>6.1} MB/s, {:.2} x",
        large / 1e6,
        page / 1e6,
        large / page
    );
    large / page
}

fn falls_as_in_the_paper(name: &str) {
    let expected = [
        (Access::Read, 1, SINGLE_READS),
        (Access::Write, 1, SINGLE_WRITES),
        (Access::Read, 128, MANY_READS),
        (Access::Write, 128, MANY_WRITES),
    ];
    for (access, streams, range) in expected {
        let factor = factor(name, access, streams);
        assert!(range.contains(&factor), "{name}, {access:?} k = {streams}: {factor} and {range:?}");
    }
}

#[test]
fn the_990_pro_falls_as_in_figure_1() {
    falls_as_in_the_paper("990pro");
}

#[test]
fn the_t700_falls_as_in_figure_1() {
    falls_as_in_the_paper("t700");
}

#[test]
fn the_cs1030_falls_as_in_figure_1() {
    falls_as_in_the_paper("cs1030");
}

/// Table 2: a random write of one thread costs s(1) + beta(1) = 121 us, a random read t(1) + alpha(1) = 60
/// us.
#[test]
fn single_requests_of_the_990_pro_take_as_long_as_in_table_2() {
    let config = SimConfig::named("990pro").unwrap();
    for (access, expected_s) in [(Access::Read, 60e-6), (Access::Write, 121e-6)] {
        let took_s = PAGE_BYTES as f64 / rate(&config, access, PAGE_BYTES, 1);
        println!("990pro {access:?}: {:.1} us", took_s * 1e6);
        assert!((took_s / expected_s - 1.0).abs() < 0.03, "{access:?}: {took_s}");
    }
}
