//! Hard disks: closed forms of seek, rotation and transfer, reading ahead, reordering, and the write cache.

use std::collections::BTreeMap;

use flashgrain_device::{Device, Op};
use flashgrain_model::{Access, Workload};
use flashgrain_profile::{Config, ExperimentName};
use flashgrain_ssdsim::config::{DiskConfig, HostConfig, MediumConfig};
use flashgrain_ssdsim::fault::PowerCut;
use flashgrain_ssdsim::{SimConfig, SimDevice, preset};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::common::{loaded, profile, random_reads};
use crate::host::Host;
use crate::score::{Hidden, Verdict};

const DISKS: [&str; 5] =
    ["seagate-250gb-2006", "hitachi-1tb-2009", "wd-black-1tb-2011", "seagate-2tb-2012", "wd-red-6tb-2018"];

/// The mechanics in a disk's description, worked out independently of the simulation; seconds and bytes.
struct ClosedForm {
    capacity: f64,
    host: HostConfig,
    disk: DiskConfig,
}

impl ClosedForm {
    fn of(config: &SimConfig) -> Self {
        Self {
            capacity: config.capacity_bytes as f64,
            host: config.host.clone(),
            disk: disk_of(&mut config.clone()).clone(),
        }
    }

    fn revolution(&self) -> f64 {
        60.0 / self.disk.rotations_per_minute
    }

    /// Rates of the zones, from outside.
    fn rates(&self) -> Vec<f64> {
        let (outer, inner) = (self.disk.outer_bytes_per_s as f64, self.disk.inner_bytes_per_s as f64);
        let last = f64::from(self.disk.zones - 1).max(1.0);
        (0..self.disk.zones).map(|zone| outer + (inner - outer) * f64::from(zone) / last).collect()
    }

    /// Mean of the rates over cylinders; bytes take the inverse of it in the mean, as fast zones hold more of
    /// them.
    fn mean_rate(&self) -> f64 {
        let rates = self.rates();
        rates.iter().sum::<f64>() / rates.len() as f64
    }

    fn seek(&self, distance: f64) -> f64 {
        let (track, average, full) =
            (self.disk.track_seek_ms, self.disk.average_seek_ms, self.disk.full_seek_ms);
        let cylinders = f64::from(self.disk.cylinders);
        let third = cylinders / 3.0;
        let ms = if distance < 1.0 {
            0.0
        } else if distance <= third {
            track + (average - track) * (distance.sqrt() - 1.0) / (third.sqrt() - 1.0)
        } else {
            average + (full - average) * (distance - third) / (cylinders - 1.0 - third)
        };
        ms * 1e-3
    }

    /// Cylinder of the byte at this share of the capacity.
    fn cylinder(&self, share: f64) -> f64 {
        let rates = self.rates();
        let mut remaining = share * rates.iter().sum::<f64>();
        let per_zone = f64::from(self.disk.cylinders) / rates.len() as f64;
        for (zone, rate) in rates.iter().enumerate() {
            if remaining < *rate {
                return (zone as f64 + remaining / rate) * per_zone;
            }
            remaining -= rate;
        }
        f64::from(self.disk.cylinders - 1)
    }

    /// Mean over all pairs of bytes.
    fn mean_seek(&self) -> f64 {
        const PLACES: usize = 1000;
        let cylinders: Vec<f64> =
            (0..PLACES).map(|place| self.cylinder((place as f64 + 0.5) / PLACES as f64)).collect();
        let to_all =
            |from: &f64| cylinders.iter().map(|to| self.seek((from - to).abs().floor())).sum::<f64>();
        cylinders.iter().map(to_all).sum::<f64>() / (PLACES * PLACES) as f64
    }

    /// Command and its answer.
    fn command(&self) -> f64 {
        (self.host.command_ns + self.host.fetch_ns + self.host.completion_ns) as f64 * 1e-9
    }

    fn link(&self, bytes: f64) -> f64 {
        bytes / self.host.link_bytes_per_s as f64
    }

