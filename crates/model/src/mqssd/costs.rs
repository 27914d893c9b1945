//! Setup and transfer costs of one kind of access over concurrency: the steps of the MQSSD fit.
//!
//! 1. At every k with enough workloads, a regression yields setup and transfer (MQSSD paper §4.2, Table 2).
//! 2. A rational function goes through the setups, another through the transfers; costs that their regression
//!    determined badly count less.

use std::collections::BTreeMap;

use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::MqssdCosts;
use super::curve::{CostAt, CostCurve, CurveQuality};
use crate::Error;
use crate::observation::Point;
use crate::regression::TwoCosts;
use crate::statistics::r_squared;

/// Fewer workloads at one k than this do not make a row.
pub(crate) const REGRESSION_WORKLOADS_MIN: usize = 3;

/// Seed of the search for curves through known costs; any finds the same curve.
const KNOWN_SEED: u64 = 1;

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
    /// Set by [`Costs::judge`].
    pub(super) setup_quality: Option<CurveQuality>,
    /// Set by [`Costs::judge`].
    pub(super) transfer_quality: Option<CurveQuality>,
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
    /// See [`super::Regression::r_squared`]; older files have none.
    #[serde(default)]
    pub(super) r_squared: Option<f64>,
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
        Some(Self { rows, setup, transfer, setup_quality: None, transfer_quality: None })
    }

    /// Curves through known costs.
    pub(super) fn from_known(
        page_bytes: f64,
        known: &[MqssdCosts],
        transfer_degree: usize,
    ) -> Result<Self, Error> {
        let pairs = |cost: fn(&MqssdCosts) -> f64, unit: f64| -> Vec<(f64, f64)> {
            known.iter().map(|costs| (costs.concurrency, cost(costs) / unit)).collect()
        };
        let setup = CostCurve::fit(&pairs(|costs| costs.setup_seconds, 1.0), 2, KNOWN_SEED)?;
        let transfers = pairs(|costs| costs.page_seconds, page_bytes);
        let transfer = CostCurve::fit(&transfers, transfer_degree, KNOWN_SEED)?;
        Ok(Self { rows: Vec::new(), setup, transfer, setup_quality: None, transfer_quality: None })
    }

    pub(super) fn refit(&self, points: &[Point]) -> Option<Self> {
        let rows = rows(points);
        if rows.len() < 2 {
            return None;
        }
        let setup = self.setup.refit(&setups(&rows))?;
        let transfer = self.transfer.refit(&transfers(&rows))?;
        Some(Self { rows, setup, transfer, setup_quality: None, transfer_quality: None })
    }

    /// How well the curves go through the rows, leaving rows out one by one.
    pub(super) fn judge(&mut self) {
        self.setup_quality = Some(self.setup.quality_weighted(&setups(&self.rows)));
        self.transfer_quality = Some(self.transfer.quality_weighted(&transfers(&self.rows)));
    }

    pub(super) fn seconds_per_byte(&self, random_accesses_per_byte: f64, concurrency: f64) -> f64 {
        self.setup.at(concurrency) * random_accesses_per_byte + self.transfer.at(concurrency)
    }
}

fn setups(rows: &[Row]) -> Vec<CostAt> {
    rows.iter()
        .map(|row| CostAt { concurrency: row.concurrency, cost: row.costs.setup, weight: row.setup_weight })
        .collect()
}

fn transfers(rows: &[Row]) -> Vec<CostAt> {
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
    if points.len() < REGRESSION_WORKLOADS_MIN {
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
    // The inverse of that, relative to the noise of one point. One more unit covers the misfit of a smooth
    // curve.
    let determinant = setup * transfer - both * both;
    let weight = |own: f64, other: f64| {
        let variance = other / determinant;
        if own > 0.0 && variance.is_finite() && variance >= 0.0 {
            (1.0 + variance).sqrt().recip()
        } else {
            0.0
        }
    };
    let fitted = |(accesses, cost): &(f64, f64)| (*cost, costs.seconds_per_byte(*accesses));
    Some(Row {
        concurrency,
        costs,
        r_squared: r_squared(&points.iter().map(fitted).collect::<Vec<_>>()),
        setup_weight: weight(setup, transfer),
        transfer_weight: weight(transfer, setup),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::generator;
    use crate::{Access, Workload};

    fn points(concurrencies: &[f64], sizes: &[f64]) -> Vec<Point> {
        let workloads = concurrencies
            .iter()
            .flat_map(|k| sizes.iter().map(|size| Workload::random(Access::Read, *size, *k)));
        workloads
            .map(|workload| Point {
                workload,
                seconds_per_byte: 80e-6 / workload.concurrency / workload.request_bytes + 1e-9,
            })
            .collect()
    }

    #[test]
    fn each_row_has_the_costs_at_its_concurrency() {
        let costs = Costs::fit(&points(&[1.0, 4.0], &[4e3, 64e3, 1e6]), 2, &mut generator(1)).unwrap();
        for (row, k) in costs.rows.iter().zip([1.0, 4.0]) {
            assert_eq!(row.concurrency, k);
            assert!((row.costs.setup * k / 80e-6 - 1.0).abs() < 1e-6, "{row:?}");
            assert!((row.costs.transfer / 1e-9 - 1.0).abs() < 1e-6, "{row:?}");
        }
    }

    #[test]
    fn rows_need_three_workloads_and_costs_two_rows() {
        let fit = |points: Vec<Point>| Costs::fit(&points, 2, &mut generator(1));
        assert!(fit(points(&[1.0, 4.0], &[4e3, 64e3])).is_none());
        assert!(fit(points(&[1.0], &[4e3, 64e3, 1e6])).is_none());
        let with_a_single = [points(&[1.0, 4.0], &[4e3, 64e3, 1e6]), points(&[3.0], &[4e3])].concat();
        assert_eq!(fit(with_a_single).unwrap().rows.len(), 2);
    }

    #[test]
    fn a_cost_that_hardly_shows_counts_less() {
        // At 64 concurrent accesses of 64 KB and more, the setup is 2 % of the cost at most.
        let shown = row_of(1.0, &[4e3, 64e3, 1e6]);
        let hidden = row_of(64.0, &[64e3, 256e3, 1e6]);
        assert!(shown.setup_weight > 0.5 && shown.transfer_weight > 0.5, "{shown:?}");
        assert!(hidden.setup_weight < 0.05 && hidden.transfer_weight > 0.5, "{hidden:?}");
    }

    fn row_of(k: f64, sizes: &[f64]) -> Row {
        rows(&points(&[k], sizes)).pop().unwrap()
    }
}
