//! A cost as a function of concurrency: t(k), α(k), s(k) or β(k), fitted to the costs measured at some k.

use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::rational::{Degrees, LogForm, Rational};
use super::search::{Optimum, Residuals, optima, optimum};
use crate::Error;
use crate::bootstrap::generator;
use crate::statistics::{adjusted_r_squared, mean, median, r_squared};

/// A positive rational function of k between the smallest and the largest k measured (MQSSD paper eqs. 5 and
/// 6).
///
/// No constant of it is negative, so it is positive and has no pole at any k > 0. Between neighbouring k it
/// stays within the larger and the smaller of the costs there, with a small slack: no spikes. Outside of the
/// measured k it keeps the value at the nearest of them: nothing was seen there, and costs neither vanish nor
/// explode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostCurve {
    function: Rational,
    concurrency_min: f64,
    concurrency_max: f64,
}

/// How well a curve fits the costs that it was fitted to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurveQuality {
    /// R² of the costs. `None` if they do not vary.
    pub r_squared: Option<f64>,
    /// Adjusted for the number of constants; `None` with too few k.
    pub adjusted_r_squared: Option<f64>,
    /// Worst |curve - cost| / cost.
    pub worst_relative_error: f64,
    /// Median of |curve - cost| / cost at each k, for the curve fitted to the other k; `None` with too few k.
    /// At the smallest and largest k that is an extrapolation.
    pub leave_one_out_median: Option<f64>,
    /// Worst of these.
    pub leave_one_out_worst: Option<f64>,
}

/// A cost at one k.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CostAt {
    pub(super) concurrency: f64,
    pub(super) cost: f64,
    /// How much its relative error counts.
    pub(super) weight: f64,
}

const STARTS: usize = 48;
const LEAVE_ONE_OUT_STARTS: usize = 8;

/// How far a curve may leave the envelope of the neighbouring costs.
const ENVELOPE_SLACK: f64 = 0.02;
/// Places between neighbouring k where that is checked.
const ENVELOPE_STEPS: u32 = 16;

impl CostCurve {
    /// Fits a curve of at most `degree` over `degree` to (k, cost) pairs, minimising relative errors.
    ///
    /// The degree is lowered if there are too few k for its constants, or if the best curve would leave the
    /// envelope of neighbouring costs.
    ///
    /// # Errors
    /// [`Error::Samples`] if there are no pairs or some are not positive.
    pub fn fit(costs: &[(f64, f64)], degree: usize, seed: u64) -> Result<Self, Error> {
        Self::fit_weighted(&checked(costs)?, degree, &mut generator(seed))
            .ok_or_else(|| Error::Samples("a cost curve needs costs of at least one concurrency".into()))
    }

    /// How well [`CostCurve::fit`] of these pairs fits them, with the leave-one-out error.
    ///
    /// # Errors
    /// As [`CostCurve::fit`].
    pub fn quality(&self, costs: &[(f64, f64)]) -> Result<CurveQuality, Error> {
        let costs = checked(costs)?;
        Ok(self.quality_weighted(&costs))
    }

    /// The cost at a concurrency.
    pub fn at(&self, concurrency: f64) -> f64 {
        // Not `clamp`, which panics where a file has the ends the wrong way round.
        self.function.value(concurrency.max(self.concurrency_min).min(self.concurrency_max))
    }

    /// c₀, c₁, … and d₀ = 1, d₁, … of the numerator and the denominator.
    pub fn constants(&self) -> (Vec<f64>, Vec<f64>) {
        let denominator = std::iter::once(1.0).chain(self.function.denominator.iter().copied()).collect();
        (self.function.numerator.clone(), denominator)
    }

    /// Number of fitted constants.
    pub fn constant_count(&self) -> usize {
        self.function.constants()
    }

    /// `costs` ascending by concurrency, one each.
    pub(super) fn fit_weighted(costs: &[CostAt], degree: usize, rng: &mut Pcg64) -> Option<Self> {
        Degrees::ladder(degree, costs.len()).find_map(|degrees| {
            let problem = CurveProblem::new(costs, degrees)?;
            optima(&problem, STARTS, rng)
                .iter()
                .map(|optimum| problem.curve(optimum))
                .find(|curve| curve.stays_within(costs))
        })
    }

