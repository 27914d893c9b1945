//! 3D XPoint: closed forms, published numbers, and what the profiler learns of it.

use flashgrain_model::{Access, Workload};
use flashgrain_profile::{Config, ExperimentName};
use flashgrain_ssdsim::config::{HostConfig, MediumConfig, XpointConfig};
use flashgrain_ssdsim::{SimConfig, SimDevice, preset};

use crate::common::{loaded, profile, random_reads};

const XPOINTS: [&str; 2] = ["905p", "900p"];

/// Requests in flight that saturate everything.
const MANY: u32 = 256;

fn random_writes(bytes: u64, concurrency: u32) -> Workload {
    Workload::random(Access::Write, bytes as f64, f64::from(concurrency))
}

fn sequential(access: Access, bytes: u64, concurrency: u32) -> Workload {
    Workload { random_share: 0.0, ..Workload::random(access, bytes as f64, f64::from(concurrency)) }
}

fn device(config: &SimConfig) -> SimDevice {
    SimDevice::new(config, "sim:xpoint", 1).unwrap()
}

fn assert_near(what: &str, got: f64, wanted: f64, within: f64) {
    println!("{what}: {got:.1}, expected {wanted:.1}");
    assert!((got / wanted - 1.0).abs() <= within, "{what} is {got}, not {wanted}");
}

/// A preset whose latencies do not vary.
fn steady(name: &str) -> (SimConfig, HostConfig, XpointConfig) {
    let mut config = preset::find(name).unwrap();
    let MediumConfig::Xpoint(xpoint) = &mut config.medium else { panic!("{name} is no 3D XPoint") };
    xpoint.jitter = 0.0;
    let (host, xpoint) = (config.host.clone(), xpoint.clone());
    (config, host, xpoint)
}

#[test]
fn an_idle_drive_takes_the_sum_of_its_stages() {
    for name in XPOINTS {
        let (config, host, xpoint) = steady(name);
        let link_us = |bytes: f64| bytes / host.link_bytes_per_s as f64 * 1e6;
        let channel_us = |bytes: f64| bytes / xpoint.channel_bytes_per_s as f64 * 1e6;
        let outside_us = (host.fetch_ns + host.completion_ns) as f64 * 1e-3;
        let read_us = outside_us + host.command_ns as f64 * 1e-3 + xpoint.read_us;
        let write_command_ns = host.write_command_ns.unwrap_or(host.command_ns);
        let write_us = outside_us + write_command_ns as f64 * 1e-3 + xpoint.write_us;
        // Within a chunk or not a whole one, parts are joined; chunks of a large request are in different
        // banks.
        let joined = xpoint.misaligned_read_us;
        let cases = [
            (random_reads(4096, 1), read_us + channel_us(4096.0) + link_us(4096.0)),
            (random_reads(512, 1), read_us + channel_us(512.0) + link_us(512.0) + joined),
            // Two channels deliver at the same time; the link takes one chunk behind the other.
            (random_reads(8192, 1), read_us + channel_us(4096.0) + link_us(8192.0)),
            (random_writes(4096, 1), write_us + channel_us(4096.0) + link_us(4096.0)),
            (random_writes(8192, 1), write_us + channel_us(4096.0) + link_us(8192.0)),
        ];
        for (workload, expected_us) in cases {
            let device = device(&config);
            let measured = loaded(&device, workload, 0.01);
            let latency_us = 1e6 / measured.iops();
            assert_near(&format!("{name}, {workload:?}, us"), latency_us, expected_us, 0.001);
        }
    }
}

#[test]
fn the_narrowest_stage_bounds_the_rate() {
    let (config, host, xpoint) = steady("905p");
    let banks = f64::from(xpoint.channels * xpoint.banks_per_channel);
    let chunk = f64::from(xpoint.chunk_bytes);
    let with = |host: HostConfig, xpoint: XpointConfig| SimConfig {
        host,
        medium: MediumConfig::Xpoint(xpoint),
        ..config.clone()
    };
    let gigabyte = 1e9 as u64;
    let fast = HostConfig {
        command_ns: 10,
        write_command_ns: None,
        link_bytes_per_s: 100 * gigabyte,
        ..host.clone()
    };
    let quick =
        XpointConfig { read_us: 0.1, write_us: 0.1, channel_bytes_per_s: 100 * gigabyte, ..xpoint.clone() };
    let cases = [
        // The command processor.
        (
            with(HostConfig { command_ns: 2000, ..fast.clone() }, quick.clone()),
            random_reads(4096, MANY),
            4096.0 / 2e-6,
        ),
        (
            with(HostConfig { write_command_ns: Some(4000), ..fast.clone() }, quick.clone()),
            random_writes(4096, MANY),
            4096.0 / 4e-6,
        ),
        // The link.
        (
            with(HostConfig { link_bytes_per_s: gigabyte, ..fast.clone() }, quick.clone()),
            random_reads(4096, MANY),
            1e9,
        ),
        // Banks: random requests pile up at some while others are idle, sequential ones do not.
        (
            with(fast.clone(), XpointConfig { read_us: 5.0, ..quick.clone() }),
            sequential(Access::Read, 1 << 20, 8),
            banks * chunk / 5e-6,
        ),
        (
            with(fast.clone(), XpointConfig { write_us: 15.0, ..quick.clone() }),
            sequential(Access::Write, 1 << 20, 8),
            banks * chunk / 15e-6,
        ),
        // Channels.
        (
            with(fast.clone(), XpointConfig { channel_bytes_per_s: gigabyte / 10, ..quick.clone() }),
            sequential(Access::Read, 1 << 20, 8),
            f64::from(xpoint.channels) * 1e8,
        ),
    ];
    for (config, workload, expected) in cases {
        let rate = loaded(&device(&config), workload, 0.05).bytes_per_second();
        assert_near(&format!("{workload:?}, bytes/s"), rate, expected, 0.01);
    }
}

