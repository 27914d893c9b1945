//! One way to describe an I/O workload, the same for every model.

use serde::{Deserialize, Serialize};

/// Reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

/// A closed-loop I/O workload: `concurrency` streams, each with one request outstanding.
///
/// A stream issues requests of `request_bytes`. A share `random_share` of them starts at a uniformly random place; the
/// others continue where the stream's last one ended. The MQSSD benchmark's *r* (MQSSD paper §3.3.1) is the share of
/// pages that are reached by a random access: see [`Workload::random_pages_share`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Share of the requests that are reads, 0 to 1.
    pub read_share: f64,
    /// Bytes moved by each request.
    pub request_bytes: f64,
    /// Share of the requests that start at a random place, 0 to 1.
    pub random_share: f64,
    /// Requests outstanding at any time: the paper's k, the PDAM paper's p.
    pub concurrency: f64,
}

impl Workload {
    /// Random accesses of `request_bytes` each by `concurrency` streams, all of one kind.
    pub fn random(access: Access, request_bytes: f64, concurrency: f64) -> Self {
        let read_share = if access == Access::Read { 1.0 } else { 0.0 };
        Self { read_share, request_bytes, random_share: 1.0, concurrency }
    }

    /// Random accesses per byte moved: what a setup cost is multiplied with.
    pub fn random_accesses_per_byte(&self) -> f64 {
        self.random_share / self.request_bytes
    }

    /// The MQSSD paper's *r*: random accesses as a share (0 to 1) of the pages moved.
    pub fn random_pages_share(&self, page_bytes: f64) -> f64 {
        self.random_accesses_per_byte() * page_bytes
    }

    /// The kind, if all requests are of one kind.
    pub fn access(&self) -> Option<Access> {
        if self.read_share >= 1.0 {
            Some(Access::Read)
        } else if self.read_share <= 0.0 {
            Some(Access::Write)
        } else {
            None
        }
    }
}
