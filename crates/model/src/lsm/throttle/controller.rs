//! The write controller: how long a write is delayed at a given rate (3D XPoint paper, Algorithm 1).

use serde::{Deserialize, Serialize};

/// Factor by which the rate falls when the debt of compactions has not become smaller.
const DECREASE: f64 = 0.8;
/// Factor by which the rate rises when it has.
const INCREASE: f64 = 1.25;
/// The rate never falls below (RocksDB's `kMinWriteRate`).
const RATE_MIN: f64 = 16.0 * 1024.0;

/// Which controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    /// RocksDB 5.17 as the paper prints it: a write waits for at least one refill interval, unless a whole
    /// interval has passed since the last wait and has refilled enough. Writers that come back sooner than
    /// that always wait, so that the rate is not reached but the rate of waiting (Eq. 2).
    Waiting,
    /// Newer RocksDB: what refills is credit, and a write that has credit goes on at once. Waits are at least
    /// one refill interval, too, but buy as much credit, so that the rate is reached.
    Crediting,
}

/// The controller's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayedWrites {
    controller: Controller,
    rate: f64,
    rate_max: f64,
    refill_seconds: f64,
    last_refill: f64,
    credit_bytes: f64,
    last_debt_bytes: f64,
}

impl DelayedWrites {
    /// RocksDB's refill interval of 1024 µs.
    pub const REFILL_SECONDS: f64 = 1024e-6;

    /// A controller that starts at `rate_max` bytes per second (`delayed_write_rate`).
    pub fn new(controller: Controller, rate_max: f64) -> Self {
        Self {
            controller,
            rate: rate_max,
            rate_max,
            refill_seconds: Self::REFILL_SECONDS,
            last_refill: 0.0,
            credit_bytes: 0.0,
            last_debt_bytes: 0.0,
        }
    }

    /// Bytes per second that writes are held to now.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Sets the rate, at least RocksDB's minimum of 16 KiB/s.
    pub fn set_rate(&mut self, rate: f64) {
        self.rate = rate.max(RATE_MIN);
    }

    /// Adapts the rate when a flush or a compaction has ended: by 0.8 if compactions owe no less than the
    /// last time, by 1.25 if they owe less (Algorithm 1, lines 7 to 11), within RocksDB's bounds.
    pub fn adapt(&mut self, debt_bytes: f64) {
        let factor = if self.last_debt_bytes <= debt_bytes { DECREASE } else { INCREASE };
        self.last_debt_bytes = debt_bytes;
        self.rate = (self.rate * factor).clamp(RATE_MIN.min(self.rate_max), self.rate_max);
    }

    /// Seconds for which a write of `bytes` that comes at `now` (in seconds) has to wait.
    pub fn delay_seconds(&mut self, now: f64, bytes: f64) -> f64 {
        let delay = match self.controller {
            Controller::Waiting => self.wait(now, bytes),
            Controller::Crediting => self.spend(now, bytes),
        };
        debug_assert!(delay >= 0.0 && delay.is_finite(), "a wait is a time");
        delay
    }

    /// Algorithm 1, lines 17 to 31.
    fn wait(&mut self, now: f64, bytes: f64) -> f64 {
        let slice = (now - self.last_refill).max(0.0);
        let refilled = slice * self.rate;
        let delay = if refilled > bytes && slice > self.refill_seconds {
            0.0
        } else if refilled + self.refill_seconds * self.rate > bytes {
            self.refill_seconds
        } else {
            bytes / self.rate
        };
        self.last_refill = now + delay;
        delay
    }

    fn spend(&mut self, now: f64, bytes: f64) -> f64 {
        if now > self.last_refill {
            // A pause of the writer earns one interval at most.
            let earned = (now - self.last_refill) * self.rate;
            self.credit_bytes = (self.credit_bytes + earned).min(self.refill_seconds * self.rate + bytes);
            self.last_refill = now;
        }
        if self.credit_bytes >= bytes {
            self.credit_bytes -= bytes;
            return 0.0;
        }
        let needed = (bytes - self.credit_bytes) / self.rate;
        let delay = needed.max(self.refill_seconds);
        self.credit_bytes += delay * self.rate - bytes;
        self.last_refill = now + delay;
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::super::throttled_rate;
    use super::*;

    /// Bytes per second of a writer that writes groups again and again, each in `write_seconds` and its wait.
    fn rate_of(controller: Controller, rate: f64, group_bytes: f64, write_seconds: f64) -> f64 {
        let mut controller = DelayedWrites::new(controller, rate);
        let mut now = 0.0;
        const GROUPS: u32 = 20_000;
        for _ in 0..GROUPS {
            now += controller.delay_seconds(now, group_bytes) + write_seconds;
        }
        f64::from(GROUPS) * group_bytes / now
    }

    #[test]
    fn rocksdb_5_17_throttles_to_the_papers_formula_whatever_its_rate_is() {
        // λs · t writes of 1 KiB are a group: §IV-A's 3D XPoint drive.
        let group_bytes = 190e3 * 15e-6 * 1024.0;
        for rate in [8e6, 16e6, 64e6] {
            let kops = rate_of(Controller::Waiting, rate, group_bytes, 15e-6) / 1024.0 / 1e3;
            let formula = throttled_rate(15e-6, DelayedWrites::REFILL_SECONDS, 190.0);
            assert!((kops / formula - 1.0).abs() < 0.01, "{rate}: {kops} {formula}");
        }
    }

    #[test]
    fn newer_rocksdb_reaches_its_rate() {
        let group_bytes = 190e3 * 15e-6 * 1024.0;
        for rate in [8e6, 16e6, 64e6] {
            let reached = rate_of(Controller::Crediting, rate, group_bytes, 15e-6);
            assert!((reached / rate - 1.0).abs() < 0.02, "{rate}: {reached}");
        }
    }

    #[test]
    fn large_writes_are_held_to_the_rate_by_both() {
        for controller in [Controller::Waiting, Controller::Crediting] {
            let reached = rate_of(controller, 8e6, 1e6, 15e-6);
            assert!((reached / 8e6 - 1.0).abs() < 0.01, "{controller:?}: {reached}");
        }
    }

    #[test]
    fn slow_writers_are_not_delayed() {
        for controller in [Controller::Waiting, Controller::Crediting] {
            let mut delayed = DelayedWrites::new(controller, 16e6);
            let waits: f64 = (1..100).map(|i| delayed.delay_seconds(f64::from(i) * 0.1, 1024.0)).sum();
            assert_eq!(waits, 0.0, "{controller:?}");
        }
    }

    #[test]
    fn the_rate_falls_while_the_debt_grows_and_recovers_to_its_maximum() {
        let mut delayed = DelayedWrites::new(Controller::Waiting, 16e6);
        for step in 1..=3 {
            delayed.adapt(f64::from(step));
        }
        assert!((delayed.rate() / (16e6 * 0.8f64.powi(3)) - 1.0).abs() < 1e-12);
        for step in 0..20 {
            delayed.adapt(2.0 - f64::from(step));
        }
        assert_eq!(delayed.rate(), 16e6);
        for step in 0..100 {
            delayed.adapt(f64::from(step));
        }
        assert_eq!(delayed.rate(), RATE_MIN);
    }
}
