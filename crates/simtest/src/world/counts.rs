//! Counts of a campaign.

use std::collections::BTreeMap;

/// Counts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<&'static str, u64>);

/// The count that all campaigns have: cases, each different from all others.
pub const CASES: &str = "cases";

impl Counts {
    /// So many more.
    pub fn add(&mut self, what: &'static str, count: u64) {
        *self.0.entry(what).or_default() += count;
    }

    /// Everything that another one has counted.
    pub fn add_all(&mut self, other: &Self) {
        other.0.iter().for_each(|(what, count)| self.add(what, *count));
    }

    /// So many.
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }

    /// [`CASES`].
    pub fn cases(&self) -> u64 {
        self.of(CASES)
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, (what, count)) in self.0.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(formatter, "{comma}{what} {count}")?;
        }
        Ok(())
    }
}
