//! What a throttle asks of writers at a given number of files in level 0.

use serde::{Deserialize, Serialize};

use super::{Controller, DelayedWrites};

/// Thresholds of level 0, in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelZeroLimits {
    /// Files at which a compaction starts (RocksDB's default: 4).
    pub trigger: usize,
    /// Files from which writers are slowed down (20).
    pub slowdown: usize,
    /// Files at which writers stop (36).
    pub stop: usize,
}

impl LevelZeroLimits {
    /// RocksDB's defaults.
    pub const ROCKSDB: Self = Self { trigger: 4, slowdown: 20, stop: 36 };
}

/// A way to hold writers back before level 0 is full.
pub trait Throttle {
    /// Seconds for which a write of `bytes` at `now` (in seconds) waits while level 0 has so many files.
    fn delay_seconds(&mut self, files: usize, now: f64, bytes: f64) -> f64;

    /// Tells the throttle that a flush or a compaction has ended, and how many bytes level 0 holds.
    fn changed(&mut self, files: usize, debt_bytes: f64);
}

/// RocksDB: nothing below the slowdown threshold, the controller with its adapted rate above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneStage {
    limits: LevelZeroLimits,
    writes: DelayedWrites,
}

impl OneStage {
    /// With `rate_max` bytes per second to start at (`delayed_write_rate`).
    pub fn new(limits: LevelZeroLimits, controller: Controller, rate_max: f64) -> Self {
        Self { limits, writes: DelayedWrites::new(controller, rate_max) }
    }
}

impl Throttle for OneStage {
    fn delay_seconds(&mut self, files: usize, now: f64, bytes: f64) -> f64 {
        if files < self.limits.slowdown { 0.0 } else { self.writes.delay_seconds(now, bytes) }
    }

    fn changed(&mut self, files: usize, debt_bytes: f64) {
        if files >= self.limits.slowdown {
            self.writes.adapt(debt_bytes);
        }
    }
}

/// The paper's two stages (3D XPoint paper §V-A): from the slowdown threshold on, writers are held to the
/// highest rate that is acceptable and never to less; from half-way to the stop threshold on, Algorithm 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoStage {
    limits: LevelZeroLimits,
    slight: DelayedWrites,
    aggressive: DelayedWrites,
}

impl TwoStage {
    /// `rate_max` is the rate of the first stage, in bytes per second.
    pub fn new(limits: LevelZeroLimits, rate_max: f64) -> Self {
        Self {
            limits,
            slight: DelayedWrites::new(Controller::Crediting, rate_max),
            aggressive: DelayedWrites::new(Controller::Waiting, rate_max),
        }
    }

    /// (slowdown + stop) / 2.
    fn second_threshold(&self) -> usize {
        usize::midpoint(self.limits.slowdown, self.limits.stop)
    }
}

impl Throttle for TwoStage {
    fn delay_seconds(&mut self, files: usize, now: f64, bytes: f64) -> f64 {
        if files < self.limits.slowdown {
            0.0
        } else if files < self.second_threshold() {
            self.slight.delay_seconds(now, bytes)
        } else {
            self.aggressive.delay_seconds(now, bytes)
        }
    }

    fn changed(&mut self, files: usize, debt_bytes: f64) {
        if files >= self.second_threshold() {
            self.aggressive.adapt(debt_bytes);
        }
    }
}

/// A rate that falls with each file from `rate_max` at the slowdown threshold to `rate_min` at the stop
/// threshold, by the same factor per file. If one of these rates is what compactions can take, level 0 comes
/// to rest there and writers see no jump.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Graded {
    limits: LevelZeroLimits,
    rate_max: f64,
    rate_min: f64,
    writes: DelayedWrites,
}

impl Graded {
    /// Rates in bytes per second.
    pub fn new(limits: LevelZeroLimits, rate_max: f64, rate_min: f64) -> Self {
        Self { limits, rate_max, rate_min, writes: DelayedWrites::new(Controller::Crediting, rate_max) }
    }

    /// The rate at so many files.
    pub fn rate(&self, files: usize) -> f64 {
        let steps = self.limits.stop.saturating_sub(self.limits.slowdown).max(1) as f64;
        let step = files.saturating_sub(self.limits.slowdown) as f64;
        self.rate_max * (self.rate_min / self.rate_max).powf((step / steps).min(1.0))
    }
}

impl Throttle for Graded {
    fn delay_seconds(&mut self, files: usize, now: f64, bytes: f64) -> f64 {
        if files < self.limits.slowdown {
            return 0.0;
        }
        self.writes.set_rate(self.rate(files));
        self.writes.delay_seconds(now, bytes)
    }

    fn changed(&mut self, _: usize, _: f64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LevelZeroLimits = LevelZeroLimits::ROCKSDB;

    #[test]
    fn no_policy_delays_below_the_slowdown_threshold() {
        let policies: [&mut dyn Throttle; 3] = [
            &mut OneStage::new(LIMITS, Controller::Waiting, 16e6),
            &mut TwoStage::new(LIMITS, 16e6),
            &mut Graded::new(LIMITS, 64e6, 1e6),
        ];
        for policy in policies {
            assert_eq!(policy.delay_seconds(19, 0.0, 1e6), 0.0);
            assert!(policy.delay_seconds(20, 0.0, 1e6) > 0.0);
        }
    }

    #[test]
    fn the_second_stage_starts_half_way_to_the_stop() {
        let mut policy = TwoStage::new(LIMITS, 16e6);
        // A small write waits in the second stage, although its rate would allow it.
        let waits = |policy: &mut TwoStage, files: usize| -> f64 {
            (1..=100).map(|i| policy.delay_seconds(files, f64::from(i) * 1e-4, 1024.0)).sum()
        };
        let (slight, aggressive) = (waits(&mut policy, 27), waits(&mut policy, 28));
        assert!(slight < 0.1 * aggressive, "{slight} {aggressive}");
    }

    #[test]
    fn graded_rates_fall_by_the_same_factor_per_file() {
        let policy = Graded::new(LIMITS, 64e6, 1e6);
        assert_eq!(policy.rate(20), 64e6);
        assert!((policy.rate(36) / 1e6 - 1.0).abs() < 1e-12);
        assert!((policy.rate(28) / 8e6 - 1.0).abs() < 1e-12);
    }
}
