//! The ranking for a workload and a drive that a reader of a report varies.

use serde::{Deserialize, Serialize};

use super::drive::DriveCosts;
use super::standing::{Designs, Standing};
use super::workload::Workload;

/// The ranking's input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The workload.
    pub workload: Workload,
    /// The drive as it was profiled.
    pub drive: DriveCosts,
    /// How much the drive differs from that.
    pub factors: Factors,
}

/// Factors on a drive's costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factors {
    /// On the setup of reads.
    pub read_setup: f64,
    /// On the transfer of reads.
    pub read_transfer: f64,
    /// On the setup of writes.
    pub write_setup: f64,
    /// On the transfer of writes.
    pub write_transfer: f64,
    /// On the time until a write is durable.
    pub flush: f64,
}

impl Factors {
    /// The drive as it is.
    pub const ONE: Self =
        Self { read_setup: 1.0, read_transfer: 1.0, write_setup: 1.0, write_transfer: 1.0, flush: 1.0 };

    fn on(&self, drive: &DriveCosts) -> DriveCosts {
        DriveCosts {
            reads: drive
                .reads
                .map(|cost| cost.scaled(self.read_setup), |cost| cost.scaled(self.read_transfer)),
            writes: drive
                .writes
                .map(|cost| cost.scaled(self.write_setup), |cost| cost.scaled(self.write_transfer)),
            flush_seconds: drive.flush_seconds.scaled(self.flush),
            parallelism: drive.parallelism,
            interference: drive.interference.clone(),
        }
    }
}

impl Question {
    /// The best design of each family that memory has room for, best first.
    pub fn answer(&self) -> Standing {
        let drive = self.factors.on(&self.drive);
        Designs::of(&drive).standing(&self.workload, &drive)
    }
}
