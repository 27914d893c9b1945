//! Charts.

use flashgrain_report::page::{Figure, Growth, Unit};

use super::question::Question;
use super::{Found, Layout, MqssdResult, paper};
use crate::study::chart::{Curve, Quantity, legend, panel};

const SECONDS: Quantity = Quantity { title: "", unit: Unit::Seconds, growth: Growth::Log };
const DASHED: &str = "Dashed: the paper's RocksDB.";
const PREDICTED: &str = "Dashed: predicted with the drive's own costs.";

/// Figures over concurrency, and over fanout, with the paper's and the model's times.
pub(super) fn all(result: &MqssdResult, question: Question, id: &str) -> Vec<Figure> {
    let papers = |found: &Found| {
        let column = (question.papers)(found.layout);
        paper::CONCURRENCY.iter().filter_map(|k| Some((*k, paper::at(column.as_ref()?, *k)?))).collect()
    };
    let predicted = |found: &Found| (question.predicted)(result, found);
    vec![
        over_concurrency(result, question, id),
        over_fanout(result, question, &format!("{id}-by-fanout"), (DASHED, &papers)),
        over_fanout(result, question, &format!("{id}-predicted"), (PREDICTED, &predicted)),
    ]
}

/// Seconds by concurrency, a curve for each layout.
fn over_concurrency(result: &MqssdResult, question: Question, id: &str) -> Figure {
    let mut curves = Vec::new();
    for (number, found) in result.layouts.iter().enumerate() {
        let ours = (question.ours)(result, found);
        let label = found.layout.name();
        let curve = |is_paper, points: Vec<(u32, f64)>| Curve {
            number,
            label: label.clone(),
            is_paper,
            points: points.into_iter().map(|(k, seconds)| (f64::from(k), seconds)).collect(),
        };
        let column = (question.papers)(found.layout);
        let papers = ours.iter().filter_map(|(k, _)| Some((*k, paper::at(column.as_ref()?, *k)?)));
        curves.push(curve(true, papers.collect()));
        curves.push(curve(false, ours));
    }
    let clients = Quantity { title: question.concurrent, unit: Unit::Count, growth: Growth::Log2 };
    let title = format!("Time of {} by concurrency", question.name);
    let panels = vec![panel(&title, "Seconds", clients, SECONDS, &curves)];
    Figure {
        id: format!("{id}-by-concurrency").into(),
        title,
        caption: DASHED.into(),
        legend: legend(&curves),
        panels,
    }
}

/// Seconds by concurrency of a layout.
type Times<'a> = &'a dyn Fn(&Found) -> Vec<(u32, f64)>;

/// Seconds by fanout, a curve for each concurrency, with others dashed: Figure 5.
fn over_fanout(
    result: &MqssdResult,
    question: Question,
    id: &str,
    (caption, dashed): (&'static str, Times<'_>),
) -> Figure {
    let leveled = || {
        result.layouts.iter().filter_map(|found| match found.layout {
            Layout::Leveled { fanout } => Some((f64::from(fanout), found)),
            _ => None,
        })
    };
    let mut of_k: Vec<u32> =
        leveled().flat_map(|(_, found)| (question.ours)(result, found)).map(|(k, _)| k).collect();
    of_k.sort_unstable();
    of_k.dedup();
    let mut curves = Vec::new();
    for (number, k) in of_k.into_iter().enumerate() {
        let curve = |is_paper, points| Curve {
            number,
            label: format!("{k} {}", question.concurrent),
            is_paper,
            points,
        };
        let of = |times: Times<'_>| -> Vec<(f64, f64)> {
            let at = |all: Vec<(u32, f64)>| all.into_iter().find(|(own, _)| *own == k);
            leveled().filter_map(|(fanout, found)| Some((fanout, at(times(found))?.1))).collect()
        };
        curves.push(curve(true, of(dashed)));
        curves.push(curve(false, of(&|found| (question.ours)(result, found))));
    }
    let fanout = Quantity { title: "fanout", unit: Unit::Count, growth: Growth::Log2 };
    let title = format!("Time of {} by fanout", question.name);
    let panels = vec![panel(&title, "Seconds", fanout, SECONDS, &curves)];
    Figure { id: id.to_owned().into(), title, caption: caption.into(), legend: legend(&curves), panels }
}
