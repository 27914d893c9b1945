//! The drive's own affine costs: random reads of several sizes, one at a time (section 4.2).

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use flashgrain::TreeOptions;
use flashgrain_model::{Access, Affine, AffineCosts, line_fit};
use flashgrain_profile::load::Stop;
use flashgrain_report::unit;
use serde::Serialize;

use super::Options;
use super::state::State;
use crate::fill::Order;
use crate::listener::Listener;
use crate::measure::{RawDrive, RawRequests};
use crate::study::subject::Subject;

/// Sizes of reads: one block to 16 MiB in the paper; the largest one is shorter where the store is small.
const READ_BYTES: (u64, u64) = (4 << 10, 16 << 20);
/// Reads of the largest size that the region has room for, at least.
const PLACES_MIN: u64 = 8;

/// Reads of each size.
const READS: u64 = 256;

/// Sweeps over all sizes, at most, until both costs are determined.
const SWEEPS_MAX: u32 = 5;

/// Resamples that tell a cost from none.
const RESAMPLES: u32 = 300;

/// The unit of the paper's α in its Table 2.
pub(super) const UNIT_BYTES: f64 = 4096.0;

/// A read of x bytes takes the setup and x times the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct DriveCosts {
    pub setup_seconds: f64,
    pub transfer_seconds_per_byte: f64,
    /// How well the line fits the reads.
    pub r_squared: Option<f64>,
}

impl DriveCosts {
    /// α of the paper, for blocks of 4 KiB.
    pub fn alpha(&self) -> f64 {
        self.transfer_seconds_per_byte * UNIT_BYTES / self.setup_seconds
    }

    /// Writes are taken to cost as much as reads.
    pub fn model(&self) -> Affine {
        let costs = AffineCosts {
            setup_seconds: self.setup_seconds,
            transfer_seconds_per_byte: self.transfer_seconds_per_byte,
        };
        Affine::from_costs(UNIT_BYTES, costs, costs)
    }
}

/// Reads where a store has records.
pub(super) fn measure(
    options: &Options,
    target: &Path,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<DriveCosts> {
    listener.note(&format!("{}: reads of the drive itself", target.display()));
    Subject::with(&options.setup(target, TreeOptions::new(), State::Loaded), |subject| {
        subject.fill(Order::Scattered, interrupt)?;
        subject.checkpoint()?;
        let (device, region) = subject.raw()?;
        let mut drive = RawDrive::new(&*device, 1, options.seed, interrupt);
        let (least, most) = READ_BYTES;
        let mut points = Vec::new();
        // Other load on the machine can hide the slope in a single sweep.
        for _ in 0..SWEEPS_MAX {
            let mut bytes = least;
            while bytes <= most.min(region.length_bytes / PLACES_MIN) {
                let requests = RawRequests::random(Access::Read, bytes as f64, 1);
                let stop = Stop { after_requests: Some(READS), ..Stop::default() };
                let measured = drive.measure_to_end(requests, region, stop)?;
                let seconds = measured.elapsed.0 as f64 * 1e-9 / measured.requests.max(1) as f64;
                listener.detail(&format!("{}: {} µs", unit::bytes(bytes as f64), seconds * 1e6));
                points.push((bytes as f64, seconds));
                bytes *= 2;
            }
            let line = line_fit(&points, RESAMPLES, options.seed)?;
            if let (Some(setup_seconds), Some(transfer_seconds_per_byte)) =
                (line.intercept.value(), line.slope.value())
            {
                return Ok(DriveCosts {
                    setup_seconds,
                    transfer_seconds_per_byte,
                    r_squared: line.r_squared,
                });
            }
        }
        bail!(
            "{}: reads of the drive vary too much to tell its setup from its transfer, in {SWEEPS_MAX} sweeps over all sizes; run the study again while the machine is quiet",
            target.display()
        );
    })
}