    /// Fits the same function to changed costs, starting from this curve: no search among distant optima.
    pub(super) fn refit(&self, costs: &[CostAt]) -> Option<Self> {
        let degrees = Degrees {
            numerator: self.function.numerator.len().checked_sub(1)?,
            denominator: self.function.denominator.len(),
        };
        let problem = CurveProblem::new(costs, degrees)?;
        let start = problem.form.unknowns(&self.function, problem.unit);
        Some(problem.curve(&optimum(&problem, start)?))
    }

    pub(super) fn quality_weighted(&self, costs: &[CostAt]) -> CurveQuality {
        let error =
            |curve: &Self, cost: &CostAt| (curve.function.value(cost.concurrency) / cost.cost - 1.0).abs();
        let pairs: Vec<(f64, f64)> =
            costs.iter().map(|cost| (cost.cost, self.at(cost.concurrency))).collect();
        let r_squared = r_squared(&pairs);
        let mut left_out: Vec<f64> = (0..costs.len())
            .filter_map(|index| {
                let (before, rest) = costs.split_at_checked(index)?;
                let (left_out, after) = rest.split_first()?;
                Some(error(&self.refit_from_several(&[before, after].concat())?, left_out))
            })
            .collect();
        CurveQuality {
            r_squared,
            adjusted_r_squared: r_squared
                .and_then(|r_squared| adjusted_r_squared(r_squared, costs.len(), self.constant_count())),
            worst_relative_error: costs.iter().map(|cost| error(self, cost)).fold(0.0, f64::max),
            leave_one_out_median: median(&mut left_out),
            leave_one_out_worst: left_out.last().copied(),
        }
    }

    /// The best function of the same degrees for other costs, from this one and a few random starting points.
    fn refit_from_several(&self, costs: &[CostAt]) -> Option<Self> {
        if costs.is_empty() {
            return None;
        }
        let degrees = Degrees {
            numerator: self.function.numerator.len().checked_sub(1)?,
            denominator: self.function.denominator.len(),
        };
        let problem = CurveProblem::new(costs, degrees)?;
        let mut found = optima(&problem, LEAVE_ONE_OUT_STARTS, &mut generator(0));
        found.extend(optimum(&problem, problem.form.unknowns(&self.function, problem.unit)));
        found.iter().min_by(|a, b| a.error.total_cmp(&b.error)).map(|optimum| problem.curve(optimum))
    }

    /// Whether the curve stays between the costs of neighbouring k, measured or its own.
    fn stays_within(&self, costs: &[CostAt]) -> bool {
        costs.windows(2).all(|pair| {
            let [left, right] = pair else { return true };
            let ends = [left.cost, right.cost, self.at(left.concurrency), self.at(right.concurrency)];
            let low = ends.into_iter().fold(f64::INFINITY, f64::min) * (1.0 - ENVELOPE_SLACK);
            let high = ends.into_iter().fold(0.0, f64::max) * (1.0 + ENVELOPE_SLACK);
            let ratio = right.concurrency / left.concurrency;
            (1..ENVELOPE_STEPS).all(|step| {
                let k = left.concurrency * ratio.powf(f64::from(step) / f64::from(ENVELOPE_STEPS));
                (low..=high).contains(&self.at(k))
            })
        })
    }
}

fn checked(costs: &[(f64, f64)]) -> Result<Vec<CostAt>, Error> {
    let mut checked: Vec<CostAt> =
        costs.iter().map(|&(concurrency, cost)| CostAt { concurrency, cost, weight: 1.0 }).collect();
    checked.sort_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
    let positive = |number: f64| number.is_normal() && number > 0.0;
    if let Some(bad) = checked.iter().find(|cost| !(positive(cost.concurrency) && positive(cost.cost))) {
        return Err(Error::Samples(format!(
            "the cost {} at concurrency {}: both must be positive",
            bad.cost, bad.concurrency
        )));
    }
    Ok(checked)
}

/// Weighted ln(curve / cost) at each k.
struct CurveProblem<'a> {
    costs: &'a [CostAt],
    form: LogForm,
    /// Geometric mean of the costs: the unit of the searched function.
    unit: f64,
}

impl<'a> CurveProblem<'a> {
    fn new(costs: &'a [CostAt], degrees: Degrees) -> Option<Self> {
        let unit = mean(costs.iter().map(|cost| cost.cost.ln()))?.exp();
        let scale = mean(costs.iter().map(|cost| cost.concurrency.ln()))?.exp();
        Some(Self { costs, form: LogForm { degrees, scale }, unit })
    }

