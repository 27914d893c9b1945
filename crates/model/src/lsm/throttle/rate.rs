//! The rate that remains while every write waits.

/// λa = t / (refill + t) · λs: operations per second that an application sees while each write of
/// `write_seconds` (t, the median latency) is followed by a wait of `refill_seconds` (3D XPoint paper §IV-A,
/// Eq. 1 and 2).
///
/// `system_rate` (λs) is what the store takes without waits, in operations per second. Since the wait is the
/// same on every drive, a fast one loses its advantage.
pub fn throttled_rate(write_seconds: f64, refill_seconds: f64, system_rate: f64) -> f64 {
    write_seconds / (refill_seconds + write_seconds) * system_rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_two_drives_are_throttled_to_the_same_low_rate() {
        // §IV-A: t is 15 µs on both; 190 kops/s on the 3D XPoint drive, 130 kops/s on the SATA drive.
        assert!((throttled_rate(15e-6, 1024e-6, 190e3) / 2.74e3 - 1.0).abs() < 0.005);
        assert!((throttled_rate(15e-6, 1024e-6, 130e3) / 1.88e3 - 1.0).abs() < 0.005);
    }
}
