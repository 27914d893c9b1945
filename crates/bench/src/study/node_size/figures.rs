//! Charts: Figures 2 and 3 of the paper.

use flashgrain_report::page::{Figure, Growth, Unit};

use super::asked::{self, ASKED};
use super::{OnDrive, Operations, Point, Tree};
use crate::study::chart::{Curve, Quantity, dashed_key, legend, panel};

/// A figure for each tree.
pub(super) fn both(drive: &OnDrive) -> Vec<Figure> {
    let has = |tree: &Tree| asked::of_tree(drive, *tree).next().is_some();
    Tree::ALL.into_iter().filter(has).map(|tree| of_tree(drive, tree)).collect()
}

fn of_tree(drive: &OnDrive, tree: Tree) -> Figure {
    let mut curves = Vec::new();
    for (number, (label, of)) in ASKED.into_iter().enumerate() {
        let curve = |is_paper, us: fn(&Operations) -> Option<f64>| {
            let at = |point: &Point| Some((point.node_bytes as f64, us(of(point)?)? * 1e-6));
            let points = asked::of_tree(drive, tree).filter_map(at).collect();
            Curve { number, label: label.into(), is_paper, points }
        };
        curves.push(curve(true, |operations| operations.predicted.us));
        curves.push(curve(false, |operations| Some(operations.measured.mean_us())));
    }
    curves.retain(|curve| !curve.points.is_empty());
    let mut legend = legend(&curves);
    if !drive.line.is_empty() {
        let points = drive.line.iter().map(|(bytes, us)| (*bytes as f64, us * 1e-6)).collect();
        let label = "affine line through look-ups of loaded B+-trees".into();
        let line = Curve { number: ASKED.len(), label, is_paper: true, points };
        legend.push(dashed_key(&line));
        curves.push(line);
    }
    let node = Quantity { title: "bytes of a node", unit: Unit::Bytes, growth: Growth::Log2 };
    let time = Quantity { title: "", unit: Unit::Seconds, growth: Growth::Log };
    let title = format!("Times of the {} by node size, {}", tree.name(), drive.target);
    let panels = vec![panel(&title, "Seconds", node, time, &curves)];
    let kind = match tree {
        Tree::BPlus => "b-plus",
        Tree::BEpsilon => "b-epsilon",
        Tree::BerkeleyDb => "berkeley-db",
    };
    let place = drive.target.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let caption = "Dashed in the same colour: predicted by the affine model with the drive's own costs.";
    Figure { id: format!("{kind}-{place}").into(), title, caption: caption.into(), legend, panels }
}
