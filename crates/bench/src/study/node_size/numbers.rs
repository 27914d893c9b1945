//! The paper's numbers and ours.

use super::NodeSizeResult;
use super::drive_costs::UNIT_BYTES;
use crate::study::about::About;
use crate::study::comparison::{Comparison, Measure};

/// The study that is repeated.
pub const ABOUT: About = About {
    name: "node-size",
    paper: "Bender et al.: External-memory Dictionaries in the Affine and PDAM Models",
    parts: "sections 4.2 and 7: Tables 2 and 3, Figures 2 and 3",
    did: "Random look-ups and inserts of Berkeley DB and TokuDB on a hard disk, with nodes of 4 KiB to 4 MiB; costs of five disks.",
    scaled: &[
        ("pairs", "16 GiB", "a million of 16 + 100 bytes, and 30 % more at the end"),
        ("memory", "4 GiB, a quarter", "a quarter"),
        ("operations", "a thousandth of the pairs", "100,000 look-ups and 200,000 inserts"),
        ("B-tree", "Berkeley DB", "B+-trees of this store, nodes to 64 KiB"),
        ("Bε-tree", "TokuDB", "Bε-trees of this store, F = 16"),
    ],
};

/// Table 2: drive, s in seconds, t in seconds for 4 KiB, α.
const DISKS: [(&str, f64, f64, f64); 5] = [
    ("sim:seagate-250gb-2006", 0.015, 0.000_033, 0.0022),
    ("sim:hitachi-1tb-2009", 0.013, 0.000_041, 0.0031),
    ("sim:wd-black-1tb-2011", 0.012, 0.000_035, 0.0029),
    ("sim:seagate-2tb-2012", 0.018, 0.000_021, 0.0012),
    ("sim:wd-red-6tb-2018", 0.016, 0.000_026, 0.0017),
];

pub(super) fn comparisons(result: Option<&NodeSizeResult>) -> Vec<Comparison> {
    let mut all = Vec::new();
    for (name, setup_s, transfer_s, alpha) in DISKS {
        let drive = result.and_then(|result| result.drives.iter().find(|drive| drive.target == name));
        let costs = drive.map(|drive| drive.costs);
        let of_line = drive.and_then(|drive| Some(drive.fitted?.alpha));
        let number = |what: &str, measure, papers, ours| {
            Comparison::new("Table 2", format!("{name}: {what}"), measure, papers, ours)
        };
        let transfer = costs.map(|costs| costs.transfer_seconds_per_byte * UNIT_BYTES);
        all.extend([
            number("s", Measure::Seconds, setup_s, costs.map(|costs| costs.setup_seconds)),
            number("t of 4 KiB", Measure::Seconds, transfer_s, transfer),
            number("α", Measure::Share, alpha, costs.map(|costs| costs.alpha())),
            number("α of the line through look-ups of B-trees", Measure::Share, alpha, of_line),
        ]);
    }
    all
}
