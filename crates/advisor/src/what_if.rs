//! The ranking for a workload and a drive that a reader of a report varies.
//!
//! A page cannot hold a whole profile, so that [`DriveCosts`] has what a ranking takes of it. The page ranks
//! in a language of its own; [`Question::rank`] is what it must say, and a question with its answer is text
//! for both.

use serde::{Deserialize, Serialize};

pub use crate::drive::CostsOfKind;

use crate::drive::Drive;
use crate::error::Error;
use crate::interval::Interval;
use crate::rank::{Row, rows};
use crate::workload::Workload;

/// What is to be ranked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The workload: without a rate that must be reached, a number of cores or a lifetime budget.
    pub workload: Workload,
    /// The drive as it was profiled.
    pub drive: DriveCosts,
    /// How much the drive differs from that.
    pub factors: Factors,
}

/// What a ranking takes of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveCosts {
    /// Reads.
    pub reads: CostsOfKind,
    /// Writes.
    pub writes: CostsOfKind,
    /// Seconds that a write takes until it is durable, by `fdatasync` or what was measured instead.
    pub flush_seconds: Interval,
    /// Requests that the drive serves in the time of one; `None`: undetermined.
    pub parallelism: Option<Interval>,
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
}

impl Question {
    /// A workload on a drive as it is.
    pub fn new(workload: &Workload, drive: &Drive) -> Self {
        Self { workload: workload.clone(), drive: drive.what_if_costs(), factors: Factors::ONE }
    }

    /// The best design of each family that memory has room for, best first.
    ///
    /// # Errors
    /// [`Error::Field`] if the workload cannot be.
    pub fn rank(&self) -> Result<Vec<Row>, Error> {
        let workload = self.workload.clone().checked()?;
        Ok(rows(&workload, &Drive::of_what_if_costs(&self.drive.scaled(&self.factors))))
    }
}

impl DriveCosts {
    fn scaled(&self, factors: &Factors) -> Self {
        Self {
            reads: self.reads.scaled(factors.read_setup, factors.read_transfer),
            writes: self.writes.scaled(factors.write_setup, factors.write_transfer),
            flush_seconds: self.flush_seconds.scaled(factors.flush),
            parallelism: self.parallelism,
        }
    }
}
