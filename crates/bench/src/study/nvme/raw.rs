//! Drives without a store.

use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use flashgrain_device::Device;
use flashgrain_model::Workload;
use flashgrain_profile::Error;
use flashgrain_profile::load::{self, Load, Measured, Pattern, Region, Stop, Sync};
use flashgrain_profile::schema::Latency;
use flashgrain_ssdsim::config::StartState;
use flashgrain_ssdsim::{SimConfig, SimDevice};
use serde::Serialize;

use super::{Options, Study};
use crate::measure::RawFile;

/// Share of the requests that come before those that count.
pub(super) const WARMUP_FRACTION: f64 = 0.5;

/// Drives that requests are made to.
pub(super) enum Drives {
    /// Simulated ones, in virtual time.
    Simulated(Box<SimDevice>),
    /// A file on a real one.
    File(Rc<RawFile>),
}

/// A measured load.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Reached {
    /// Requests in flight.
    pub in_flight: u32,
    /// Reads and writes per second.
    pub requests_per_s: f64,
    /// Bytes per second of both.
    pub bytes_per_s: f64,
    /// Latency of reads, or of writes if there are no reads.
    pub latency: Latency,
    /// Processor time of a request; of the simulation on simulated drives, and therefore left out there.
    pub cpu_us_per_request: Option<f64>,
}

impl Drives {
    /// This number of the target's simulated drives in this state, or a file in the directory.
    pub fn of(study: &Study<'_>, drives: u32, state: StartState) -> anyhow::Result<Self> {
        let options = study.options;
        match options.simulated()? {
            Some(config) => {
                let name = options.target.display().to_string();
                let config = SimConfig { drives, state, ..config };
                Ok(Self::Simulated(Box::new(SimDevice::new(&config, &name, options.seed)?)))
            }
            None => Ok(Self::File(study.file()?)),
        }
    }

    pub fn device(&self) -> &dyn Device {
        match self {
            Self::Simulated(device) => &**device,
            Self::File(file) => file.device(),
        }
    }

    /// All of it.
    pub fn region(&self) -> Region {
        Region { offset_bytes: 0, length_bytes: self.device().capacity_bytes() }
    }

    /// A load with this number of requests on simulated drives, or with the time of the options on a file.
    pub fn load(&self, options: &Options, workload: Workload, requests: u64) -> Load {
        let stop = match self {
            Self::Simulated(_) => {
                // Each request in flight counts some times.
                let requests_min = 8 * workload.concurrency as u64;
                Stop { after_requests: Some(requests.max(requests_min)), ..Stop::default() }
            }
            Self::File(_) => Stop { after_s: Some(options.seconds), ..Stop::default() },
        };
        load_in(options, self.region(), stop, workload)
    }

    /// Makes these requests.
    pub fn measure(
        &self,
        options: &Options,
        workload: Workload,
        requests: u64,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<Reached> {
        let load = self.load(options, workload, requests);
        let measured = load::run(self.device(), &load, interrupt)?;
        if measured.interrupted { Err(Error::Interrupted.into()) } else { Ok(Reached::of(&load, &measured)) }
    }
}

impl Reached {
    pub fn of(load: &Load, measured: &Measured) -> Self {
        let latency = if measured.read_latency_ns.is_empty() {
            &measured.write_latency_ns
        } else {
            &measured.read_latency_ns
        };
        Self {
            in_flight: load.workload.concurrency as u32,
            requests_per_s: measured.iops(),
            bytes_per_s: measured.bytes_per_second(),
            latency: Latency::of(latency),
            cpu_us_per_request: load.stop.after_s.map(|_| measured.cpu_us_per_request()),
        }
    }
}

/// A load in a part of a device.
pub(super) fn load_in(options: &Options, region: Region, stop: Stop, workload: Workload) -> Load {
    Load {
        workload,
        pattern: Pattern::Mixed { align_bytes: None },
        region,
        workers: 1,
        sync: Sync::None,
        rate_per_s: None,
        polled: false,
        warmup_share: WARMUP_FRACTION,
        stop,
        seed: options.seed,
    }
}
