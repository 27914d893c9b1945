//! Counted operations.

use flashgrain_device::Nanos;
use hdrhistogram::Histogram;

use super::{Done, UserBytes};

/// Digits of latencies that are kept.
const DIGITS: u8 = 2;

/// Digits of latencies that are kept second by second.
const COARSE_DIGITS: u8 = 1;

/// Of one client, or of all.
#[derive(Debug, Default)]
pub struct Tally {
    /// Few, so that looking through them is faster than any map.
    kinds: Vec<Kind>,
    seconds: Vec<Second>,
    user: UserBytes,
}

/// Operations of one kind.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// How many.
    pub count: u64,
    /// Records that were read or written by them, where that is known.
    pub records: u64,
    /// Number of attempts that lost to others.
    pub conflicts: u64,
    /// Latencies in nanoseconds.
    pub latency_ns: Histogram<u64>,
}

/// A second of the run.
#[derive(Clone, Debug)]
pub struct Second {
    /// Operations that ended in it.
    pub count: u64,
    /// Those of them that wrote.
    pub writes: u64,
    /// Their latencies in nanoseconds.
    pub latency_ns: Histogram<u64>,
}

/// The latency of an operation, and when it ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub latency: Nanos,
    /// The second of the run in which it ended, where seconds are looked at one by one.
    pub second: Option<usize>,
}

/// For latencies in nanoseconds, as tallies have them.
pub fn histogram() -> Histogram<u64> {
    with_digits(DIGITS)
}

fn with_digits(digits: u8) -> Histogram<u64> {
    // Only more than five digits are refused.
    Histogram::new(digits).unwrap_or_else(|error| unreachable!("{error}"))
}

impl Default for Second {
    fn default() -> Self {
        Self { count: 0, writes: 0, latency_ns: with_digits(COARSE_DIGITS) }
    }
}

impl Tally {
    /// An operation, with its times if they were taken.
    pub(super) fn count(&mut self, done: Done, timing: Option<Timing>) {
        let kind = self.kind(done.kind);
        kind.count += done.count;
        kind.records += done.records;
        kind.conflicts += done.conflicts;
        if let Some(timing) = timing {
            record(&mut kind.latency_ns, timing.latency.0);
        }
        self.user += done.user;
        if let Some(Timing { latency, second: Some(second) }) = timing {
            if self.seconds.len() <= second {
                self.seconds.resize_with(second + 1, Second::default);
            }
            self.seconds[second].count += done.count;
            self.seconds[second].writes += if done.user.written > 0 { done.count } else { 0 };
            record(&mut self.seconds[second].latency_ns, latency.0);
        }
    }

    fn kind(&mut self, name: &'static str) -> &mut Kind {
        let place = self.kinds.iter().position(|kind| kind.name == name).unwrap_or_else(|| {
            self.kinds.push(Kind { name, count: 0, records: 0, conflicts: 0, latency_ns: histogram() });
            self.kinds.len() - 1
        });
        &mut self.kinds[place]
    }

    /// Everything of another one.
    pub fn add(&mut self, other: &Self) {
        for kind in &other.kinds {
            let own = self.kind(kind.name);
            own.count += kind.count;
            own.records += kind.records;
            own.conflicts += kind.conflicts;
            add(&mut own.latency_ns, &kind.latency_ns);
        }
        self.user += other.user;
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize_with(other.seconds.len(), Second::default);
        }
        for (own, other) in self.seconds.iter_mut().zip(&other.seconds) {
            own.count += other.count;
            own.writes += other.writes;
            add(&mut own.latency_ns, &other.latency_ns);
        }
    }

    /// Operations of all kinds.
    pub fn operations(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    /// Kinds of operations.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Latencies of all operations in nanoseconds.
    pub fn latency_ns(&self) -> Histogram<u64> {
        let mut all = histogram();
        self.kinds.iter().for_each(|kind| add(&mut all, &kind.latency_ns));
        all
    }

    /// Bytes that users have asked for and have written.
    pub fn user(&self) -> UserBytes {
        self.user
    }

    /// Operations second by second.
    pub fn seconds(&self) -> &[Second] {
        &self.seconds
    }
}

/// Records a latency, however long it is.
pub(crate) fn record(histogram: &mut Histogram<u64>, latency_ns: u64) {
    // A failure is as unreachable as below. `saturating_record` would cut off values that a growing histogram
    // has no room for yet.
    histogram.record(latency_ns).unwrap_or_else(|error| unreachable!("{error}"));
}

fn add(sum: &mut Histogram<u64>, other: &Histogram<u64>) {
    // Only histograms with a fixed range refuse values; these grow.
    sum.add(other).unwrap_or_else(|error| unreachable!("{error}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up() {
        let timing = |ms: u64, second| Some(Timing { latency: Nanos(ms * 1_000_000), second });
        let (mut first, mut second) = (Tally::default(), Tally::default());
        let user = UserBytes { read: 10, written: 1 };
        let done = |kind, count| Done { kind, count, records: 2, conflicts: 1, user };
        first.count(done("read", 1), timing(1, Some(0)));
        second.count(done("read", 32), timing(4, Some(1)));
        second.count(done("update", 1), timing(2, Some(1)));
        second.count(done("update", 1), None);
        first.add(&second);
        assert_eq!(first.operations(), 35);
        assert_eq!(first.latency_ns().len(), 3);
        assert_eq!(first.user(), UserBytes { read: 40, written: 4 });
        let seconds: Vec<_> = first.seconds().iter().map(|second| (second.count, second.writes)).collect();
        assert_eq!(seconds, [(1, 1), (33, 33)]);
        let reads = &first.kinds()[0];
        assert_eq!((reads.name, reads.count, reads.records, reads.conflicts), ("read", 33, 4, 2));
        assert!((reads.latency_ns.max() as f64 - 4e6).abs() < 4e4);
    }
}
