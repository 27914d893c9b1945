//! An engine's default and advised configuration, and the model's predictions for both.

use flashgrain_cost::Interval;
use flashgrain_cost::ranking::{Asked, Bound, DriveCosts, Ends, Engine, Priced, price};

use crate::drive::Drive;
use crate::workload::Workload;

/// A configuration gains something from here on; less is within the error of the model.
const GAIN_MIN: f64 = 1.02;

/// A setting must not lose more than this at any end of the drive's intervals.
const LOSS_MAX: f64 = 1.01;

/// The configuration of an engine as a model of its I/O.
pub(super) trait Configuration: Clone {
    /// The engine around its data structure.
    fn engine(&self, workload: &Workload) -> Engine;

    /// Seconds until a write of its log is durable: to a file that does not grow, by `fdatasync`.
    fn flush_seconds(&self, drive: &Drive) -> Interval {
        drive.costs().flush_seconds
    }

    /// The requests of the average operation.
    fn asked(&self, workload: &Workload) -> Asked;
}

/// See the module.
pub(super) struct Tuned<'a, C> {
    pub default: C,
    pub advised: C,
    pub workload: &'a Workload,
    pub drive: &'a Drive,
}

impl<C: Configuration> Tuned<'_, C> {
    /// The drive's costs as a configuration meets them.
    fn costs(&self, configuration: &C) -> DriveCosts {
        let flush_seconds = configuration.flush_seconds(self.drive);
        DriveCosts { flush_seconds, ..self.drive.costs().clone() }
    }

    /// Predicted rates of a configuration at the values and at all corners.
    fn rates(&self, configuration: &C) -> Vec<f64> {
        let (asked, engine) = (configuration.asked(self.workload), configuration.engine(self.workload));
        let (costs, all) = (self.costs(configuration), std::iter::once(Ends::VALUE).chain(Ends::corners()));
        all.map(|ends| price(&asked, self.workload, &engine, &costs, ends).rate).collect()
    }

    /// Predicted rate.
    pub fn rate(&self, configuration: &C) -> Interval {
        spanning(&self.rates(configuration))
    }

    /// The price of a configuration at the values.
    pub fn priced(&self, configuration: &C) -> Priced {
        let (asked, engine) = (configuration.asked(self.workload), configuration.engine(self.workload));
        price(&asked, self.workload, &engine, &self.costs(configuration), Ends::VALUE)
    }

    /// The bottleneck of a configuration at the values.
    pub fn bound(&self, configuration: &C) -> Bound {
        self.priced(configuration).bound
    }

    /// The one with the best rate at the values of several configurations; the first of equal ones.
    pub fn fastest(&self, configurations: impl IntoIterator<Item = C>) -> Option<C> {
        let priced = configurations.into_iter().map(|one| (self.priced(&one).rate, one));
        let better = |best: (f64, C), next: (f64, C)| if next.0 > best.0 { next } else { best };
        priced.reduce(better).map(|(_, one)| one)
    }

    /// Rate of one configuration over that of another, at the same ends.
    pub fn ratio(&self, one: &C, other: &C) -> Interval {
        ratio(&self.rates(one), &self.rates(other))
    }

    /// The advised configuration over the default one.
    pub fn gain(&self) -> Interval {
        self.ratio(&self.advised, &self.default)
    }

    /// The advised configuration over the same with a part of it back at the default.
    pub fn gain_of(&self, revert: impl Fn(&mut C, &C)) -> Interval {
        let mut without = self.advised.clone();
        revert(&mut without, &self.default);
        self.ratio(&self.advised, &without)
    }

    /// The best of several alternatives of the advised configuration; the default if none gains enough at the
    /// values, or if the best may lose at an end of the intervals.
    pub fn best<T: Copy>(&self, alternatives: &[T], default: T, set: impl Fn(&mut C, T)) -> T {
        let configured = |alternative: T| {
            let mut configuration = self.advised.clone();
            set(&mut configuration, alternative);
            configuration
        };
        let at_default = self.rates(&configured(default));
        let ratio = |alternative: T| ratio(&self.rates(&configured(alternative)), &at_default);
        let safe =
            alternatives.iter().map(|one| (*one, ratio(*one))).filter(|(_, ratio)| is_safe_gain(*ratio));
        safe.max_by(|a, b| a.1.value.total_cmp(&b.1.value)).map_or(default, |(best, _)| best)
    }
}

/// Whether an alternative gains enough at the values and loses at no end of the drive's intervals.
pub(super) fn is_safe_gain(gain: Interval) -> bool {
    is_gain(gain) && gain.low >= LOSS_MAX.recip()
}

/// Whether a gain is worth a line.
pub(super) fn is_gain(gain: Interval) -> bool {
    gain.value >= GAIN_MIN
}

/// Rates over others at the same ends.
fn ratio(rates: &[f64], others: &[f64]) -> Interval {
    spanning(&rates.iter().zip(others).map(|(one, other)| one / other).collect::<Vec<_>>())
}

fn spanning(values: &[f64]) -> Interval {
    let value = values.first().copied().unwrap_or(1.0);
    Interval::spanning(value, values.iter().copied())
}
