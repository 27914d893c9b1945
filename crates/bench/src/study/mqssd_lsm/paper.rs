//! The paper's figures: Tables 3, 4 and 5.

use super::Layout;

/// Records in its stores.
pub(super) const RECORDS: f64 = 6.4e7;

/// Queries and scans whose total times are in its tables.
pub(super) const QUERIES: f64 = 3.2e6;

/// T, and the bytes of the pages that a block of 4 KiB, which is not aligned, lies in.
pub(super) const TABLE_BYTES: u64 = 64 << 20;
pub(super) const BLOCK_READ_BYTES: f64 = 8192.0;

/// Hardware threads of its AMD Ryzen 5 7600X.
pub(super) const PROCESSORS: u32 = 12;

/// Seconds that a query takes besides its reads: the constant of a line through Table 3 at k = 1 over the
/// levels, whose slope is 48 µs. Nothing in equations 10 and 12 accounts for it; the paper "reintroduces
/// constants" in Figure 5.
pub(super) const QUERY_BESIDES_READS_S: f64 = 166e-6;

/// k.
pub(super) const CONCURRENCY: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// A column of a table: seconds by concurrency.
pub(super) type Column = [f64; 6];

/// Table 3, queries.
pub(super) fn queries(layout: Layout) -> Option<Column> {
    Some(match layout {
        Layout::Leveled { fanout: 2 } => [1870.0, 938.0, 468.0, 240.0, 129.0, 75.2],
        Layout::Leveled { fanout: 4 } => [1490.0, 745.0, 372.0, 191.0, 102.0, 59.8],
        Layout::Leveled { fanout: 8 } => [1150.0, 576.0, 287.0, 148.0, 79.1, 46.2],
        Layout::Leveled { fanout: 16 } => [978.0, 490.0, 245.0, 125.0, 67.2, 39.3],
        Layout::Leveled { fanout: 32 } => [1060.0, 531.0, 265.0, 136.0, 73.0, 42.6],
        Layout::Leveled { .. } => return None,
        Layout::SingleLevel => [627.0, 314.0, 157.0, 80.6, 43.2, 25.2],
        // Table 5.
        Layout::Flash => [1210.0, 606.0, 302.0, 155.0, 83.0, 48.4],
    })
}

/// Table 3, scans.
pub(super) fn scans(layout: Layout) -> Option<Column> {
    Some(match layout {
        Layout::Leveled { fanout: 2 } => [6700.0, 3420.0, 1780.0, 994.0, 624.0, 462.0],
        Layout::Leveled { fanout: 4 } => [5920.0, 3030.0, 1590.0, 892.0, 568.0, 425.0],
        Layout::Leveled { fanout: 8 } => [4700.0, 2410.0, 1270.0, 719.0, 462.0, 350.0],
        Layout::Leveled { fanout: 16 } => [4070.0, 2100.0, 1100.0, 628.0, 406.0, 308.0],
        Layout::Leveled { fanout: 32 } => [3940.0, 2020.0, 1070.0, 606.0, 391.0, 297.0],
        Layout::Leveled { .. } => return None,
        Layout::SingleLevel => [3050.0, 1570.0, 835.0, 481.0, 317.0, 249.0],
        // Table 5.
        Layout::Flash => [4800.0, 2460.0, 1290.0, 730.0, 468.0, 354.0],
    })
}

/// Table 4: until all merges are done, by threads that merge.
pub(super) fn compactions(layout: Layout) -> Option<Column> {
    Some(match layout {
        Layout::Leveled { fanout: 2 } => [3.69e4, 1.91e4, 1.15e4, 8.47e3, 5.93e3, 4.00e3],
        Layout::Leveled { fanout: 4 } => [3.60e4, 1.68e4, 1.05e4, 7.55e3, 5.50e3, 4.48e3],
        Layout::Leveled { fanout: 8 } => [3.72e4, 1.71e4, 1.04e4, 7.65e3, 5.67e3, 4.95e3],
        Layout::Leveled { fanout: 16 } => [3.81e4, 1.71e4, 1.11e4, 8.16e3, 6.71e3, 5.62e3],
        Layout::Leveled { fanout: 32 } => [3.87e4, 1.85e4, 1.24e4, 9.48e3, 7.86e3, 7.02e3],
        Layout::Leveled { .. } => return None,
        Layout::SingleLevel => [3.48e5, 2.70e4, 1.46e4, 9.21e3, 7.40e3, 6.21e3],
        // Table 5, with its four threads.
        Layout::Flash => [9.33e3; 6],
    })
}

/// The entry of a column for `clients` clients.
pub(super) fn at(column: &Column, clients: u32) -> Option<f64> {
    let row = CONCURRENCY.iter().position(|k| *k == clients)?;
    column.get(row).copied()
}
