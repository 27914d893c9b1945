//! Charts.

use flashgrain_report::page::{Figure, Growth, Unit};

use super::hot::{self, Iteration, Variant};
use super::{paper, stripes};
use crate::study::chart::{Curve, Quantity, legend, panel};

const RATE: Quantity = Quantity { title: "", unit: Unit::Count, growth: Growth::Linear };
const GAIN: Quantity = Quantity { title: "", unit: Unit::Share, growth: Growth::Linear };
const ITERATION: Quantity = Quantity { title: "iteration", unit: Unit::Count, growth: Growth::Linear };
const SIZE: Quantity =
    Quantity { title: "inserts in a transaction", unit: Unit::Count, growth: Growth::Log2 };
const FLASH_PAGE: Quantity = Quantity { title: "flash page", unit: Unit::Bytes, growth: Growth::Log2 };

type Rate = fn(&Iteration) -> f64;

pub(super) const PHASES: [(&str, Rate); 2] = [
    ("Selects a second", |iteration| iteration.selects.per_s),
    ("Inserts a second", |iteration| iteration.inserts.per_s),
];

/// Rates of each iteration, with one insert in a transaction: Figure 12a.
pub(super) fn over_iterations(found: &hot::Found) -> Option<Figure> {
    let size = *found.sizes().first()?;
    let title = "Rates over the iterations";
    let (mut panels, mut keys) = (Vec::new(), Vec::new());
    for (name, rate) in PHASES {
        let mut curves = Vec::new();
        for (number, variant) in Variant::ALL.into_iter().enumerate() {
            let run = found.run(variant, size)?;
            let points = (1_u32..).zip(&run.iterations).map(|(at, found)| (at.into(), rate(found))).collect();
            curves.push(Curve { number, label: variant.name().into(), is_paper: false, points });
        }
        panels.push(panel(title, name, ITERATION, RATE, &curves));
        keys = legend(&curves);
    }
    let caption = format!("Inserts in a transaction: {size}.");
    Some(Figure { id: "hot-iterations".into(), title: title.into(), caption, legend: keys, panels })
}

/// Gains over sizes of transactions: Figure 12b.
pub(super) fn over_sizes(found: &hot::Found) -> Figure {
    let title = "Gain in operations a second over the size of transactions";
    let (mut panels, mut keys) = (Vec::new(), Vec::new());
    for (name, rate) in PHASES {
        let mut curves = Vec::new();
        for (number, variant) in [Variant::Paper, Variant::Whole].into_iter().enumerate() {
            let label = variant.name();
            let curve =
                |is_paper, points| Curve { number: number + 1, label: label.into(), is_paper, points };
            let papers = |size: u64| match (variant, name) {
                (Variant::Paper, "Selects a second") => Some(paper::SELECT_GAIN_MEDIAN),
                (Variant::Paper, _) => paper::insert_gain(size),
                _ => None,
            };
            let sizes = found.sizes();
            let at = |of: &dyn Fn(u64) -> Option<f64>| -> Vec<(f64, f64)> {
                sizes.iter().filter_map(|size| Some((*size as f64, of(*size)?))).collect()
            };
            curves.push(curve(true, at(&papers)));
            curves.push(curve(false, at(&|size| found.gain(variant, size, rate))));
        }
        panels.push(panel(title, name, SIZE, GAIN, &curves));
        keys = legend(&curves);
    }
    let caption = "Dashed: the paper's, where its text has them.".into();
    Figure { id: "hot-sizes".into(), title: title.into(), caption, legend: keys, panels }
}

/// Wear of the original over that of aligned frames: Figure 14.
pub(super) fn wear(found: &stripes::Found) -> Figure {
    let title = "Additional wear of SQLite's log over aligned frames";
    let curve = |is_paper, points| Curve { number: 0, label: "additional wear".into(), is_paper, points };
    let papers = stripes::FLASH_PAGES.iter().filter_map(|bytes| Some((*bytes as f64, paper::wear(*bytes)?)));
    let ours =
        stripes::FLASH_PAGES.iter().enumerate().map(|(number, bytes)| (*bytes as f64, found.wear(number)));
    let curves = [curve(true, papers.collect()), curve(false, ours.collect())];
    let panels = vec![panel(title, "Additional wear", FLASH_PAGE, GAIN, &curves)];
    let caption = "Dashed: the paper's.".into();
    Figure { id: "stripes-wear".into(), title: title.into(), caption, legend: legend(&curves), panels }
}
