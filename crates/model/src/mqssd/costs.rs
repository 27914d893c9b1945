//! Setup and transfer costs of one kind of access over concurrency: the steps of the MQSSD fit.
//!
//! 1. At every k with enough workloads, a regression yields setup and transfer (MQSSD paper §4.2, Table 2).
//! 2. A rational function goes through the setups, another through the transfers; costs that their regression determined
//!    badly count less.

use std::collections::BTreeMap;

use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::curve::{CostAt, CostCurve};
use crate::observation::Point;
use crate::regression::TwoCosts;

/// Fewer workloads at one k than this do not make a row.
const FEWEST_WORKLOADS: usize = 3;

/// Costs of one kind of access.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Costs {
    /// Regressions at single k, ascending.
    pub(super) rows: Vec<Row>,
    /// Seconds per random access.
    #[serde(rename = "setup_seconds")]
    pub(super) setup: CostCurve,
    /// Seconds per byte.
    #[serde(rename = "transfer_seconds_per_byte")]
    pub(super) transfer: CostCurve,
}

/// The regression at one k.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) concurrency: f64,
    pub(super) costs: TwoCosts,
    /// How much the relative error of the setup counts in its curve.
    pub(super) setup_weight: f64,
    /// How much that of the transfer counts.
    pub(super) transfer_weight: f64,
}

impl Costs {
    /// `None` if fewer than two k have enough workloads that differ in random accesses per byte.
    pub(super) fn fit(points: &[Point], transfer_degree: usize, rng: &mut Pcg64) -> Option<Self> {
        let rows = rows(points);
        if rows.len() < 2 {
            return None;
        }
        let setup = CostCurve::fit_weighted(&setups(&rows), 2, rng)?;
        let transfer = CostCurve::fit_weighted(&transfers(&rows), transfer_degree, rng)?;
        Some(Self { rows, setup, transfer })
    }

    pub(super) fn refit(&self, points: &[Point]) -> Option<Self> {
        let rows = rows(points);
        if rows.len() < 2 {
            return None;
        }
        let setup = self.setup.refit(&setups(&rows))?;
        let transfer = self.transfer.refit(&transfers(&rows))?;
        Some(Self { rows, setup, transfer })
    }

    pub(super) fn seconds_per_byte(&self, random_accesses_per_byte: f64, concurrency: f64) -> f64 {
        self.setup.at(concurrency) * random_accesses_per_byte + self.transfer.at(concurrency)
    }
}

pub(super) fn setups(rows: &[Row]) -> Vec<CostAt> {
    rows.iter()
        .map(|row| CostAt { concurrency: row.concurrency, cost: row.costs.setup, weight: row.setup_weight })
        .collect()
}

pub(super) fn transfers(rows: &[Row]) -> Vec<CostAt> {
    rows.iter()
        .map(|row| CostAt {
            concurrency: row.concurrency,
            cost: row.costs.transfer,
            weight: row.transfer_weight,
        })
        .collect()
}

fn rows(points: &[Point]) -> Vec<Row> {
    let mut by_concurrency: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for point in points {
        by_concurrency
            .entry(point.workload.concurrency.to_bits())
            .or_default()
            .push((point.workload.random_accesses_per_byte(), point.seconds_per_byte));
    }
    by_concurrency
        .into_iter()
        .filter_map(|(concurrency, points)| row(f64::from_bits(concurrency), &points))
        .collect()
}

fn row(concurrency: f64, points: &[(f64, f64)]) -> Option<Row> {
    if points.len() < FEWEST_WORKLOADS {
        return None;
    }
    let costs = TwoCosts::fit(points)?;
    // Information about the logarithms of setup and transfer: products of their shares in each prediction.
    let (mut setup, mut both, mut transfer) = (0.0, 0.0, 0.0);
    for (accesses, _) in points {
        let share = costs.setup * accesses / costs.seconds_per_byte(*accesses);
        setup += share * share;
        both += share * (1.0 - share);
        transfer += (1.0 - share) * (1.0 - share);
    }
    // The inverse of that, relative to the noise of one point. One more unit for what a smooth curve misses.
    let determinant = setup * transfer - both * both;
    let weight = |own: f64, other: f64| {
        let variance = other / determinant;
        if own > 0.0 && variance.is_finite() && variance >= 0.0 {
            (1.0 + variance).sqrt().recip()
        } else {
            0.0
        }
    };
    Some(Row {
        concurrency,
        costs,
        setup_weight: weight(setup, transfer),
        transfer_weight: weight(transfer, setup),
    })
}
