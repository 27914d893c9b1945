//! The printed tables of the MQSSD paper that its section on LSM trees is judged by.

use flashgrain_cost::{Access, IoModel, Workload};

/// Table 2, §4.2: k, and the costs of a Samsung 990 Pro: s(k), β(k), t(k), α(k). s and t are in µs per
/// percentage point of random pages of 1 GB (262,144 pages), β and α in µs per page of 4 KiB.
const TABLE_2: [[f64; 5]; 8] = [
    [1.0, 3.10e5, 2.79, 1.47e5, 3.53],
    [2.0, 2.54e5, 3.01, 4.07e4, 1.71],
    [4.0, 1.54e5, 2.59, 1.05e4, 0.659],
    [8.0, 8.02e4, 1.93, 2.93e3, 0.265],
    [16.0, 4.23e4, 1.27, 931.0, 0.157],
    [32.0, 2.15e4, 0.891, 392.0, 0.121],
    [64.0, 1.34e4, 0.745, 263.0, 0.105],
    [128.0, 9.98e3, 0.697, 202.0, 0.0974],
];

const PAGE_BYTES: f64 = 4096.0;

/// Pages of one percentage point of 1 GB.
const PAGES_PER_POINT: f64 = 262_144.0 / 100.0;

/// The drive of Table 2; costs between its concurrencies lie on lines of logarithms.
pub struct Table2;

impl Table2 {
    fn column(column: usize, concurrency: f64) -> f64 {
        let last = TABLE_2.len() - 1;
        let above = TABLE_2.iter().position(|row| row[0] >= concurrency).unwrap_or(last);
        let (low, high) = (&TABLE_2[above.saturating_sub(1)], &TABLE_2[above]);
        if low[0] == high[0] || concurrency >= high[0] {
            return high[column];
        }
        let share = (concurrency / low[0]).ln() / (high[0] / low[0]).ln();
        low[column] * (high[column] / low[column]).powf(share)
    }
}

impl IoModel for Table2 {
    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64> {
        let (setup, transfer) = match workload.access()? {
            Access::Write => (1, 2),
            Access::Read => (3, 4),
        };
        let setup = Self::column(setup, workload.concurrency) / PAGES_PER_POINT;
        let transfer = Self::column(transfer, workload.concurrency) / PAGE_BYTES;
        Some(1e-6 * (workload.random_accesses_per_byte() * setup + transfer))
    }
}

/// The concurrencies of Tables 3 to 5.
pub const CONCURRENCIES: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// The fanouts of Tables 3 and 4; the columns after them are the single level's.
pub const FANOUTS: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 32.0];

/// Table 3, §5.3.2: seconds of 3.2 million random point queries.
pub const QUERY_SECONDS: [[f64; 6]; 6] = [
    [1870.0, 1490.0, 1150.0, 978.0, 1060.0, 627.0],
    [938.0, 745.0, 576.0, 490.0, 531.0, 314.0],
    [468.0, 372.0, 287.0, 245.0, 265.0, 157.0],
    [240.0, 191.0, 148.0, 125.0, 136.0, 80.6],
    [129.0, 102.0, 79.1, 67.2, 73.0, 43.2],
    [75.2, 59.8, 46.2, 39.3, 42.6, 25.2],
];

/// Table 3: seconds of 3.2 million scans of 128 records.
pub const SCAN_SECONDS: [[f64; 6]; 6] = [
    [6700.0, 5920.0, 4700.0, 4070.0, 3940.0, 3050.0],
    [3420.0, 3030.0, 2410.0, 2100.0, 2020.0, 1570.0],
    [1780.0, 1590.0, 1270.0, 1100.0, 1070.0, 835.0],
    [994.0, 892.0, 719.0, 628.0, 606.0, 481.0],
    [624.0, 568.0, 462.0, 406.0, 391.0, 317.0],
    [462.0, 425.0, 350.0, 308.0, 297.0, 249.0],
];

/// Table 4, §5.3.2: seconds of compaction of the bulk load. The single level's first cell is a misprint: at
/// its 3.48e5 s, two threads would be 13 times as fast as one.
pub const COMPACTION_SECONDS: [[f64; 6]; 6] = [
    [3.69e4, 3.60e4, 3.72e4, 3.81e4, 3.87e4, 3.48e5],
    [1.91e4, 1.68e4, 1.71e4, 1.71e4, 1.85e4, 2.70e4],
    [1.15e4, 1.05e4, 1.04e4, 1.11e4, 1.24e4, 1.46e4],
    [8.47e3, 7.55e3, 7.65e3, 8.16e3, 9.48e3, 9.21e3],
    [5.93e3, 5.50e3, 5.67e3, 6.71e3, 7.86e3, 7.40e3],
    [4.00e3, 4.48e3, 4.95e3, 5.62e3, 7.02e3, 6.21e3],
];

/// Table 5, §5.3.2: seconds of the queries with Facebook's layout for flash, F = 8 and C = 8. Its scans at
/// k = 4 are a misprint of the single level's and not used.
pub const FLASH_LAYOUT_QUERY_SECONDS: [f64; 6] = [1210.0, 606.0, 302.0, 155.0, 83.0, 48.4];
