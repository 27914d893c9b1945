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
/// A stream issues requests of `request_bytes`. A share `random_share` of them starts at a uniformly random
/// place; the others continue where the stream's last one ended. The MQSSD benchmark's *r* (MQSSD paper
/// §3.3.1) is the share of pages that are reached by a random access: see [`Workload::random_pages_share`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Share of the requests that are reads, 0 to 1.
    pub read_share: f64,
    /// Bytes moved by each request.
    pub request_bytes: f64,
    /// Share of the requests that start at a random place, 0 to 1.
    pub random_share: f64,
    /// Requests outstanding at any time: the MQSSD paper's k, the PDAM's p.
    pub concurrency: f64,
}

impl Workload {
    /// Random accesses of `request_bytes` each by `concurrency` streams, all of one kind.
    pub fn random(access: Access, request_bytes: f64, concurrency: f64) -> Self {
        let read_share = if access == Access::Read { 1.0 } else { 0.0 };
        Self { read_share, request_bytes, random_share: 1.0, concurrency }
    }

    /// Random accesses per byte moved: the factor of a setup cost.
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

    /// Sort key that is the same for equal workloads: kind, concurrency, accesses per byte, size.
    pub fn key(&self) -> WorkloadKey {
        // All four are non-negative (adding zero turns -0 into 0), so their bit patterns order as the numbers
        // do.
        [self.read_share, self.concurrency, self.random_accesses_per_byte(), self.request_bytes]
            .map(|number| (number + 0.0).to_bits())
    }

    /// Blocks that a request takes on average: whole ones if it starts at a random place, its share of them
    /// if it continues.
    pub fn whole_blocks(&self, block_bytes: f64) -> f64 {
        let blocks = self.request_bytes / block_bytes;
        // A node of exactly one block, whose size went through some arithmetic, is not two.
        let whole = (blocks - 1e-9).ceil().max(1.0);
        self.random_share * whole + (1.0 - self.random_share) * blocks
    }
}

/// See [`Workload::key`].
pub type WorkloadKey = [u64; 4];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_r_counts_random_accesses_per_page_moved() {
        let one_access_per_mebibyte = Workload::random(Access::Read, 1_048_576.0, 8.0);
        assert_eq!(one_access_per_mebibyte.random_pages_share(4096.0), 1.0 / 256.0);
        let half_random_pages =
            Workload { random_share: 0.5, ..Workload::random(Access::Write, 4096.0, 8.0) };
        assert_eq!(half_random_pages.random_pages_share(4096.0), 0.5);
    }

    #[test]
    fn keys_sort_by_concurrency_and_tell_kinds_apart() {
        let shallow = Workload::random(Access::Read, 4096.0, 2.0);
        let deep = Workload::random(Access::Read, 4096.0, 16.0);
        assert!(shallow.key() < deep.key());
        assert_ne!(shallow.key(), Workload::random(Access::Write, 4096.0, 2.0).key());
        assert_eq!(
            Workload { read_share: -0.0, ..shallow }.key(),
            Workload { read_share: 0.0, ..shallow }.key()
        );
    }
}
