//! Profiling and loading simulated drives.

use std::sync::atomic::AtomicBool;

use flashgrain_device::Device;
use flashgrain_model::{Access, Workload};
use flashgrain_profile::load::{self, Load, Measured, Pattern, Region, Stop, Sync};
use flashgrain_profile::{Config, Profiled, Silent, Target};
use flashgrain_ssdsim::{SimConfig, SimDevice};

/// Profiles a drive as a user would.
pub fn profile(drive: &SimConfig, config: &Config) -> Profiled {
    let device = SimDevice::new(drive, "a simulated drive", config.seed).unwrap();
    flashgrain_profile::run(&Target::new(&device), config, &mut Silent, &AtomicBool::new(false)).unwrap()
}

/// The settings of `flashgrain profile` for a drive that holds data: the default budget, on the whole drive.
pub fn as_a_user(drive: &SimConfig, seed: u64) -> Config {
    Config { region_bytes: Some(drive.capacity_bytes), holds_data: true, seed, ..Config::default() }
}

/// A load of `seconds` on the whole device, a part of them warm-up.
pub fn loaded(device: &SimDevice, workload: Workload, seconds: f64) -> Measured {
    until(device, workload, Stop { after_s: Some(seconds), ..Stop::default() })
}

/// The same with other places.
pub fn seeded(device: &SimDevice, workload: Workload, seconds: f64, seed: u64) -> Measured {
    let stop = Stop { after_s: Some(seconds), ..Stop::default() };
    let load = Load { warmup_share: 0.15, seed, ..whole_device(device, workload, stop) };
    load::run(device, &load, &AtomicBool::new(false)).unwrap()
}

/// A load on the whole device, a part of it warm-up.
pub fn until(device: &SimDevice, workload: Workload, stop: Stop) -> Measured {
    load::run(device, &whole_device(device, workload, stop), &AtomicBool::new(false)).unwrap()
}

/// The same with other places.
pub fn at_places(device: &SimDevice, workload: Workload, stop: Stop, seed: u64) -> Measured {
    let load = Load { seed, ..whole_device(device, workload, stop) };
    load::run(device, &load, &AtomicBool::new(false)).unwrap()
}

fn whole_device(device: &SimDevice, workload: Workload, stop: Stop) -> Load {
    Load {
        workload,
        pattern: Pattern::Mixed { align_bytes: None },
        region: Region { offset_bytes: 0, length_bytes: device.geometry().capacity_bytes },
        workers: 1,
        sync: Sync::None,
        rate_per_s: None,
        polled: false,
        warmup_share: 0.3,
        stop,
        seed: 7,
    }
}

/// Random reads.
pub fn random_reads(bytes: u64, concurrency: u32) -> Workload {
    Workload::random(Access::Read, bytes as f64, f64::from(concurrency))
}
