//! The time that makes a write of a log durable.

use flashgrain_cost::Interval;
use flashgrain_profile::schema::{DeviceProfile, FlushPoint};
use flashgrain_settings::SyncMethod;

/// Without measurements: from drives that keep their cache through a power cut (20 µs) to disks (20 ms).
const ANY_FLUSH: Interval = Interval { low: 2e-5, value: 1e-3, high: 2e-2 };

/// Durable writes per durable write to a file that has grown since the last one, where the profile lacks it.
/// The file system writes its own records as well: with ext4 the data, the journal and its commit record, one
/// after the other, or more with concurrent work.
const GROWTH: Interval = Interval { low: 1.0, value: 3.0, high: 10.0 };

/// A mean of one run lies within this factor of the mean of others.
const ONE_RUN_FACTOR: f64 = 1.5;

/// Seconds by method; empty without measurements.
#[derive(Clone, Debug)]
pub(super) struct Flushes {
    by_method: Vec<(SyncMethod, Interval)>,
    /// To a file that grows.
    growing_file: Option<Interval>,
}

impl Flushes {
    pub fn of(profile: &DeviceProfile, notes: &mut Vec<String>) -> Self {
        let measured = |point: &FlushPoint| Some((point.sync_method()?, seconds(point)));
        let by_method: Vec<_> = profile.measurements.flush.iter().filter_map(measured).collect();
        if by_method.is_empty() {
            notes.push(format!(
                "durable writes undetermined: flush was not run; assumed {:.0} µs to {:.0} ms",
                ANY_FLUSH.low * 1e6,
                ANY_FLUSH.high * 1e3
            ));
        }
        let growing =
            profile.measurements.flush.iter().find(|point| point.method == FlushPoint::GROWING_FILE);
        Self { by_method, growing_file: growing.map(seconds) }
    }

    pub fn is_measured(&self) -> bool {
        !self.by_method.is_empty()
    }

    pub fn of_method(&self, method: SyncMethod) -> Interval {
        let exactly = self.by_method.iter().find(|(own, _)| *own == method);
        exactly.or(self.by_method.first()).map_or(ANY_FLUSH, |(_, seconds)| *seconds)
    }

    /// Of a write to a file that grows, made durable with `fdatasync`.
    pub fn of_growing_file(&self) -> Interval {
        self.growing_file.unwrap_or_else(|| {
            let in_place = self.of_method(SyncMethod::Fdatasync);
            Interval {
                low: in_place.low * GROWTH.low,
                value: in_place.value * GROWTH.value,
                high: in_place.high * GROWTH.high,
            }
        })
    }
}

fn seconds(point: &FlushPoint) -> Interval {
    let mean = point.latency.mean_us * 1e-6;
    match point.mean_us_min.zip(point.mean_us_max) {
        Some((min, max)) => Interval::spanning(mean, [min * 1e-6, max * 1e-6]),
        None => Interval::within_factor(mean, ONE_RUN_FACTOR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flushes(growing_file: Option<Interval>) -> Flushes {
        let by_method = vec![(SyncMethod::Fdatasync, Interval::within_factor(1e-3, 2.0))];
        Flushes { by_method, growing_file }
    }

    #[test]
    fn a_growing_file_costs_what_was_measured_or_a_wide_guess() {
        let measured = Interval::within_factor(4e-3, 1.1);
        assert_eq!(flushes(Some(measured)).of_growing_file(), measured);
        let guessed = flushes(None).of_growing_file();
        assert_eq!((guessed.low, guessed.value), (5e-4, 3e-3));
        assert!(guessed.high / guessed.low > 10.0, "{guessed:?}");
    }
}