#[test]
fn requests_in_the_drive_are_rate_times_latency() {
    for (name, depth) in [("905p", 1), ("905p", 7), ("900p", 200)] {
        let device = device(&preset::find(name).unwrap());
        let workload = Workload { read_share: 0.7, ..random_reads(4096, depth) };
        loaded(&device, workload, 0.01);
        // Everything has come back: what was in flight over time is exactly what all requests waited
        // together.
        let statistics = device.statistics();
        let waited = statistics.read_stages.sum_ns() + statistics.write_stages.sum_ns();
        assert_eq!(statistics.in_flight_ns, u128::from(waited), "{name} {depth}");
        let in_flight = statistics.in_flight_ns as f64 / statistics.elapsed_ns as f64;
        assert_near(&format!("{name}: requests in flight"), in_flight, f64::from(depth), 0.02);
    }
}

#[test]
fn published_numbers_are_reached() {
    // Maker's data sheets; of the 900P also what the paper on RocksDB measured.
    for (name, reads, writes, reading, writing, idle_us) in
        [("905p", 575e3, 550e3, 2.6e9, 2.2e9, 10.0), ("900p", 550e3, 500e3, 2.5e9, 2.0e9, 9.0)]
    {
        let config = preset::find(name).unwrap();
        let run = |workload| loaded(&device(&config), workload, 0.1);
        assert_near(&format!("{name}: reads/s"), run(random_reads(4096, MANY)).iops(), reads, 0.03);
        assert_near(&format!("{name}: writes/s"), run(random_writes(4096, MANY)).iops(), writes, 0.03);
        let rate = |access| run(sequential(access, 1 << 20, 8)).bytes_per_second();
        assert_near(&format!("{name}: reading, B/s"), rate(Access::Read), reading, 0.03);
        assert_near(&format!("{name}: writing, B/s"), rate(Access::Write), writing, 0.03);
        let idle = 1e6 / run(random_reads(4096, 1)).iops();
        assert_near(&format!("{name}: read of the idle drive, us"), idle, idle_us, 0.03);
    }
    let half = Workload { read_share: 0.5, ..random_reads(4096, 8) };
    let mixed = loaded(&device(&preset::find("900p").unwrap()), half, 0.1).iops();
    assert_near("900p: half reads, half writes by 8 threads", mixed, 408e3, 0.03);
}

#[test]
fn what_was_configured_is_learned() {
    for name in XPOINTS {
        let config = Config {
            experiments: vec![ExperimentName::RequestSize, ExperimentName::Location],
            budget_s: 5.0,
            write_bytes: 512 << 20,
            ..Config::default()
        };
        let learned = profile(&preset::find(name).unwrap(), &config).profile.learned;
        let kib = |value: &flashgrain_profile::schema::LearnedValue| {
            value.estimate.value().map(|bytes| bytes / 1024.0)
        };
        println!(
            "{name}: desirable {:?}, stripe {:?}, chunk {:?}, hot {:?}, drop {:?}, page {:?}",
            kib(&learned.desirable_write_bytes),
            kib(&learned.stripe_bytes),
            kib(&learned.chunk_bytes),
            kib(&learned.hot_offset_bytes),
            learned.hot_latency_drop.estimate.value(),
            kib(&learned.flash_page_bytes)
        );
        // All write sizes are alike, which tells nothing of stripes.
        assert_eq!(
            kib(&learned.desirable_write_bytes),
            Some(1.0),
            "{name}: {:?}",
            learned.desirable_write_bytes
        );
        assert_eq!(kib(&learned.stripe_bytes), None, "{name}: {:?}", learned.stripe_bytes);
        assert_eq!(kib(&learned.chunk_bytes), Some(4.0), "{name}: {:?}", learned.chunk_bytes);
        assert_eq!(kib(&learned.hot_offset_bytes), Some(0.0), "{name}: {:?}", learned.hot_offset_bytes);
        assert_eq!(kib(&learned.flash_page_bytes), Some(4.0), "{name}: {:?}", learned.flash_page_bytes);
        let drop = learned.hot_latency_drop.estimate.value().unwrap();
        assert!((drop - 0.09).abs() < 0.01, "{name}: {drop}");
    }
}
