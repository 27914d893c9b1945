//! Counts requests in a part of a run.

use flashgrain_device::{Nanos, ThreadTimes};
use hdrhistogram::Histogram;

use super::Measured;

/// Latencies are kept to `DIGITS` digits between these bounds; longer ones count as the upper bound.
const LATENCY_LOW_NS: u64 = 64;
const LATENCY_HIGH_NS: u64 = 200_000_000_000;
const DIGITS: u8 = 3;

/// An empty latency histogram.
#[expect(
    clippy::expect_used,
    reason = "the bounds are constants that the histogram accepts, which every test run shows"
)]
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LATENCY_LOW_NS, LATENCY_HIGH_NS, DIGITS).expect("valid bounds")
}

/// Requests done between `begin` and the last one counted.
pub(super) struct Tally {
    start: Nanos,
    last: Nanos,
    cpu_start: Nanos,
    cpu: Nanos,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub requests: u64,
    read_latency_ns: Histogram<u64>,
    write_latency_ns: Histogram<u64>,
}

/// A histogram for a kind of request that does not occur: hundreds of workers with room for all latencies
/// would take much memory.
#[expect(
    clippy::expect_used,
    reason = "the bounds are constants that the histogram accepts, which every test run shows"
)]
fn unused() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 2, 0).expect("valid bounds")
}

impl Tally {
    /// An empty tally for a load with this share of reads.
    pub(super) fn new(read_share: f64) -> Self {
        Self {
            start: Nanos(0),
            last: Nanos(0),
            cpu_start: Nanos(0),
            cpu: Nanos(0),
            bytes_read: 0,
            bytes_written: 0,
            requests: 0,
            read_latency_ns: if read_share > 0.0 { histogram() } else { unused() },
            write_latency_ns: if read_share < 1.0 { histogram() } else { unused() },
        }
    }

    pub(super) fn begin(&mut self, now: Nanos, cpu: Nanos) {
        (self.start, self.last, self.cpu_start) = (now, now, cpu);
    }

    pub(super) fn end(&mut self, cpu: Nanos) {
        self.cpu = cpu.since(self.cpu_start);
    }

    #[inline]
    pub(super) fn count(&mut self, is_read: bool, bytes: u32, since: Nanos, completed: Nanos) {
        let latency_ns = completed.since(since).0;
        if is_read {
            self.bytes_read += u64::from(bytes);
            self.read_latency_ns.saturating_record(latency_ns);
        } else {
            self.bytes_written += u64::from(bytes);
            self.write_latency_ns.saturating_record(latency_ns);
        }
        self.requests += 1;
        self.last = self.last.max(completed);
    }

    pub(super) fn start(&self) -> Nanos {
        self.start
    }

    /// From its start to the end of its last request.
    pub(super) fn elapsed(&self) -> Nanos {
        self.last.since(self.start)
    }

    /// When the last counted request was done.
    pub(super) fn last(&self) -> Nanos {
        self.last
    }

    /// This part and the one that followed it as one.
    pub(super) fn and(mut self, next: Self) -> Self {
        self.last = self.last.max(next.last);
        self.cpu += next.cpu;
        self.bytes_read += next.bytes_read;
        self.bytes_written += next.bytes_written;
        self.requests += next.requests;
        add(&mut self.read_latency_ns, &next.read_latency_ns);
        add(&mut self.write_latency_ns, &next.write_latency_ns);
        self
    }

    pub(super) fn measured(self, streams: u64, bytes_written_total: u64, interrupted: bool) -> Measured {
        Measured {
            elapsed: self.elapsed(),
            streams,
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            requests: self.requests,
            bytes_written_total,
            read_latency_ns: self.read_latency_ns,
            write_latency_ns: self.write_latency_ns,
            cpu: self.cpu,
            threads: ThreadTimes::default(),
            interrupted,
        }
    }
}

/// Adds one histogram to another with the same bounds.
#[expect(clippy::expect_used, reason = "all histograms here are made by `histogram` with the same bounds")]
fn add(sum: &mut Histogram<u64>, other: &Histogram<u64>) {
    sum.add(other).expect("same bounds");
}

impl Default for Measured {
    fn default() -> Self {
        Tally::new(0.5).measured(0, 0, false)
    }
}

impl Measured {
    /// Adds the counts of another worker over the same time.
    pub(super) fn add(&mut self, other: &Self) {
        // Bytes per mean time of a stream is the rate of all of them together.
        let stream_ns = |one: &Self| u128::from(one.elapsed.0) * u128::from(one.streams);
        let streams = self.streams + other.streams;
        let mean_ns = (stream_ns(self) + stream_ns(other)) / u128::from(streams.max(1));
        self.elapsed = Nanos(u64::try_from(mean_ns).unwrap_or(u64::MAX));
        self.streams = streams;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.requests += other.requests;
        self.bytes_written_total += other.bytes_written_total;
        add(&mut self.read_latency_ns, &other.read_latency_ns);
        add(&mut self.write_latency_ns, &other.write_latency_ns);
        self.cpu += other.cpu;
        self.threads.add(other.threads);
        self.interrupted |= other.interrupted;
    }
}