    /// A random access: seek, half a revolution, transfer.
    fn access(&self, bytes: f64) -> f64 {
        self.mean_seek() + self.revolution() / 2.0 + bytes / self.mean_rate()
    }
}

fn disk_of(config: &mut SimConfig) -> &mut DiskConfig {
    match &mut config.medium {
        MediumConfig::Disk(disk) => disk,
        _ => panic!("{} is no disk", config.name),
    }
}

/// A preset, changed.
fn disk(name: &str, change: impl FnOnce(&mut DiskConfig)) -> SimConfig {
    let mut config = preset::find(name).unwrap();
    change(disk_of(&mut config));
    config
}

fn device(config: &SimConfig) -> SimDevice {
    SimDevice::new(config, "sim:disk", 1).unwrap()
}

fn assert_near(what: &str, got: f64, wanted: f64, within: f64) {
    println!("{what}: {got:.6}, expected {wanted:.6}");
    assert!((got / wanted - 1.0).abs() <= within, "{what} is {got}, not {wanted}");
}

/// Seconds of each of `count` requests, one after another from `offset_bytes` on.
fn sequential(host: &mut Host, op: Op, offset_bytes: u64, length: usize, count: u64) -> Vec<f64> {
    let mut memory = vec![1; length];
    let request = |index| host.request(op, offset_bytes + index * length as u64, &mut memory);
    (0..count).map(request).map(|completion| completion.latency().seconds()).collect()
}

fn sum(seconds: &[f64]) -> f64 {
    seconds.iter().sum()
}

#[test]
fn an_idle_disk_takes_the_sum_of_its_stages() {
    for name in DISKS {
        let config = preset::find(name).unwrap();
        let form = ClosedForm::of(&config);
        let outer = form.disk.outer_bytes_per_s as f64;
        let track_bytes = outer * form.revolution();
        // At time zero the arm is at the outermost cylinder and the first byte under the head.
        for sector in [0, 1, 500, 2000, 1_000_000, 20_000_000] {
            let offset = sector * 512;
            let mut host = Host::of(&config, 1);
            let latency = host.request(Op::Read, offset, &mut [0; 4096]).latency().seconds();
            let begin = (form.host.command_ns + form.host.fetch_ns) as f64 * 1e-9;
            let cylinder = form.cylinder(offset as f64 / form.capacity).floor();
            let arrived = begin + form.seek(cylinder);
            let turn = (offset as f64 / track_bytes).fract() * form.revolution();
            let wait = (turn - arrived).rem_euclid(form.revolution());
            let expected =
                arrived + wait + 4096.0 / outer + form.link(4096.0) + form.host.completion_ns as f64 * 1e-9;
            // Nanoseconds are rounded for every revolution that the offset is away from the first track.
            let revolutions = offset as f64 / track_bytes;
            let within = 20e-9 + revolutions * 1e-9 + form.revolution() * 1e-5;
            assert!((latency - expected).abs() < within, "{name} {sector}: {latency}, not {expected}");
        }
    }
}

#[test]
fn random_accesses_take_the_mean_seek_and_half_a_revolution() {
    for name in DISKS {
        let config = preset::find(name).unwrap();
        let form = ClosedForm::of(&config);
        let expected = form.command() + form.access(4096.0) + form.link(4096.0);
        let reads = loaded(&device(&config), random_reads(4096, 1), 600.0);
        assert_near(&format!("{name}: random read, s"), 1.0 / reads.iops(), expected, 0.01);
        // Writes that do not complete in a cache, the same.
        let uncached = disk(name, |disk| disk.write_cache_bytes = 0);
        let writes = loaded(&device(&uncached), Workload::random(Access::Write, 4096.0, 1.0), 600.0);
        assert_near(&format!("{name}: random write, s"), 1.0 / writes.iops(), expected, 0.01);
    }
}