    fn curve(&self, optimum: &Optimum) -> CostCurve {
        let concurrencies = self.costs.iter().map(|cost| cost.concurrency);
        CostCurve {
            function: self.form.rational(&optimum.unknowns, self.unit),
            concurrency_min: concurrencies.clone().fold(f64::INFINITY, f64::min),
            concurrency_max: concurrencies.fold(0.0, f64::max),
        }
    }
}

impl Residuals for CurveProblem<'_> {
    fn unknowns(&self) -> usize {
        self.form.degrees.constants()
    }

    fn residuals(&self) -> usize {
        self.costs.len()
    }

    fn residual(&self, row: usize, unknowns: &[f64], gradient: &mut [f64]) -> f64 {
        let Some(cost) = self.costs.get(row) else { return 0.0 };
        let ln_curve = self.form.ln_value(cost.concurrency, unknowns, cost.weight, gradient);
        cost.weight * (ln_curve - (cost.cost / self.unit).ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// β(k) of the MQSSD paper's Table 2: the one that rises once.
    const BETA: [(f64, f64); 8] = [
        (1.0, 2.79),
        (2.0, 3.01),
        (4.0, 2.59),
        (8.0, 1.93),
        (16.0, 1.27),
        (32.0, 0.891),
        (64.0, 0.745),
        (128.0, 0.697),
    ];

    #[test]
    fn between_neighbours_a_curve_stays_between_their_costs() {
        let costs = checked(&BETA).unwrap();
        let curve = CostCurve::fit(&BETA, 3, 1).unwrap();
        assert!(curve.stays_within(&costs));
        let bump = CostCurve {
            // (1 + 40k) / (1 + 10k²): lower at 0.01 and at 10 than between.
            function: Rational { numerator: vec![1.0, 40.0], denominator: vec![0.0, 10.0] },
            concurrency_min: 0.01,
            concurrency_max: 10.0,
        };
        let ends = checked(&[(0.01, 1.0), (10.0, 0.4)]).unwrap();
        assert!(!bump.stays_within(&ends));
    }

    #[test]
    fn too_few_concurrencies_lower_the_degree() {
        let constants = |count: usize| CostCurve::fit(&BETA[..count], 3, 1).unwrap().constant_count();
        assert_eq!([1, 2, 3, 4, 6].map(constants), [1, 2, 2, 3, 5]);
    }

    #[test]
    fn two_concurrencies_are_met_exactly() {
        let curve = CostCurve::fit(&[(1.0, 50.0), (8.0, 10.0)], 2, 1).unwrap();
        assert!(
            (curve.at(1.0) / 50.0 - 1.0).abs() < 1e-3 && (curve.at(8.0) / 10.0 - 1.0).abs() < 1e-3,
            "{curve:?}"
        );
        assert!(curve.at(1000.0) == curve.at(8.0) && curve.at(0.1) == curve.at(1.0));
    }

    #[test]
    fn costs_with_little_weight_do_not_bend_the_curve() {
        let mut costs = checked(&BETA).unwrap();
        let straight = CostCurve::fit(&BETA, 3, 1).unwrap();
        costs[4] = CostAt { cost: costs[4].cost / 50.0, weight: 1e-3, ..costs[4] };
        let curve = CostCurve::fit_weighted(&costs, 3, &mut generator(1)).unwrap();
        assert!(
            (curve.at(16.0) / straight.at(16.0) - 1.0).abs() < 0.05,
            "{} {}",
            curve.at(16.0),
            straight.at(16.0)
        );
    }

    #[test]
    fn refitting_follows_changed_costs() {
        let curve = CostCurve::fit(&BETA, 3, 1).unwrap();
        let dearer: Vec<(f64, f64)> = BETA.iter().map(|(k, cost)| (*k, 1.2 * cost)).collect();
        let refitted = curve.refit(&checked(&dearer).unwrap()).unwrap();
        for (k, _) in BETA {
            assert!((refitted.at(k) / curve.at(k) - 1.2).abs() < 1e-3, "k {k}");
        }
    }

    #[test]
    fn costs_that_are_not_positive_are_refused() {
        assert!(CostCurve::fit(&[], 2, 1).is_err());
        assert!(CostCurve::fit(&[(1.0, 0.0)], 2, 1).is_err());
        assert!(CostCurve::fit(&[(1.0, 1.0), (2.0, f64::NAN)], 2, 1).is_err());
    }
}
