//! Types of an LSM-tree's settings.

use crate::Amount;
use crate::value::{Value, named};

/// How runs are arranged in the levels below level 0, which has the tables of flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LsmLayout {
    /// Each level is one run, F times as large as the one above it; tables are merged into the next level one
    /// by one (RocksDB's default).
    Leveled,
    /// Each level collects F runs, which are merged into one of the next level (universal). A merge needs
    /// room for a copy of its inputs, so this and the other layouts below fill less of a small device.
    Tiered,
    /// Tiered, but the last level is one run (Dostoevsky).
    LazyLeveled,
    /// One run has all, and what is new is merged into it: F = ∞ (MQSSD paper §5.2.2).
    SingleLevel,
}

impl LsmLayout {
    /// All there are, in the order of their numbers in files.
    pub const ALL: [Self; 4] = [Self::Leveled, Self::Tiered, Self::LazyLeveled, Self::SingleLevel];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leveled => "leveled",
            Self::Tiered => "tiered",
            Self::LazyLeveled => "lazy leveled",
            Self::SingleLevel => "single level",
        }
    }
}

impl Value for LsmLayout {
    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn amount(&self) -> Option<Amount> {
        None
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        named(&Self::ALL, Self::name, text, amount)
    }
}

/// Bits of a filter for each key, in tenths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterBits(pub u32);

const UNIT: &str = " bits a key";

impl Value for FilterBits {
    fn text(&self) -> String {
        format!("{}{UNIT}", f64::from(self.0) / 10.0)
    }

    fn amount(&self) -> Option<Amount> {
        None
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        let bits: f64 = text.strip_suffix(UNIT)?.parse().ok()?;
        let is_number = amount.is_none() && (0.0..=f64::from(u32::MAX / 10)).contains(&bits);
        is_number.then(|| Self((bits * 10.0).round() as u32))
    }
}
