//! The paper's figures, as far as its text has them.

use crate::study::about::About;

/// The study that is repeated.
pub const ABOUT: About = About {
    name: "hidden-parameters",
    paper: "Kakaraparthi, Patel, Kroth, Park: Optimizing Databases by Learning Hidden Parameters of Solid State Drives",
    parts: "sections 3.2.2 and 4: Figures 12 to 14, Table 2; MariaDB's requests (Figure 13) are made up as a server's were recorded",
    did: "SQLite and MariaDB with pages at hot locations, frames of the log that fill stripes, and records within flash pages, on a Samsung 960 EVO and a Toshiba XG5.",
    scaled: &[
        ("pairs", "10 million of 32 + 100 bytes", "200,000"),
        ("an iteration", "50,000 inserts and 50,000 selects", "1,000 of each"),
        ("iterations", "100, and 20 of the log", "10"),
        (
            "YCSB on MariaDB",
            "1 million records, 100,000 operations, five runs",
            "20,000 records of 1 KB, 20,000 operations",
        ),
        ("drives", "Samsung 960 EVO, Toshiba XG5", "sim:960evo, sim:xg5, larger than the database"),
    ],
};

/// The drive whose pages are at hot locations, a Samsung 960 EVO.
pub(super) const HOT_DRIVE: &str = "sim:960evo";

/// The drive of the log, a Toshiba XG5.
pub(super) const LOG_DRIVE: &str = "sim:xg5";

/// By how much selects gain (Figure 12): over the iterations of a run, and over sizes of transactions.
pub(super) const SELECT_GAIN: f64 = 0.304;
pub(super) const SELECT_GAIN_MEDIAN: f64 = 0.292;

/// How much shorter reads are at hot locations (Figure 5a).
pub(super) const LATENCY_DROP: f64 = 0.39;

/// Gain of inserts with this number of them in a transaction; from 500 on, the loss is less than 2 %.
pub(super) fn insert_gain(inserts_per_transaction: u64) -> Option<f64> {
    match inserts_per_transaction {
        1 => Some(-0.152),
        50_000 => Some(0.03),
        _ => None,
    }
}

/// Inserts of a transaction at and above which less than this share of the rate is lost.
pub(super) const SIZE_WITHOUT_LOSS: u64 = 500;
pub(super) const LOSS_MAX: f64 = 0.02;

/// Gains of selects and inserts with MariaDB (Figure 13a).
pub(super) const MARIADB_SELECT_GAIN: f64 = 0.266;
pub(super) const MARIADB_INSERT_GAIN: f64 = 0.009;

/// Gains of YCSB's mixes with MariaDB (Figure 13b), as far as the text has them: all others lie between.
pub(super) fn ycsb_gain(workload: &str) -> Option<f64> {
    match workload {
        "ycsb-a" => Some(0.03),
        "ycsb-c" => Some(0.223),
        "ycsb-f" => Some(0.011),
        _ => None,
    }
}

/// A property of Table 2: original and optimized.
pub(super) struct Property {
    pub original: f64,
    pub optimized: f64,
}

const fn property(original: f64, optimized: f64) -> Property {
    Property { original, optimized }
}

pub(super) const FIRST_PAGES: Property = property(19_424.0, 19_448.0);
pub(super) const LAST_PAGES: Property = property(21_418.0, 21_436.0);
pub(super) const INSERTS_PER_S: Property = property(288.0, 290.0);
pub(super) const CHECKPOINT_S: Property = property(0.087, 0.09);
pub(super) const FRAMES: Property = property(101_133.0, 101_105.0);
pub(super) const EXTRA_FLASH_PAGES: Property = property(50_000.0, 0.0);

/// By how much the original wears more than aligned frames (Figure 14), by bytes of a flash page.
pub(super) fn wear(flash_page_bytes: u64) -> Option<f64> {
    match flash_page_bytes >> 10 {
        2 => Some(0.016),
        4 => Some(0.031),
        16 => Some(0.124),
        _ => None,
    }
}

/// Records of the binary log that lie across flash pages (§4.3).
pub(super) const RECORDS_ACROSS: f64 = 0.067;
