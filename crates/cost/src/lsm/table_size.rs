//! T, the table write size, for the costs of a drive (MQSSD paper §5.1.2, §5.2.2).
//!
//! Merges are cut at borders of tables into parts that run at the same time. By Eq. 9 a merged byte takes
//! (t(k) + s(k))/T + (α(k) + β(k))/B with k parts: larger tables have fewer setups, smaller ones let more
//! parts run. Let H be the half-bandwidth size of the busy drive and P the parts that keep it busy. A merge
//! of M bytes with at least m tables in each part has min(P, M/(mT)) parts, so that it takes the time in
//! which the busy drive transfers
//!
//! M · (1 + H/T) · max(1, PmT/M)
//!
//! bytes. This falls up to T = M/(mP), since setups become fewer, and rises by m·P bytes for each further
//! byte of T, since the drive waits for its parts. H moves this minimum through P: a drive whose setups are
//! long needs many requests under way to be busy, one that is limited by its bandwidth few.

/// A drive, and how merges use it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableSize {
    /// H: bytes that the busy drive transfers in the time of a setup.
    pub half_bandwidth_bytes: f64,
    /// Reads of `SMALL_BYTES` under way that keep the drive busy.
    pub small_requests: f64,
    /// Bytes of a request of a merge.
    pub request_bytes: f64,
    /// Requests that a part keeps under way.
    pub requests_per_part: f64,
    /// m: the least tables of a part.
    pub tables_per_part: f64,
    /// The most parts of a merge.
    pub parts_max: f64,
}

/// Bytes of the reads that a drive's concurrency is measured with.
pub const SMALL_BYTES: f64 = 4096.0;

impl TableSize {
    /// P: parts that keep the drive busy, from 1 to the most.
    ///
    /// By Little's law n small reads of p bytes that just keep it busy take n·(H + p) bytes' time each. A
    /// larger request takes as long and its further bytes, and keeps the drive busy for H and its bytes.
    pub fn parts(&self) -> f64 {
        let small = self.small_requests * (self.half_bandwidth_bytes + SMALL_BYTES);
        let latency = small + self.request_bytes - SMALL_BYTES;
        let requests = latency / (self.half_bandwidth_bytes + self.request_bytes);
        (requests / self.requests_per_part).clamp(1.0, self.parts_max.max(1.0))
    }

    /// The table size, in bytes, with which a merge of `merged_bytes` takes the least time.
    pub fn best(&self, merged_bytes: f64) -> f64 {
        merged_bytes / (self.tables_per_part * self.parts())
    }
}
