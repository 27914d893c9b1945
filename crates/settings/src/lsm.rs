//! Types of an LSM-tree's settings.

use flashgrain_cost::lsm::{Layout as LsmLayout, Metadata};

use crate::Amount;
use crate::value::{Value, named};

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

impl Value for Metadata {
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
