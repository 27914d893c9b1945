//! The plainest drive: each random access costs a setup, each byte its transfer.

use crate::{IoModel, Workload};

/// Costs of an affine drive; as an [`IoModel`], of one whose writes cost as much as its reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AffineCosts {
    /// s, in seconds per random access; positive.
    pub setup_seconds: f64,
    /// In seconds per byte; positive. The MQSSD paper's β is this times B.
    pub transfer_seconds_per_byte: f64,
}

impl AffineCosts {
    /// From the dictionaries paper's numbers: s in seconds, and α per unit of `unit_bytes` (4096 in its Table
    /// 2), so that an I/O of x units takes s·(1 + αx).
    pub fn from_alpha(setup_seconds: f64, alpha: f64, unit_bytes: f64) -> Self {
        Self { setup_seconds, transfer_seconds_per_byte: alpha * setup_seconds / unit_bytes }
    }
}

impl IoModel for AffineCosts {
    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64> {
        Some(workload.random_accesses_per_byte() * self.setup_seconds + self.transfer_seconds_per_byte)
    }
}
