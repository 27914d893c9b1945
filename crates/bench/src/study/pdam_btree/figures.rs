//! Charts.

use flashgrain_report::page::{Figure, Growth, Unit};

use super::{Nodes, OnDrive, PdamResult, lemma};
use crate::study::chart::{Curve, Quantity, legend, panel};

/// Look-ups a second by clients, a curve for each tree.
pub(super) fn throughput(result: &PdamResult, drive: &OnDrive) -> Figure {
    let mut curves = Vec::new();
    for (number, found) in drive.trees.iter().enumerate() {
        let label = found.nodes.name().to_owned();
        let ours = found.look_ups.iter().map(|run| (f64::from(run.clients), run.per_s)).collect();
        if found.nodes == Nodes::InBlocks
            && let Some(one) = found.by(1)
        {
            let at = |run: &crate::study::Measured| {
                Some((f64::from(run.clients), one.per_s * lemma::growth(result, drive, run.clients)?))
            };
            let points = found.look_ups.iter().filter_map(at).collect();
            curves.push(Curve { number, label: label.clone(), is_paper: true, points });
        }
        curves.push(Curve { number, label, is_paper: false, points: ours });
    }
    let clients = Quantity { title: "clients", unit: Unit::Count, growth: Growth::Log2 };
    let per_s = Quantity { title: "", unit: Unit::Count, growth: Growth::Log };
    let title = format!("Look-ups a second by clients, {}", drive.target);
    let panels = vec![panel(&title, "Look-ups a second", clients, per_s, &curves)];
    let caption = "Dashed: Lemma 13, k / log_{PB/k} N from the throughput of one client on; for more than P \
                   clients as for P.";
    let id = format!("throughput-{}", drive.target.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
    Figure { id: id.into(), title, caption: caption.into(), legend: legend(&curves), panels }
}
