//! Time as a channel tells it: nanoseconds since an arbitrary start.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point on a channel's clock, or a span between two, in nanoseconds.
///
/// On a real drive the clock is `CLOCK_MONOTONIC`; on a simulated one it is virtual time. Points from channels of the same device compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// `seconds` as nanoseconds, saturating; negative becomes zero.
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds * 1e9) as u64)
    }

    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// From `earlier` to this point; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

impl From<Duration> for Nanos {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}
