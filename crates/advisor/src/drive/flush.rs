//! The time that makes a write of a log durable.

use flashgrain_profile::schema::{DeviceProfile, FlushPoint};
use flashgrain_settings::SyncMethod;

use crate::interval::Interval;

/// Without measurements: from drives that keep their cache through a power cut (20 µs) to disks (20 ms).
const ANY_FLUSH: Interval = Interval { low: 2e-5, value: 1e-3, high: 2e-2 };

/// A mean of one run lies within this factor of the mean of others.
const ONE_RUN_FACTOR: f64 = 1.5;

/// Seconds by method; empty without measurements.
#[derive(Clone, Debug)]
pub(super) struct Flushes {
    by_method: Vec<(SyncMethod, Interval)>,
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
        Self { by_method }
    }

    pub fn of_any_method(seconds: Interval) -> Self {
        Self { by_method: vec![(SyncMethod::Fdatasync, seconds)] }
    }

    pub fn of_method(&self, method: SyncMethod) -> Interval {
        let exactly = self.by_method.iter().find(|(own, _)| *own == method);
        exactly.or(self.by_method.first()).map_or(ANY_FLUSH, |(_, seconds)| *seconds)
    }
}

fn seconds(point: &FlushPoint) -> Interval {
    let mean = point.latency.mean_us * 1e-6;
    match point.mean_us_min.zip(point.mean_us_max) {
        Some((min, max)) => Interval::spanning(mean, [min * 1e-6, max * 1e-6]),
        None => Interval::within_factor(mean, ONE_RUN_FACTOR),
    }
}
