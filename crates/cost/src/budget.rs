//! Two servers for the same money, one with more memory and one with drives, and the time between two reads
//! of a page below which memory is the cheaper place for it.
//!
//! The servers are those of "What Modern NVMe Storage Can Do, And How To Exploit It" (Haas, Leis; VLDB
//! 2023), section 1. The time is Gray's rule of the five minutes: the price of a drive for each read a second
//! that it makes, over the price of a page's memory.

use std::str::FromStr;

use serde::Serialize;

use crate::ranking::{DriveCosts, Requests};
use crate::{Access, End};

/// Bytes of a page.
pub const PAGE_BYTES: f64 = 4096.0;

/// Bytes of requests that take all of a drive's bandwidth.
pub const LARGE_BYTES: f64 = 65_536.0;

/// Prices, in dollars.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prices {
    /// For everything.
    pub budget: f64,
    /// Of a server with [`Prices::MEMORY_BYTES`] of memory.
    pub server: f64,
    /// Of more memory, for each GB.
    pub memory_gb: f64,
    /// Of drives, for each TB.
    pub drive_tb: f64,
}

/// Rates of one drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriveRates {
    /// Random reads of [`PAGE_BYTES`] per second, with as many in flight as it rewards.
    pub reads_per_s: f64,
    /// Bytes per second of random reads of [`LARGE_BYTES`].
    pub bytes_per_s: f64,
}

/// A server for the money.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Server {
    /// In dollars.
    pub price: f64,
    /// Bytes of memory.
    pub memory_bytes: f64,
    /// Number of drives.
    pub drives: f64,
    /// Bytes of all drives.
    pub drives_bytes: f64,
    /// Rates of all drives together.
    pub rates: DriveRates,
}

/// Memory or drives for the same money.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// The prices.
    pub prices: Prices,
    /// All that is left for memory.
    pub with_memory: Server,
    /// As many drives as the money buys and the server takes.
    pub with_drives: Server,
    /// Rates of one drive.
    pub drive: DriveRates,
    /// A page that is read more often than once in this time, in seconds, is cheaper in memory.
    pub break_even_s: f64,
}

impl Prices {
    /// Memory of the server: the paper's.
    pub const MEMORY_BYTES: f64 = 512e9;

    /// Bytes of a drive that is bought: the paper's.
    pub const DRIVE_BYTES: f64 = 4e12;

    /// Most drives that a server takes: the paper's.
    pub const DRIVES_MAX: f64 = 8.0;

    /// Of one drive.
    pub fn drive(&self) -> f64 {
        self.drive_tb * Self::DRIVE_BYTES * 1e-12
    }

    /// Of a byte of memory over one of flash.
    pub fn ratio(&self) -> f64 {
        self.memory_gb * 1e3 / self.drive_tb
    }

    /// Of memory for one page.
    fn page(&self) -> f64 {
        self.memory_gb * 1e-9 * PAGE_BYTES
    }
}

impl Default for Prices {
    /// The paper's: 15,000 dollars, half of it for a server; 2 TB of memory for the other half; flash for 200
    /// dollars a TB.
    fn default() -> Self {
        Self { budget: 15_000.0, server: 7_500.0, memory_gb: 3.75, drive_tb: 200.0 }
    }
}

/// Prices that can be given, in dollars.
const PRICES: std::ops::RangeInclusive<f64> = 1e-6..=1e12;

impl FromStr for Prices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        match numbers.as_deref() {
            Ok(&[budget, server, memory_gb, drive_tb])
                if [budget, server, memory_gb, drive_tb].iter().all(|price| PRICES.contains(price))
                    && server <= budget =>
            {
                Ok(Self { budget, server, memory_gb, drive_tb })
            }
            _ => Err("expected prices from 0.000001 to 1000000000000, a server for no more than the budget: BUDGET,SERVER,MEMORY_GB,DRIVE_TB".into()),
        }
    }
}

impl DriveRates {
    /// No drive's.
    pub const NONE: Self = Self { reads_per_s: 0.0, bytes_per_s: 0.0 };

    /// Those that a drive's costs predict at the highest concurrency that they have.
    pub fn of(costs: &DriveCosts) -> Self {
        let reads = &costs.reads;
        let concurrency = reads.setup.iter().chain(&reads.transfer).map(|(k, _)| *k).fold(1.0, f64::max);
        let per_s = |bytes| {
            let reads = Requests { access: Access::Read, bytes, random: true, concurrency };
            costs.seconds(&reads, End::Value).recip()
        };
        Self { reads_per_s: per_s(PAGE_BYTES), bytes_per_s: LARGE_BYTES * per_s(LARGE_BYTES) }
    }

