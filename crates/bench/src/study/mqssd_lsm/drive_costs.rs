//! The drive's own costs over concurrency: random reads and writes of several sizes (sections 3.3 and 4.2).

use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use flashgrain_device::Device;
use flashgrain_model::{Access, FitOptions, Mqssd, Sample, fit};
use flashgrain_profile::load::{Region, Stop, lay_out};
use flashgrain_ssdsim::{SimConfig, SimDevice};

use super::{Options, paper};
use crate::listener::Listener;
use crate::measure::{RawDrive, RawFile, RawRequests};

/// From a page of the drive to the largest request of a merge.
const REQUEST_BYTES: [u64; 5] = [4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10];

/// Requests of each point, and of each stream at least.
const REQUESTS: u64 = 256;
const REQUESTS_PER_STREAM: u64 = 8;

/// The model of the drive, fitted to reads and writes of a region as large as the records.
///
/// # Errors
/// Those of the target; [`flashgrain_profile::Error::Interrupted`].
pub(super) fn measure(
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<Mqssd> {
    listener.note("the drive's own costs");
    let bytes = options.records().bytes();
    let samples = match options.target.to_str().filter(|name| SimConfig::is_name(name)) {
        Some(name) => {
            let config = SimConfig::named(name)?.resized(options.drive_bytes(options.records()));
            let device = SimDevice::new(&config, name, options.seed)?;
            let length_bytes = bytes.min(device.capacity_bytes());
            let length_bytes = length_bytes - length_bytes % REQUEST_BYTES[REQUEST_BYTES.len() - 1];
            let region = Region { offset_bytes: 0, length_bytes };
            lay_out(&device, region, interrupt)?;
            samples(options, &device, region, interrupt)?
        }
        None => {
            let file = RawFile::new(&options.target, bytes, interrupt)?;
            samples(options, file.device(), file.region(), interrupt)?
        }
    };
    let fitted = fit(&samples, &FitOptions { seed: options.seed, resamples: 0, ..FitOptions::default() })?;
    fitted.mqssd.context("the drive's reads and writes do not determine its costs")
}

fn samples(
    options: &Options,
    device: &dyn Device,
    region: Region,
    interrupt: &AtomicBool,
) -> anyhow::Result<Vec<Sample>> {
    let mut drive = RawDrive::new(device, 1, options.seed, interrupt);
    let mut samples = Vec::new();
    // Reads first: writes leave the region in another order.
    for access in [Access::Read, Access::Write] {
        for clients in paper::CONCURRENCY {
            for bytes in REQUEST_BYTES {
                let requests = RawRequests::random(access, bytes as f64, clients);
                let after_requests = Some(REQUESTS.max(REQUESTS_PER_STREAM * u64::from(clients)));
                let measured =
                    drive.measure_to_end(requests, region, Stop { after_requests, ..Stop::default() })?;
                samples.push(Sample {
                    experiment: "order".into(),
                    repeat: 0,
                    workload: requests.workload,
                    bytes_per_second: measured.bytes_per_second(),
                });
            }
        }
    }
    Ok(samples)
}