#[test]
fn sequential_reads_run_at_the_rate_of_their_zone() {
    for name in DISKS {
        let config = preset::find(name).unwrap();
        let form = ClosedForm::of(&config);
        let (length, count) = (1 << 20, 60);
        let all = (length as u64 * count) as f64;
        for (offset, rate) in [
            (0, form.disk.outer_bytes_per_s),
            (config.capacity_bytes - length as u64 * (count + 1), form.disk.inner_bytes_per_s),
        ] {
            let mut host = Host::of(&config, 1);
            // The first one seeks.
            sequential(&mut host, Op::Read, offset, length, 1);
            let seconds = sum(&sequential(&mut host, Op::Read, offset + length as u64, length, count));
            assert_near(&format!("{name}: rate from {offset} on"), all / seconds, rate as f64, 0.01);
            let counters = host.device.statistics().counters;
            assert_eq!((counters.read_ahead_hits, counters.reads), (count, count + 1));
        }
        // The narrowest stage decides: a slower link does.
        let mut narrow = config.clone();
        narrow.host.link_bytes_per_s = 20_000_000;
        let mut host = Host::of(&narrow, 1);
        let seconds = sum(&sequential(&mut host, Op::Read, 0, length, count));
        assert_near(&format!("{name}: rate behind a slow link"), all / seconds, 20e6, 0.01);
    }
}

#[test]
fn small_sequential_reads_come_out_of_the_buffer() {
    let config = preset::find("wd-black-1tb-2011").unwrap();
    let form = ClosedForm::of(&config);
    let mut host = Host::of(&config, 1);
    let latencies = sequential(&mut host, Op::Read, 0, 4096, 2000);
    // The command takes longer than the bytes need to pass the head.
    let expected = form.command() + form.link(4096.0);
    assert_near("read of the buffer, s", sum(&latencies[1000..]) / 1000.0, expected, 0.001);
    // Read-ahead does not go beyond the buffer, and the way back costs a seek or a turn.
    let far = form.disk.read_ahead_bytes + (64 << 20);
    let latency = host.request(Op::Read, far, &mut [0; 4096]).latency().seconds();
    assert!(latency > 3.0 * expected, "{latency}");
}

#[test]
fn without_reading_ahead_every_sequential_access_waits_for_a_turn() {
    for op in [Op::Read, Op::WriteDsync] {
        let config = disk("hitachi-1tb-2009", |disk| disk.read_ahead_bytes = 0);
        let form = ClosedForm::of(&config);
        let mut host = Host::of(&config, 1);
        sequential(&mut host, op, 0, 4096, 1);
        let latencies = sequential(&mut host, op, 4096, 4096, 100);
        // The head has just missed the next sector: it comes back one revolution later, and the bytes take
        // their time.
        let expected = form.revolution() + 4096.0 / form.disk.outer_bytes_per_s as f64;
        assert_near(&format!("{op:?}, s"), sum(&latencies) / 100.0, expected, 1e-4);
    }
}

#[test]
fn reordering_shortens_the_way() {
    let name = "wd-black-1tb-2011";
    let rate = |reorder_depth, concurrency| {
        let config = disk(name, |disk| disk.reorder_depth = reorder_depth);
        loaded(&device(&config), random_reads(4096, concurrency), 200.0).iops()
    };
    // In the order of arrival, commands and link only hide behind the arm's work.
    let form = ClosedForm::of(&preset::find(name).unwrap());
    assert_near("in order, s", 1.0 / rate(1, 32), form.access(4096.0), 0.01);
    let rates: Vec<f64> = [1, 4, 32].into_iter().map(|depth| rate(depth, 32)).collect();
    println!("reads/s in the order of arrival, among 4 and among 32: {rates:.1?}");
    assert!(rates[1] > 1.2 * rates[0] && rates[2] > 1.8 * rates[0], "{rates:?}");
}