    fn times(self, drives: f64) -> Self {
        Self { reads_per_s: drives * self.reads_per_s, bytes_per_s: drives * self.bytes_per_s }
    }
}

impl Budget {
    /// The memory and drives that these prices buy, for drives of these rates.
    pub fn new(prices: Prices, drive: DriveRates) -> Self {
        let rest = prices.budget - prices.server;
        let with_memory = Server {
            price: prices.budget,
            memory_bytes: Prices::MEMORY_BYTES + rest / prices.memory_gb * 1e9,
            drives: 0.0,
            drives_bytes: 0.0,
            rates: DriveRates::NONE,
        };
        let drives = (rest / prices.drive()).floor().min(Prices::DRIVES_MAX);
        let with_drives = Server {
            price: prices.server + drives * prices.drive(),
            memory_bytes: Prices::MEMORY_BYTES,
            drives,
            drives_bytes: drives * Prices::DRIVE_BYTES,
            rates: drive.times(drives),
        };
        let break_even_s = prices.drive() / drive.reads_per_s / prices.page();
        Self { prices, with_memory, with_drives, drive, break_even_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;
    use crate::ranking::CostsOfKind;

    /// A drive of the paper: section 2.1 and Figure 3.
    const DRIVE: DriveRates = DriveRates { reads_per_s: 1.56e6, bytes_per_s: 7e9 };

    #[test]
    fn the_papers_prices_buy_the_papers_servers() {
        let Budget { with_memory, with_drives, .. } = Budget::new(Prices::default(), DRIVE);
        assert!((with_memory.memory_bytes / 2.5e12 - 1.0).abs() < 0.01, "{with_memory:?}");
        assert_eq!((with_drives.drives, with_drives.drives_bytes), (8.0, 32e12));
        assert_eq!(with_drives.rates.bytes_per_s, 56e9);
        assert!(with_drives.price <= 15_000.0);
        // A thousand dollars for drives buy one.
        let few = Prices { budget: 8_500.0, ..Prices::default() };
        assert_eq!(Budget::new(few, DRIVE).with_drives.drives, 1.0);
        let none = Prices { budget: 7_600.0, ..Prices::default() };
        assert_eq!(Budget::new(none, DRIVE).with_drives.rates, DriveRates::NONE);
    }

    #[test]
    fn prices_are_bounded() {
        assert_eq!("15000,7500,3.75,200".parse(), Ok(Prices::default()));
        for nonsense in
            ["15000,7500,1e-300,200", "1e308,1,1,1", "1,2,3,4", "15000,7500,3.75,0", "15000,7500,inf,1"]
        {
            assert!(nonsense.parse::<Prices>().is_err(), "{nonsense}");
        }
    }

    /// Gray and Putzolu, 1987: a disk with its channel costs 2,000 dollars for each access a second, a KB of
    /// memory 5 dollars, so that a record of 1 KB is worth its memory at one access in 400 seconds. A page of
    /// 4 KiB is at one in a quarter of that.
    #[test]
    fn the_rule_of_five_minutes_has_the_numbers_of_its_paper() {
        let prices = Prices {
            memory_gb: 5e6,
            drive_tb: 30_000.0 / (Prices::DRIVE_BYTES * 1e-12),
            ..Prices::default()
        };
        let drive = DriveRates { reads_per_s: 15.0, ..DRIVE };
        let found = Budget::new(prices, drive).break_even_s;
        assert!((found / (400.0 / 4.0) - 1.0).abs() < 0.05, "{found}");
    }

    #[test]
    fn rates_of_a_drive_are_those_at_its_highest_concurrency() {
        let costs = |setup: &[(f64, f64)]| CostsOfKind {
            setup: setup.iter().map(|(k, cost)| (*k, Interval::exact(*cost))).collect(),
            transfer: vec![(1.0, Interval::exact(1e-10))],
        };
        let drive = DriveCosts {
            reads: costs(&[(1.0, 1e-4), (256.0, 1e-6)]),
            writes: costs(&[(1.0, 1e-3)]),
            flush_seconds: Interval::exact(1e-3),
            parallelism: None,
            interference: Vec::new(),
        };
        let rates = DriveRates::of(&drive);
        assert!((rates.reads_per_s * (1e-6 + 4096e-10) - 1.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.bytes_per_s / 65_536.0 * (1e-6 + 65_536e-10) - 1.0).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn prices_are_typed() {
        assert_eq!("15000,7500,3.75,200".parse(), Ok(Prices::default()));
        for nonsense in ["", "1,2,3", "1,2,3,4", "10,5,0,1", "10,5,-1,1", "10,5,x,1", "inf,5,1,1"] {
            assert!(nonsense.parse::<Prices>().is_err(), "{nonsense}");
        }
    }
}
