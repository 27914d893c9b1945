//! How writers are slowed down where merges do not keep up.
//!
//! [`LsmThrottling::Graded`] needs no state: the debt is told to the throttle of all commits. The others
//! write at a *rate*: the next bytes may be written when those before them have had their time. The rate is
//! set by RocksDB 5.17's controller ("Algorithm 1" of the paper on RocksDB and 3D XPoint, §IV.A): after each
//! flush and merge it becomes smaller if the debt has grown, and larger if it has shrunk. Time is given in
//! intervals, and a write waits for at least one: that makes the controller coarse.

use flashgrain_device::Nanos;

use super::policy::Debt;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// How writers of an LSM-tree are slowed down where merges do not keep up with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LsmThrottling {
    /// Each write waits, the longer the nearer level 0 and the debt are to where writers are stopped.
    #[default]
    Graded,
    /// Slight at first: at the rate of delayed writes. From half-way to where writers are stopped on as
    /// [`LsmThrottling::RocksDb`] (the paper on RocksDB and 3D XPoint, §VI.A).
    TwoStage,
    /// RocksDB 5.17's controller, for studies: at a rate that shrinks while the debt grows.
    RocksDb,
}

impl LsmThrottling {
    pub(super) const ALL: [Self; 3] = [Self::Graded, Self::TwoStage, Self::RocksDb];
}

/// Time is given to writers in intervals of this length.
const REFILL: Nanos = Nanos(1_024_000);

/// The rate's factors: if the debt has grown, if writers are about to be stopped, if it has shrunk, and when
/// writers need not be slowed down any more.
const GROWN: f64 = 0.8;
const NEAR_STOP: f64 = 0.6;
const SHRUNK: f64 = 1.0 / GROWN;
const RECOVERED: f64 = 1.4;

/// The least rate.
const BYTES_PER_S_MIN: f64 = (16 << 10) as f64;

/// From this part of the debt's upper bound on writers are about to be stopped.
const NEAR_STOP_FROM: f64 = 0.9;

/// From this part on the second of two stages begins.
const SECOND_STAGE_FROM: f64 = 0.5;

const NANOS_PER_S: f64 = 1e9;

/// See the module.
pub(super) struct Controller {
    throttling: LsmThrottling,
    bytes_per_s_max: f64,
    /// Whether writers are slowed down at present.
    is_slow: AtomicBool,
    state: Mutex<State>,
}

struct State {
    bytes_per_s: f64,
    debt_bytes: u64,
    /// Bytes that may be written at once.
    left_bytes: f64,
    /// Time when more are given.
    next_refill: Nanos,
}