#[test]
fn writes_complete_in_the_cache_until_it_is_full() {
    let config = disk("wd-black-1tb-2011", |disk| disk.write_cache_bytes = 1 << 20);
    let form = ClosedForm::of(&config);
    let device = device(&config);
    let cached = loaded(&device, Workload::random(Access::Write, 4096.0, 1.0), 0.01);
    let in_cache = form.command() + form.link(4096.0);
    assert_near("write into the cache, s", 1.0 / cached.iops(), in_cache, 0.01);
    // When it is full, a write waits until another is on the platters, and those are written back in the best
    // order, like reads.
    let writes = loaded(&device, Workload::random(Access::Write, 4096.0, 8.0), 100.0).iops();
    let reads = loaded(&device, random_reads(4096, 32), 100.0).iops();
    assert_near("writes/s of a full cache as reads/s", writes, reads, 0.05);
}

#[test]
fn sequential_writes_are_written_back_at_the_rate_of_their_zone() {
    let config = disk("hitachi-1tb-2009", |disk| disk.write_cache_bytes = 4 << 20);
    let mut host = Host::of(&config, 1);
    let (length, count) = (256 << 10, 400);
    sequential(&mut host, Op::Write, 0, length, 40);
    let seconds = sum(&sequential(&mut host, Op::Write, 40 * length as u64, length, count));
    let rate = (length as u64 * count) as f64 / seconds;
    assert_near("rate", rate, ClosedForm::of(&config).disk.outer_bytes_per_s as f64, 0.01);
}

#[test]
fn a_flush_writes_the_cache_back() {
    let config = preset::find("hitachi-1tb-2009").unwrap();
    let mut host = Host::of(&config, 1);
    for index in 0..100 {
        host.write(index * 7_919 * 4096 * 97, &[7; 4096]);
    }
    let flush = host.request(Op::Flush, 0, &mut []).latency().seconds();
    let counters = host.device.statistics().counters;
    assert_eq!(counters.platter_bytes_written, 100 * 4096);
    // A hundred accesses in the best order of 32: less than so many mean ones, more than the turns alone.
    let mean = ClosedForm::of(&config).access(4096.0);
    assert!((10.0 * mean..100.0 * mean).contains(&flush), "{flush} s");
    let again = host.request(Op::Flush, 0, &mut []).latency().seconds();
    assert!(again < 1e-3, "{again} s for a flush of nothing");
}

#[test]
fn a_write_of_the_same_place_replaces_the_one_in_the_cache() {
    let mut host = Host::of(&preset::find("hitachi-1tb-2009").unwrap(), 1);
    // The arm is busy far away.
    host.write(900 << 30, &[1; 4096]);
    for round in 0..50 {
        host.write(0, &[round; 4096]);
    }
    assert_eq!(host.read(0, 4096), [49; 4096]);
    host.flush();
    let counters = host.device.statistics().counters;
    assert_eq!(counters.write_cache_hits, 1);
    assert!(counters.platter_bytes_written <= 3 * 4096, "{}", counters.platter_bytes_written);
}

/// Half of a write: neighbouring writes overlap, so that ranges in the cache are cut.
const SLOT_BYTES: u64 = 2048;
const SLOTS: usize = 32;

/// Number of the newest write to each slot that a flush has covered, and of the newest that was acknowledged.
#[derive(Clone, Copy, Default)]
struct Promised {
    durable: [u8; SLOTS],
    acknowledged: [u8; SLOTS],
    /// Writes that are still on their way.
    in_flight: usize,
}

