//! Why a kind of workload, or a model in it, has no row in the comparison.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ComparedPoint, ComparisonRow, KINDS};
use crate::mqssd::REGRESSION_WORKLOADS_MIN;
use crate::{Access, ModelName, Workload};

/// A row that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithoutRow {
    /// Reads, writes, or (`None`) mixed.
    pub access: Option<Access>,
    /// The model that has no row; `None` where no model has one.
    pub model: Option<ModelName>,
    /// Why, in words.
    pub why: String,
}

/// All rows that are missing.
pub(super) fn without_row(points: &[ComparedPoint], rows: &[ComparisonRow]) -> Vec<WithoutRow> {
    KINDS.into_iter().flat_map(|access| of_kind(access, points, rows)).collect()
}

fn of_kind(access: Option<Access>, points: &[ComparedPoint], rows: &[ComparisonRow]) -> Vec<WithoutRow> {
    let own: Vec<&ComparedPoint> = points.iter().filter(|point| point.workload.access() == access).collect();
    let nothing = |why: String| vec![WithoutRow { access, model: None, why }];
    if own.is_empty() {
        return nothing("there are no samples of this kind".into());
    }
    if !own.iter().any(|point| point.held_out) {
        let workloads: BTreeSet<_> = own.iter().map(|point| point.workload.key()).collect();
        let needed = match access {
            Some(_) => {
                "a workload is held out only if it lies between others and enough remain to fit: at least 4 request \
                 sizes at one concurrency, or 5 concurrencies"
            }
            None => "at least 3 are needed to hold one out",
        };
        return nothing(format!("{} workloads of this kind were measured; {needed}", workloads.len()));
    }
    let is_there = |kind: &Access| points.iter().any(|point| point.workload.access() == Some(*kind));
    if access.is_none()
        && let Some(missing) = [Access::Read, Access::Write].into_iter().find(|kind| !is_there(kind))
    {
        return nothing(format!("{FROM_BOTH}, and there are no {}", plural(missing)));
    }
    let has_row = |name: &ModelName| rows.iter().any(|row| row.access == access && row.model == *name);
    ModelName::ALL
        .into_iter()
        .filter(|name| !has_row(name))
        .map(|name| WithoutRow { access, model: Some(name), why: why_not(name, access, points, &own) })
        .collect()
}

/// Why a model says nothing about the held-out points of a kind.
fn why_not(
    name: ModelName,
    access: Option<Access>,
    points: &[ComparedPoint],
    own: &[&ComparedPoint],
) -> String {
    if access.is_none() {
        return mixed_why_not(name, points);
    }
    let workloads = || own.iter().map(|point| point.workload);
    match name {
        ModelName::Affine if !differ(workloads()) => {
            "it needs workloads that differ in random accesses per byte, such as several request sizes".into()
        }
        ModelName::Mqssd => {
            let found = rows_of_enough(workloads());
            format!(
                "it needs at least 2 concurrencies with {REGRESSION_WORKLOADS_MIN} workloads each that differ in random \
                 accesses per byte, without those held out; {found} of the measured concurrencies have that number in all"
            )
        }
        _ => NOT_FITTED.into(),
    }
}

/// Mixed workloads are predicted from the costs of both kinds.
fn mixed_why_not(name: ModelName, points: &[ComparedPoint]) -> String {
    for access in [Access::Read, Access::Write] {
        let own: Vec<&ComparedPoint> =
            points.iter().filter(|point| point.workload.access() == Some(access)).collect();
        if !own.iter().any(|point| point.predicted(name).is_some()) {
            let why = why_not(name, Some(access), points, &own);
            return format!("{FROM_BOTH}, and {} do not give any: {why}", plural(access));
        }
    }
    NOT_FITTED.into()
}

const FROM_BOTH: &str = "they are predicted from the costs of reads and of writes";

const NOT_FITTED: &str = "the points that are not held out did not suffice to fit it";

fn plural(access: Access) -> &'static str {
    match access {
        Access::Read => "reads",
        Access::Write => "writes",
    }
}

fn differ(workloads: impl Iterator<Item = Workload>) -> bool {
    distinct(workloads).len() > 1
}

fn distinct(workloads: impl Iterator<Item = Workload>) -> BTreeSet<u64> {
    workloads.map(|workload| workload.random_accesses_per_byte().to_bits()).collect()
}

/// Concurrencies with enough workloads for a regression.
fn rows_of_enough(workloads: impl Iterator<Item = Workload>) -> usize {
    let mut by_concurrency: BTreeMap<u64, Vec<Workload>> = BTreeMap::new();
    for workload in workloads {
        by_concurrency.entry(workload.concurrency.to_bits()).or_default().push(workload);
    }
    by_concurrency
        .into_values()
        .filter(|row| distinct(row.iter().copied()).len() >= REGRESSION_WORKLOADS_MIN)
        .count()
}