impl Controller {
    /// Writers that are slowed down write at most `bytes_per_s` bytes in a second.
    pub fn new(throttling: LsmThrottling, bytes_per_s: u64) -> Self {
        let bytes_per_s_max = bytes_per_s as f64;
        let state =
            State { bytes_per_s: bytes_per_s_max, debt_bytes: 0, left_bytes: 0.0, next_refill: Nanos(0) };
        Self { throttling, bytes_per_s_max, is_slow: AtomicBool::new(false), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of a debt that is left to the throttle of all commits.
    pub fn left_to_others(&self, fraction: f64) -> f64 {
        // Beyond the upper bound all writers are stopped.
        if self.throttling == LsmThrottling::Graded || fraction >= 1.0 { fraction } else { 0.0 }
    }

    /// To be called after each flush and merge.
    pub fn note(&self, debt: Debt) {
        let in_first_stage = self.throttling == LsmThrottling::TwoStage && debt.fraction < SECOND_STAGE_FROM;
        let is_slow = self.throttling != LsmThrottling::Graded && debt.fraction > 0.0;
        let mut state = self.state();
        let factor = if !is_slow {
            RECOVERED
        } else if in_first_stage {
            f64::INFINITY
        } else if debt.fraction >= NEAR_STOP_FROM {
            NEAR_STOP
        } else if debt.bytes >= state.debt_bytes {
            GROWN
        } else {
            SHRUNK
        };
        state.bytes_per_s = (state.bytes_per_s * factor)
            .clamp(BYTES_PER_S_MIN.min(self.bytes_per_s_max), self.bytes_per_s_max);
        state.debt_bytes = debt.bytes;
        self.is_slow.store(is_slow, Ordering::Relaxed);
    }

    /// Time that a writer of `bytes` bytes waits before its write.
    pub fn pace(&self, bytes: u64, now: &dyn Fn() -> Nanos) -> Nanos {
        if !self.is_slow.load(Ordering::Relaxed) {
            return Nanos(0);
        }
        let (bytes, now) = (bytes as f64, now());
        let mut state = self.state();
        if state.left_bytes >= bytes {
            state.left_bytes -= bytes;
            return state.next_refill.since(now);
        }
        // As many intervals as it takes.
        let per_refill = state.bytes_per_s * REFILL.0 as f64 / NANOS_PER_S;
        let refills = ((bytes - state.left_bytes) / per_refill).ceil();
        state.left_bytes += refills * per_refill - bytes;
        state.next_refill = state.next_refill.max(now) + Nanos((refills * REFILL.0 as f64) as u64);
        state.next_refill.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1 << 20;

    fn debt(bytes: u64, fraction: f64) -> Debt {
        Debt { bytes, fraction }
    }

    /// Bytes a second of one writer of a KiB at a time, which waits as it is told.
    fn rate(controller: &Controller) -> f64 {
        let mut now = Nanos(5);
        for _ in 0..1000 {
            let clock = now;
            now += controller.pace(1024, &|| clock);
        }
        1_024_000.0 / (now.0 as f64 / NANOS_PER_S)
    }

    #[test]
    fn writers_keep_to_the_rate() {
        let controller = Controller::new(LsmThrottling::RocksDb, RATE);
        assert_eq!(controller.pace(1024, &|| Nanos(5)), Nanos(0));
        controller.note(debt(0, -0.1));
        assert_eq!(controller.pace(1024, &|| Nanos(5)), Nanos(0));
        controller.note(debt(1, 0.1));
        let expected = GROWN * RATE as f64;
        assert!((rate(&controller) / expected - 1.0).abs() < 0.01, "{}", rate(&controller));
    }

    #[test]
    fn the_rate_follows_the_debt() {
        let controller = Controller::new(LsmThrottling::RocksDb, RATE);
        let rate = |debt| {
            controller.note(debt);
            (controller.state().bytes_per_s / RATE as f64 * 1000.0).round()
        };
        assert_eq!(rate(debt(10, 0.1)), 800.0, "it has grown");
        assert_eq!(rate(debt(10, 0.1)), 640.0, "it is not less");
        assert_eq!(rate(debt(9, 0.1)), 800.0, "it has shrunk");
        assert_eq!(rate(debt(8, 0.95)), 480.0, "near stop");
        assert_eq!(rate(debt(0, 0.0)), 672.0, "nobody is slowed down");
        assert_eq!(rate(debt(0, 0.0)), 941.0);
        assert_eq!(rate(debt(0, 0.0)), 1000.0, "it is bounded");
        for grown in 0..100 {
            rate(debt(10 + grown, 0.5));
        }
        assert_eq!(controller.state().bytes_per_s, BYTES_PER_S_MIN);
    }

    #[test]
    fn two_stages_are_slight_at_first() {
        let controller = Controller::new(LsmThrottling::TwoStage, RATE);
        for bytes in 0..100 {
            controller.note(debt(bytes, 0.49));
        }
        assert!((rate(&controller) / RATE as f64 - 1.0).abs() < 0.01);
        for bytes in 0..10 {
            controller.note(debt(bytes, 0.5));
        }
        assert!(rate(&controller) < 0.2 * RATE as f64);
    }

    #[test]
    fn who_is_graded_is_left_to_others_and_all_are_stopped() {
        for throttling in LsmThrottling::ALL {
            let controller = Controller::new(throttling, RATE);
            let left = |fraction| controller.left_to_others(fraction);
            let expected = if throttling == LsmThrottling::Graded { 0.4 } else { 0.0 };
            assert_eq!((left(0.4), left(1.0)), (expected, 1.0));
            controller.note(debt(1, 0.4));
            let waits = controller.pace(1 << 20, &|| Nanos(0)) > Nanos(0);
            assert_eq!(waits, throttling != LsmThrottling::Graded);
        }
    }
}