/// Writes and flushes at random, several at a time, until a flush is answered behind the last of `writes`.
/// `memory` holds what each of them writes: its number.
fn write_and_flush(host: &mut Host, memory: &mut [[u8; 4096]], random: &mut Pcg64) -> Promised {
    let mut promised = Promised::default();
    // Slots by number.
    let mut in_flight: BTreeMap<usize, usize> = BTreeMap::new();
    let mut covered = None;
    let mut number = 0;
    loop {
        let slot = random.random_range(0..SLOTS - 1);
        let overlaps = in_flight.values().any(|other| slot.abs_diff(*other) < 2);
        match random.random_range(0..8) {
            0..4 if number + 1 < memory.len() && !overlaps => {
                number += 1;
                in_flight.insert(number, slot);
                host.submit(Op::Write, slot as u64 * SLOT_BYTES, &mut memory[number], number as u64);
            }
            4 if covered.is_none() => {
                covered = Some(promised.acknowledged);
                host.submit(Op::Flush, 0, &mut [], 0);
            }
            5.. if covered.is_some() || !in_flight.is_empty() => {
                let completion = host.reap(1).remove(0);
                assert_eq!(completion.result, Ok(()));
                if completion.tag == 0 {
                    promised.durable = covered.take().unwrap();
                    if number + 1 == memory.len() {
                        promised.in_flight = in_flight.len();
                        return promised;
                    }
                } else {
                    let slot = in_flight.remove(&(completion.tag as usize)).unwrap();
                    promised.acknowledged[slot..slot + 2].fill(completion.tag as u8);
                }
            }
            _ => {}
        }
    }
}

/// The power fails at the moment at which a flush is answered, and everything that it did not have to write
/// is lost.
#[test]
fn what_was_flushed_beside_other_writes_survives() {
    for seed in 0..200 {
        let config = disk("hitachi-1tb-2009", |disk| disk.write_cache_bytes = 16 << 10);
        let mut host = Host::of(&config, seed);
        let mut random = Pcg64::seed_from_u64(seed);
        let writes = random.random_range(1..100);
        let mut memory: Vec<[u8; 4096]> = (0..=writes).map(|number| [number; 4096]).collect();
        let promised = write_and_flush(&mut host, &mut memory, &mut random);
        host.device.power_cut(&PowerCut::default());
        host.reap(promised.in_flight);
        host.device.power_on();
        let bytes = host.read(0, SLOTS * SLOT_BYTES as usize);
        for (slot, durable) in promised.durable.iter().enumerate() {
            let held = bytes[slot * SLOT_BYTES as usize];
            assert!(held >= *durable, "seed {seed}: slot {slot} holds write {held}, {durable} was durable");
        }
    }
}

#[test]
fn requests_in_the_disk_are_rate_times_latency() {
    for depth in [1, 8, 64] {
        let device = device(&preset::find("wd-red-6tb-2018").unwrap());
        let workload = Workload { read_share: 0.6, ..random_reads(4096, depth) };
        loaded(&device, workload, 50.0);
        let statistics = device.statistics();
        let waited = statistics.read_stages.sum_ns() + statistics.write_stages.sum_ns();
        assert_eq!(statistics.in_flight_ns, u128::from(waited), "{depth}");
        let in_flight = statistics.in_flight_ns as f64 / statistics.elapsed_ns as f64;
        assert_near("requests in flight", in_flight, f64::from(depth), 0.02);
    }
}

/// Platters turn and the arm moves, but nothing of it is a chunk, a stripe, or a page.
#[test]
fn nothing_hidden_is_found_in_a_disk() {
    for name in DISKS {
        let options = Config {
            experiments: vec![ExperimentName::RequestSize, ExperimentName::Location],
            budget_s: 1200.0,
            write_bytes: 512 << 20,
            ..Config::default()
        };
        let config = preset::find(name).unwrap();
        let learned = profile(&config, &options).profile.learned;
        let rows = Hidden::of(&config).rows(&learned);
        println!("{name}");
        rows.iter().for_each(|row| println!("{}", row.text()));
        assert!(rows.iter().all(|row| row.verdict != Verdict::Wrong), "{name}: {learned:#?}");
    }
}

#[test]
fn a_large_disk_takes_no_memory_at_the_start() {
    let device = device(&preset::find("wd-red-6tb-2018").unwrap());
    assert_eq!(device.geometry().capacity_bytes, 6_001_175_126_016);
    assert_eq!(device.image().stored_bytes(), 0);
}
