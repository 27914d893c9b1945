//! The rate of writers that a controller slows down (the paper on RocksDB and 3D XPoint, §IV.A, Eq. 1 and 2).

/// Writers that are slowed down while merges of level 0 do not keep up.
///
/// A controller that adapts the rate of writers to that of merges admits data at the rate at which they are
/// processed. A write that is delayed takes an interval and its own time, in which the store processes as
/// much as it can in the write's own time alone: `λa · (interval + t) = λs · t` (Eq. 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowedWrites {
    /// The shortest delay of a write, in seconds: 1,024 µs in RocksDB.
    pub interval_seconds: f64,
    /// Median time of a write that is not delayed, in seconds: `t`.
    pub write_seconds: f64,
    /// Operations a second of the store while it merges and no write is delayed: `λs`.
    pub system_per_second: f64,
}

impl SlowedWrites {
    /// RocksDB's `refill_interval`, in seconds.
    pub const INTERVAL_SECONDS: f64 = 1024e-6;

    /// Operations a second that applications see while writes are delayed: `λa` (Eq. 2).
    pub fn per_second(&self) -> f64 {
        let Self { interval_seconds, write_seconds, system_per_second } = self;
        write_seconds / (interval_seconds + write_seconds) * system_per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §IV.A: λs of 190 and 130 k operations a second and writes of 15 µs.
    #[test]
    fn the_papers_two_drives_are_slowed_down_to_the_same_low_rate() {
        for (system_per_second, papers) in [(190e3, 2.74e3), (130e3, 1.88e3)] {
            let writes = SlowedWrites {
                interval_seconds: SlowedWrites::INTERVAL_SECONDS,
                write_seconds: 15e-6,
                system_per_second,
            };
            assert!((writes.per_second() / papers - 1.0).abs() < 0.005, "{}", writes.per_second());
        }
    }
}
