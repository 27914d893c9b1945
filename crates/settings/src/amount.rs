//! The number in a setting's value, as files have it.

use flashgrain_device::bytes_text;
use serde::{Deserialize, Serialize};

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// A size.
    Bytes(u64),
    /// A number of requests or streams.
    Count(u64),
    /// A fraction from 0 to 1.
    Share(f64),
    /// A time.
    Microseconds(f64),
}

impl Amount {
    /// The number alone.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Bytes(number) | Self::Count(number) => number as f64,
            Self::Share(number) | Self::Microseconds(number) => number,
        }
    }

    /// A number in this amount's unit, in words.
    pub(crate) fn text_of(self, number: f64) -> String {
        match self {
            Self::Bytes(_) => bytes_text(number as u64),
            Self::Count(_) => format!("{}", number as u64),
            Self::Share(_) => format!("{number}"),
            Self::Microseconds(_) => format!("{number} µs"),
        }
    }
}
