//! Nonlinear least squares over logarithms of constants, by Levenberg-Marquardt from many starts.

use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::storage::Owned;
use nalgebra::{DMatrix, DVector, Dyn};
use rand::RngExt;
use rand_pcg::Pcg64;

/// A function to fit: residuals and their derivatives by the unknowns, which are logarithms of positive
/// constants.
pub(super) trait Residuals {
    fn unknowns(&self) -> usize;
    fn residuals(&self) -> usize;
    /// The residual of a row; writes its derivatives into `gradient`, which comes zeroed.
    fn residual(&self, row: usize, unknowns: &[f64], gradient: &mut [f64]) -> f64;
}

/// Unknowns beyond this make their constant zero or all that counts; there the search stops following them.
const BOUND: f64 = 40.0;

/// How strongly every unknown is drawn towards 0, so that constants without influence stay put. An unknown at
/// 20 costs as much as a relative error of 0.2 %.
const PULL: f64 = 1e-4;

/// Starting points are drawn from ± this.
const START_SPREAD: f64 = 5.0;

/// A local optimum.
#[derive(Clone, Debug)]
pub(super) struct Optimum {
    /// Half the sum of squared residuals.
    pub(super) error: f64,
    pub(super) unknowns: Vec<f64>,
}

/// Optima reached from `starts` random starting points, best first.
pub(super) fn optima(residuals: &dyn Residuals, starts: usize, rng: &mut Pcg64) -> Vec<Optimum> {
    let mut found: Vec<Optimum> = (0..starts)
        .filter_map(|_| {
            let start =
                (0..residuals.unknowns()).map(|_| rng.random_range(-START_SPREAD..START_SPREAD)).collect();
            optimum(residuals, start)
        })
        .collect();
    found.sort_by(|a, b| a.error.total_cmp(&b.error));
    found
}

/// The optimum reached from a starting point; `None` if the search leaves the numbers.
pub(super) fn optimum(residuals: &dyn Residuals, start: Vec<f64>) -> Option<Optimum> {
    let problem = Problem { residuals, unknowns: DVector::from_vec(start) };
    let (problem, report) = LevenbergMarquardt::new().with_tol(1e-10).with_patience(30).minimize(problem);
    let unknowns: Vec<f64> = problem.unknowns.iter().map(|unknown| unknown.clamp(-BOUND, BOUND)).collect();
    let valid = report.objective_function.is_finite() && unknowns.iter().all(|unknown| unknown.is_finite());
    valid.then_some(Optimum { error: report.objective_function, unknowns })
}

struct Problem<'a> {
    residuals: &'a dyn Residuals,
    unknowns: DVector<f64>,
}

impl Problem<'_> {
    fn clamped(&self) -> Vec<f64> {
        self.unknowns.iter().map(|unknown| unknown.clamp(-BOUND, BOUND)).collect()
    }
}

impl LeastSquaresProblem<f64, Dyn, Dyn> for Problem<'_> {
    type ParameterStorage = Owned<f64, Dyn>;
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, Dyn>;

    fn set_params(&mut self, unknowns: &DVector<f64>) {
        self.unknowns.copy_from(unknowns);
    }

    fn params(&self) -> DVector<f64> {
        self.unknowns.clone()
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        let unknowns = self.clamped();
        let mut gradient = vec![0.0; unknowns.len()];
        let rows = self.residuals.residuals();
        Some(DVector::from_fn(rows + unknowns.len(), |row, _| match row.checked_sub(rows) {
            None => self.residuals.residual(row, &unknowns, &mut gradient),
            Some(pulled) => PULL * self.unknowns.get(pulled).copied().unwrap_or(0.0),
        }))
    }

    fn jacobian(&self) -> Option<DMatrix<f64>> {
        let unknowns = self.clamped();
        let rows = self.residuals.residuals();
        let mut jacobian = DMatrix::zeros(rows + unknowns.len(), unknowns.len());
        let mut gradient = vec![0.0; unknowns.len()];
        for row in 0..rows {
            gradient.fill(0.0);
            self.residuals.residual(row, &unknowns, &mut gradient);
            for (cell, derivative) in jacobian.row_mut(row).iter_mut().zip(&gradient) {
                *cell = *derivative;
            }
        }
        for pulled in 0..unknowns.len() {
            if let Some(cell) = jacobian.get_mut((rows + pulled, pulled)) {
                *cell = PULL;
            }
        }
        Some(jacobian)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::generator;

    /// ln(a + b x) at x = 0, 1, 2, 4 for a = 2, b = 3.
    struct Line;

    impl Residuals for Line {
        fn unknowns(&self) -> usize {
            2
        }
        fn residuals(&self) -> usize {
            4
        }
        fn residual(&self, row: usize, unknowns: &[f64], gradient: &mut [f64]) -> f64 {
            let x = [0.0, 1.0, 2.0, 4.0][row];
            let (a, b) = (unknowns[0].exp(), unknowns[1].exp());
            gradient[0] = a / (a + b * x);
            gradient[1] = b * x / (a + b * x);
            (a + b * x).ln() - (2.0f64 + 3.0 * x).ln()
        }
    }

    #[test]
    fn finds_the_constants_from_random_starts() {
        let optima = optima(&Line, 5, &mut generator(1));
        let best = &optima[0].unknowns;
        assert!((best[0].exp() - 2.0).abs() < 1e-3 && (best[1].exp() - 3.0).abs() < 1e-3, "{best:?}");
        assert!(optima.windows(2).all(|pair| pair[0].error <= pair[1].error));
    }

    #[test]
    fn the_jacobian_matches_the_residuals() {
        let mut problem = Problem { residuals: &Line, unknowns: DVector::from_vec(vec![0.3, -0.7]) };
        let numeric = levenberg_marquardt::differentiate_numerically(&mut problem).unwrap();
        assert!((numeric - problem.jacobian().unwrap()).abs().max() < 1e-6);
    }
}
