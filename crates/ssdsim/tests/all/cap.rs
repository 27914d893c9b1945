//! A cap before a drive is what its host sees, whatever the drive behind it can do, and credits are spent
//! before it binds.

use flashgrain_device::Op;
use flashgrain_model::{Access, Workload};
use flashgrain_profile::load::Stop;
use flashgrain_ssdsim::config::CapConfig;
use flashgrain_ssdsim::{SimConfig, SimDevice, preset};

use crate::common::{loaded, random_reads, until};
use crate::host::Host;

/// A volume of 3,000 requests and 125 MB a second on a fast drive.
fn volume(burst_requests: u64, burst_bytes: u64) -> SimConfig {
    let mut drive = preset::find("980pro").unwrap();
    drive.host.cap = Some(CapConfig {
        requests_per_s: Some(3000),
        burst_requests,
        bytes_per_s: Some(125_000_000),
        burst_bytes,
    });
    drive
}

fn assert_near(what: &str, found: f64, right: f64) {
    assert!((found / right - 1.0).abs() <= 0.01, "{what}: {found} instead of {right}");
}

#[test]
fn the_scarcer_of_requests_and_bytes_bounds_reads_and_writes_of_all_sizes_and_depths() {
    let device = SimDevice::new(&volume(0, 0), "sim:volume", 1).unwrap();
    for bytes in [512.0, 4096.0, 32_768.0, 65_536.0, 1_048_576.0] {
        for depth in [1.0, 32.0] {
            for access in [Access::Read, Access::Write] {
                let found = loaded(&device, Workload::random(access, bytes, depth), 1.0).iops();
                let what = format!("{access:?} of {bytes} bytes by {depth}");
                assert_near(&what, found, f64::min(3000.0, 125e6 / bytes));
            }
        }
    }
}

#[test]
fn a_slower_drive_than_its_cap_is_as_slow_as_without() {
    let mut slow = preset::find("wd-red-6tb-2018").unwrap();
    let rate = |drive: &SimConfig| {
        let device = SimDevice::new(drive, "sim:disk", 1).unwrap();
        loaded(&device, random_reads(4096, 1), 20.0).iops()
    };
    let without = rate(&slow);
    slow.host.cap = Some(CapConfig { requests_per_s: Some(3000), ..CapConfig::default() });
    assert_eq!(rate(&slow), without);
}

#[test]
fn credits_are_spent_at_the_speed_of_the_drive_and_come_back() {
    let drive = volume(6000, 0);
    let device = SimDevice::new(&drive, "sim:volume", 1).unwrap();
    let requests = |count: u64| Stop { after_requests: Some(count), ..Stop::default() };
    let small = random_reads(4096, 8);
    let begin = until(&device, small, requests(5000)).iops();
    assert!(begin > 30_000.0, "{begin} requests a second on credits");
    until(&device, small, requests(10_000));
    assert_near("without credits", until(&device, small, requests(10_000)).iops(), 3000.0);
    // Large reads take few requests: those that they leave over are saved.
    loaded(&device, random_reads(1 << 20, 8), 2.0);
    let again = until(&device, small, requests(3000)).iops();
    assert!(again > 30_000.0, "{again} requests a second on credits that came back");
}

#[test]
fn flushes_and_discards_pass() {
    let mut host = Host::of(&volume(0, 0), 1);
    let began = host.now();
    for _ in 0..100 {
        host.flush();
        host.discard(0, 4096);
    }
    let took_s = host.now().since(began).seconds();
    assert!(took_s < 0.02, "{took_s} s");
    for _ in 0..31 {
        host.request(Op::Read, 0, &mut [0; 4096]).result.unwrap();
    }
    let took_s = host.now().since(began).seconds() - took_s;
    assert!(took_s >= 30.0 / 3000.0, "{took_s} s");
}

#[test]
fn each_drive_of_a_set_has_its_own_cap() {
    let set = SimConfig { drives: 4, ..volume(0, 0) };
    let device = SimDevice::new(&set, "sim:set", 1).unwrap();
    assert_near("four volumes", loaded(&device, random_reads(4096, 256), 1.0).iops(), 12_000.0);
}
