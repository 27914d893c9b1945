//! Shares of operations.

use crate::keys::{self, Picker};

/// Next operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A look-up by key.
    Read,
    /// A look-up of a key that is not there.
    Miss,
    /// A new value for a record that is there, without looking.
    Update,
    /// A new record.
    Insert,
    /// Some records in key order.
    Scan,
    /// A look-up and an update of the same record.
    Modify,
}

impl Operation {
    /// Name as in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Miss => "miss",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::Modify => "modify",
        }
    }
}

/// Shares, which add up to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Of [`Operation::Read`].
    pub read: f64,
    /// Of [`Operation::Miss`].
    pub miss: f64,
    /// Of [`Operation::Update`].
    pub update: f64,
    /// Of [`Operation::Insert`].
    pub insert: f64,
    /// Of [`Operation::Scan`].
    pub scan: f64,
    /// Of [`Operation::Modify`].
    pub modify: f64,
    /// Fewest and most records of a scan, all numbers alike.
    pub scan_records: (u32, u32),
    /// Reads at a time; 0 and 1 are one.
    pub batch: u32,
    /// Keys are in the order of their records; otherwise they are scattered.
    pub in_order: bool,
    /// The second half of values that are written is zeros, so that they compress to a half, as those of
    /// RocksDB's `db_bench` do; otherwise values are incompressible.
    pub half_zeros: bool,
}

impl Default for Mix {
    fn default() -> Self {
        Self::NOTHING
    }
}

impl Mix {
    /// No operation at all, to begin with.
    pub const NOTHING: Self = Self {
        read: 0.0,
        miss: 0.0,
        update: 0.0,
        insert: 0.0,
        scan: 0.0,
        modify: 0.0,
        scan_records: (0, 0),
        batch: 1,
        in_order: false,
        half_zeros: false,
    };

    /// The key of a record.
    pub fn key(&self, record: u64, into: &mut [u8]) {
        match self.in_order {
            true => keys::key(record, into),
            false => keys::scattered_key(record, into),
        }
    }

    /// Draws one.
    pub fn draw(&self, picker: &mut Picker) -> Operation {
        let shares = [
            (self.read, Operation::Read),
            (self.miss, Operation::Miss),
            (self.update, Operation::Update),
            (self.insert, Operation::Insert),
            (self.scan, Operation::Scan),
        ];
        // Nothing is drawn where there is no choice.
        if let Some((_, only)) = shares.iter().find(|(share, _)| *share >= 1.0) {
            return *only;
        }
        let mut remaining = picker.share();
        for (share, operation) in shares {
            if remaining < share {
                return operation;
            }
            remaining -= share;
        }
        // A remainder due to rounding must not choose an operation that has no share.
        if self.modify > 0.0 {
            return Operation::Modify;
        }
        shares.iter().rev().find(|(share, _)| *share > 0.0).map_or(Operation::Read, |(_, last)| *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Distribution, Popularity};

    #[test]
    fn operations_come_with_their_shares() {
        let mix = Mix { read: 0.5, insert: 0.2, modify: 0.3, ..Mix::default() };
        let mut picker = Picker::new(Popularity::new(10, Distribution::Uniform), 1, 0);
        let mut counts = std::collections::BTreeMap::new();
        (0..100_000).for_each(|_| *counts.entry(mix.draw(&mut picker)).or_insert(0_u32) += 1);
        // The standard deviation is below 160.
        assert!(counts[&Operation::Read].abs_diff(50_000) < 800, "{counts:?}");
        assert!(counts[&Operation::Insert].abs_diff(20_000) < 800, "{counts:?}");
        assert!(counts[&Operation::Modify].abs_diff(30_000) < 800, "{counts:?}");
        assert_eq!(counts.len(), 3);
    }
}
