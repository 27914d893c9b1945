//! A number with the interval that it lies in.

use serde::{Deserialize, Serialize};

/// A value with its interval: the 95 % interval of a learned number, or the range that follows from the ends
/// of such intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The value.
    pub value: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// A number without doubt.
    pub fn exact(value: f64) -> Self {
        Self { low: value, value, high: value }
    }

    /// The value that lies within a factor of the truth.
    pub fn within_factor(value: f64, factor: f64) -> Self {
        Self { low: value / factor, value, high: value * factor }
    }

    /// From the results of the same calculation at all ends of its inputs.
    pub fn spanning(value: f64, others: impl IntoIterator<Item = f64>) -> Self {
        others.into_iter().fold(Self::exact(value), |found, other| Self {
            low: found.low.min(other),
            high: found.high.max(other),
            ..found
        })
    }

    /// The number at one end.
    pub fn at(&self, end: End) -> f64 {
        match end {
            End::Low => self.low,
            End::Value => self.value,
            End::High => self.high,
        }
    }

    /// All three numbers times a factor.
    pub fn scaled(self, factor: f64) -> Self {
        Self { low: self.low * factor, value: self.value * factor, high: self.high * factor }
    }

    /// Whether two intervals have a number in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The number of an interval that a calculation uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its lower end.
    Low,
    /// Its value.
    Value,
    /// Its upper end.
    High,
}
