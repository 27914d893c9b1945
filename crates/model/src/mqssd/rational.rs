//! Positive rational functions without poles: the shape of the MQSSD's costs over concurrency (MQSSD paper
//! eqs. 5, 6).

use serde::{Deserialize, Serialize};

/// (c₀ + c₁k + …) / (1 + d₁k + …) with no negative constant, hence positive and without a pole at every k >
/// 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Rational {
    /// c₀, c₁, …
    pub(super) numerator: Vec<f64>,
    /// d₁, d₂, …; d₀ is 1, because numerator and denominator share a scale.
    pub(super) denominator: Vec<f64>,
}

impl Rational {
    pub(super) fn value(&self, k: f64) -> f64 {
        let horner = |constants: &[f64]| constants.iter().rev().fold(0.0, |sum, constant| sum * k + constant);
        horner(&self.numerator) / (1.0 + k * horner(&self.denominator))
    }

    pub(super) fn constants(&self) -> usize {
        self.numerator.len() + self.denominator.len()
    }
}

/// Degrees of numerator and denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Degrees {
    pub(super) numerator: usize,
    pub(super) denominator: usize,
}

impl Degrees {
    pub(super) fn constants(self) -> usize {
        self.numerator + 1 + self.denominator
    }

    /// The highest degrees up to `degree` over itself that `values` values of k support, then ever lower
    /// ones, down to a constant.
    ///
    /// Supported means fewer constants than values, so that something is left to judge the fit by. Three
    /// values or two get a single falling 1/(1 + d₁k), because they cannot tell where the fall ends.
    pub(super) fn ladder(degree: usize, values: usize) -> impl Iterator<Item = Self> {
        let equal = (1..=degree).rev().map(|degree| Self { numerator: degree, denominator: degree });
        let falling = Self { numerator: 0, denominator: 1 };
        let constant = Self { numerator: 0, denominator: 0 };
        equal
            .filter(move |degrees| degrees.constants() < values)
            .chain((degree > 0 && values >= 2).then_some(falling))
            .chain([constant])
    }
}

/// A rational function in the form that is searched: logarithms of the constants of k / `scale`.
///
/// Any unknowns give positive constants, so that the search needs no bounds; and scaled to the middle of the
/// measured k they are of like size.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogForm {
    pub(super) degrees: Degrees,
    pub(super) scale: f64,
}

impl LogForm {
    /// ln of the value at k; adds the derivatives by the unknowns, times `factor`, to `gradient`.
    pub(super) fn ln_value(&self, k: f64, unknowns: &[f64], factor: f64, gradient: &mut [f64]) -> f64 {
        let ln_k = (k / self.scale).ln();
        let (numerator, denominator) = unknowns.split_at((self.degrees.numerator + 1).min(unknowns.len()));
        let term = |unknown: &f64, power: usize| (unknown + power as f64 * ln_k).exp();
        let above: f64 = numerator.iter().enumerate().map(|(power, unknown)| term(unknown, power)).sum();
        let below: f64 =
            1.0 + denominator.iter().enumerate().map(|(i, unknown)| term(unknown, i + 1)).sum::<f64>();
        let (upper, lower) = gradient.split_at_mut(numerator.len().min(gradient.len()));
        for (power, (slot, unknown)) in upper.iter_mut().zip(numerator).enumerate() {
            *slot += factor * term(unknown, power) / above;
        }
        for (i, (slot, unknown)) in lower.iter_mut().zip(denominator).enumerate() {
            *slot -= factor * term(unknown, i + 1) / below;
        }
        above.ln() - below.ln()
    }

    /// The function itself, its values multiplied by `unit`.
    pub(super) fn rational(&self, unknowns: &[f64], unit: f64) -> Rational {
        let (numerator, denominator) = unknowns.split_at((self.degrees.numerator + 1).min(unknowns.len()));
        let constant = |power: usize, unknown: &f64| unknown.exp() / self.scale.powi(power as i32);
        Rational {
            numerator: numerator.iter().enumerate().map(|(power, u)| unit * constant(power, u)).collect(),
            denominator: denominator.iter().enumerate().map(|(i, u)| constant(i + 1, u)).collect(),
        }
    }

    /// The unknowns of a function: the inverse of [`LogForm::rational`].
    pub(super) fn unknowns(&self, rational: &Rational, unit: f64) -> Vec<f64> {
        let unknown =
            |constant: f64, power: usize| (constant * self.scale.powi(power as i32)).max(1e-30).ln();
        let numerator = rational.numerator.iter().enumerate().map(|(power, c)| unknown(c / unit, power));
        let denominator = rational.denominator.iter().enumerate().map(|(i, d)| unknown(*d, i + 1));
        numerator.chain(denominator).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_the_formula() {
        let rational = Rational { numerator: vec![1.0, 2.0, 3.0], denominator: vec![0.5, 0.25] };
        assert_eq!(rational.value(2.0), (1.0 + 4.0 + 12.0) / (1.0 + 1.0 + 1.0));
        assert_eq!(Rational { numerator: vec![7.0], denominator: vec![] }.value(9.0), 7.0);
    }

    #[test]
    fn log_form_and_function_agree() {
        let form = LogForm { degrees: Degrees { numerator: 2, denominator: 2 }, scale: 11.3 };
        let unknowns = [0.1, -2.0, 1.5, -0.3, 0.7];
        let rational = form.rational(&unknowns, 3.0);
        for k in [1.0, 5.0, 128.0] {
            let mut gradient = [0.0; 5];
            let ln_value = form.ln_value(k, &unknowns, 1.0, &mut gradient);
            assert!((ln_value.exp() * 3.0 / rational.value(k) - 1.0).abs() < 1e-12);
            for (i, derivative) in gradient.iter().enumerate() {
                let mut moved = unknowns;
                moved[i] += 1e-6;
                let numeric = (form.ln_value(k, &moved, 1.0, &mut [0.0; 5]) - ln_value) / 1e-6;
                assert!((numeric - derivative).abs() < 1e-5, "k {k}, unknown {i}: {numeric} {derivative}");
            }
        }
        for (back, unknown) in form.unknowns(&rational, 3.0).iter().zip(unknowns) {
            assert!((back - unknown).abs() < 1e-12);
        }
    }

    #[test]
    fn degrees_follow_what_the_number_of_ks_supports() {
        let highest =
            |degree, values| Degrees::ladder(degree, values).next().map(|d| (d.numerator, d.denominator));
        assert_eq!(highest(3, 8), Some((3, 3)));
        assert_eq!(highest(3, 7), Some((2, 2)));
        assert_eq!(highest(2, 8), Some((2, 2)));
        assert_eq!(highest(2, 5), Some((1, 1)));
        assert_eq!(highest(2, 3), Some((0, 1)));
        assert_eq!(highest(2, 1), Some((0, 0)));
        assert_eq!(Degrees::ladder(3, 8).count(), 5);
    }
}
