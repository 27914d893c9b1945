//! The boundary between demands and drives.

use crate::Workload;

/// The cost of I/O on a drive.
pub trait IoModel {
    /// Device time per byte of the workload, in seconds: the inverse of its throughput. `None` if the model
    /// has no data of that kind.
    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64>;

    /// Device time per request of the workload, in seconds. Models that count blocks charge whole ones.
    fn seconds_per_request(&self, workload: &Workload) -> Option<f64> {
        self.seconds_per_byte(workload).map(|seconds| seconds * workload.request_bytes)
    }

    /// Device time of reads and writes that run together, from the times that the reads and the writes would
    /// take alone.
    fn seconds_together(&self, read_seconds: f64, write_seconds: f64) -> f64 {
        read_seconds + write_seconds
    }

    /// Throughput of the workload: the inverse of [`IoModel::seconds_per_byte`].
    fn bytes_per_second(&self, workload: &Workload) -> Option<f64> {
        self.seconds_per_byte(workload).map(f64::recip)
    }
}
