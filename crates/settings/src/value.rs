//! Types of values, each in words and as a number.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use flashgrain_device::{BackendKind, bytes_text};

use crate::Amount;

/// The value of a setting.
pub(crate) trait Value: Copy {
    /// In words, with its unit.
    fn text(&self) -> String;

    /// Its number; `None` if the value is a word.
    fn amount(&self) -> Option<Amount>;

    /// From a file. Older files have the words alone.
    fn read(text: &str, amount: Option<Amount>) -> Option<Self>;
}

/// The range of a setting's number, in the unit of its [`Amount`].
pub(crate) type Range = RangeInclusive<f64>;

/// Any size of pages, units, segments and requests.
pub(crate) const SIZES: Range = 512.0..=(1u64 << 40) as f64;

/// Any size of a whole store or its log.
pub(crate) const SPACES: Range = 512.0..=(1u64 << 62) as f64;

/// Any number of requests in flight.
pub(crate) const DEPTHS: Range = 1.0..=(1u64 << 20) as f64;

/// Any fraction.
pub(crate) const FRACTIONS: Range = 0.0..=1.0;

/// Any time that a commit may wait, in microseconds.
pub(crate) const WAITS_US: Range = 0.0..=1e9;

/// The value whose name is this text, if it has no amount.
pub(crate) fn named<T: Copy>(
    all: &[T],
    name: fn(T) -> &'static str,
    text: &str,
    amount: Option<Amount>,
) -> Option<T> {
    amount.is_none().then(|| all.iter().copied().find(|one| name(*one) == text))?
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&bytes_text(self.0))
    }
}

/// A number of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

/// A fraction of the requests, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Fraction(pub f64);

/// The number before `unit`.
fn number_before<T: std::str::FromStr>(text: &str, unit: &str) -> Option<T> {
    text.strip_suffix(unit)?.trim_end().parse().ok()
}

/// A size in the words of [`bytes_text`].
pub(crate) fn bytes_of_text(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
    let (name, unit) = UNITS.iter().find(|(name, _)| text.ends_with(name))?;
    let number: f64 = number_before(text, name)?;
    (number.is_finite() && number >= 0.0).then_some((number * *unit as f64) as u64)
}

impl Value for Bytes {
    fn text(&self) -> String {
        bytes_text(self.0)
    }

    fn amount(&self) -> Option<Amount> {
        Some(Amount::Bytes(self.0))
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        match amount {
            Some(Amount::Bytes(bytes)) => Some(Self(bytes)),
            Some(_) => None,
            None => bytes_of_text(text).map(Self),
        }
    }
}

impl Value for Count {
    fn text(&self) -> String {
        self.0.to_string()
    }

    fn amount(&self) -> Option<Amount> {
        Some(Amount::Count(self.0))
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        match amount {
            Some(Amount::Count(count)) => Some(Self(count)),
            Some(_) => None,
            None => text.parse().ok().map(Self),
        }
    }
}

impl Value for Fraction {
    fn text(&self) -> String {
        format!("at most {:.0} % of the requests", self.0 * 100.0)
    }

    fn amount(&self) -> Option<Amount> {
        Some(Amount::Share(self.0))
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        match amount {
            Some(Amount::Share(fraction)) => Some(Self(fraction)),
            Some(_) => None,
            None => {
                let percent: f64 = number_before(text.strip_prefix("at most ")?, "% of the requests")?;
                Some(Self(percent / 100.0))
            }
        }
    }
}

impl Value for Duration {
    fn text(&self) -> String {
        format!("{:.0} µs", microseconds(self))
    }

    fn amount(&self) -> Option<Amount> {
        Some(Amount::Microseconds(microseconds(self)))
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        let us: f64 = match amount {
            Some(Amount::Microseconds(us)) => us,
            Some(_) => return None,
            None => number_before(text, "µs")?,
        };
        // A time beyond all durations is out of range rather than unreadable.
        Self::try_from_secs_f64(us * 1e-6).ok().or((us > 0.0).then_some(Self::MAX))
    }
}

/// To the nanosecond, as latencies are measured.
fn microseconds(duration: &Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

impl Value for BackendKind {
    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn amount(&self) -> Option<Amount> {
        None
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        amount.is_none().then(|| text.parse().ok())?
    }
}
