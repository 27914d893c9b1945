//! Ranks the models by how well they describe the drive.
//!
//! The models nest: MQSSD can imitate the affine model, PDAM contains DAM. On a drive that *is* affine,
//! MQSSD's held-out error is therefore about the same, a little more or less by chance. So the simplest model
//! wins whose held-out error is not clearly above the lowest: more constants have to buy a tenth of the
//! error, with 95 % confidence.

use crate::ModelName;
use crate::bootstrap::{draw, generator};
use crate::statistics::{mean, percentile};

/// A model with its errors, |ln(predicted / measured)|, on points that are the same for all models.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) name: ModelName,
    pub(super) constants: usize,
    pub(super) errors: Vec<f64>,
}

impl Contender {
    fn error(&self) -> f64 {
        mean(self.errors.iter().copied()).unwrap_or(f64::INFINITY)
    }

    /// The typical relative error, as people read it.
    fn percent(&self) -> String {
        format!("{:.1} %", 100.0 * self.error().exp_m1())
    }
}

/// Models best first, and why the first is first.
pub(super) fn rank(mut contenders: Vec<Contender>, resamples: u32, seed: u64) -> (Vec<ModelName>, String) {
    contenders.sort_by(|a, b| a.error().total_cmp(&b.error()));
    let Some(lowest) = contenders.first().cloned() else {
        return (Vec::new(), "no model could be fitted to the training points".into());
    };
    let points = lowest.errors.len();
    if points < FEWEST_POINTS {
        let names = contenders.iter().map(|contender| contender.name).collect();
        let reason = format!(
            "held-out points that every model predicts: {points}; fewer than {FEWEST_POINTS} tell nothing from chance, so the \
             order is only that of the mean error"
        );
        return (names, reason);
    }
    // Sorted by error first: of equally simple models the better one comes first.
    let mut by_simplicity: Vec<&Contender> = contenders.iter().collect();
    by_simplicity.sort_by_key(|contender| contender.constants);
    let winner = by_simplicity
        .into_iter()
        .find(|contender| !clearly_worse(contender, &lowest, resamples, seed))
        .cloned()
        .unwrap_or_else(|| lowest.clone());
    let others: Vec<&Contender> =
        contenders.iter().filter(|contender| contender.name != winner.name).collect();
    let reason = reason(&winner, &lowest, &others, points);
    let names = std::iter::once(winner.name).chain(others.iter().map(|contender| contender.name)).collect();
    (names, reason)
}

/// The simplest models first, where the errors of all are within the noise of the measurement.
pub(super) fn simplest_first(mut contenders: Vec<Contender>) -> (Vec<ModelName>, String) {
    contenders.sort_by(|a, b| a.constants.cmp(&b.constants).then(a.error().total_cmp(&b.error())));
    let names: Vec<ModelName> = contenders.iter().map(|contender| contender.name).collect();
    let reason = names.first().map_or_else(String::new, |simplest| {
        format!(
            "{simplest} is the simplest model; none is shown to be better: the errors of all are within the noise floor"
        )
    });
    (names, reason)
}

/// How much above the lowest error an error must be, relative to that, to be worth more constants.
const MARGIN: f64 = 0.1;

/// Errors below this are rounding: on data that every model describes exactly, none is better.
const ROUNDING: f64 = 1e-6;

/// Whether the mean error exceeds the lowest by more than the margin, with 95 % confidence (bootstrap of the
/// differences, point by point).
fn clearly_worse(contender: &Contender, lowest: &Contender, resamples: u32, seed: u64) -> bool {
    let differences: Vec<f64> = contender
        .errors
        .iter()
        .zip(&lowest.errors)
        .map(|(own, best)| own - (1.0 + MARGIN) * best - ROUNDING)
        .collect();
    let mut rng = generator(seed);
    let mut drawn = Vec::new();
    let mut means: Vec<f64> = (0..resamples.max(FEWEST_RESAMPLES))
        .filter_map(|_| {
            draw(&differences, &mut rng, &mut drawn);
            mean(drawn.iter().copied())
        })
        .collect();
    percentile(&mut means, 0.025).is_some_and(|low| low > 0.0)
}

const FEWEST_RESAMPLES: u32 = 1000;

/// Fewer points than this cannot show that one model is better than another.
const FEWEST_POINTS: usize = 3;

fn reason(winner: &Contender, lowest: &Contender, others: &[&Contender], points: usize) -> String {
    let errors: Vec<String> =
        others.iter().map(|contender| format!("{} {}", contender.name, contender.percent())).collect();
    let errors = if errors.is_empty() { String::new() } else { format!(" ({})", errors.join(", ")) };
    if winner.name == lowest.name {
        let simpler = others.iter().filter(|contender| contender.constants < winner.constants).count();
        let comparison = match simpler {
            0 => "and no other model is simpler",
            1 => "and the only simpler model is clearly above it",
            _ => "and every simpler model is clearly above it",
        };
        format!(
            "{} has the lowest mean error on {points} held-out points: {}{errors}, {comparison}",
            winner.name,
            winner.percent()
        )
    } else {
        format!(
            "{} is the simplest model ({} constants) whose mean error on {points} held-out points, {}, is not \
             clearly above the lowest, {} of {} ({} constants){errors}",
            winner.name,
            winner.constants,
            winner.percent(),
            lowest.percent(),
            lowest.name,
            lowest.constants
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contender(name: ModelName, constants: usize, error: f64, scatter: f64) -> Contender {
        let errors = (0..24).map(|i| error + scatter * (f64::from(i) * 2.4).sin()).collect();
        Contender { name, constants, errors }
    }

    #[test]
    fn the_simplest_is_first_where_all_errors_are_noise() {
        let all = vec![contender(ModelName::Mqssd, 10, 0.01, 0.0), contender(ModelName::Dam, 1, 0.04, 0.0)];
        let (names, reason) = simplest_first(all);
        assert_eq!(names, [ModelName::Dam, ModelName::Mqssd]);
        assert!(reason.contains("none is shown to be better"), "{reason}");
    }

    #[test]
    fn the_simplest_of_indistinguishable_models_wins() {
        let (names, reason) = rank(
            vec![
                contender(ModelName::Dam, 1, 0.80, 0.1),
                contender(ModelName::Affine, 2, 0.034, 0.02),
                Contender { errors: vec![0.03; 24], ..contender(ModelName::Mqssd, 10, 0.0, 0.0) },
            ],
            300,
            1,
        );
        assert_eq!(names, [ModelName::Affine, ModelName::Mqssd, ModelName::Dam]);
        assert!(
            reason.contains("affine is the simplest model (2 constants)") && reason.contains("24 held-out"),
            "{reason}"
        );
    }

    #[test]
    fn on_data_that_all_describe_exactly_the_simplest_is_first() {
        let (names, _) = rank(
            vec![contender(ModelName::Dam, 1, 3e-12, 1e-12), contender(ModelName::Mqssd, 10, 0.0, 0.0)],
            300,
            1,
        );
        assert_eq!(names, [ModelName::Dam, ModelName::Mqssd]);
    }

    #[test]
    fn a_clearly_lower_error_wins_however_many_constants_it_took() {
        let (names, reason) = rank(
            vec![contender(ModelName::Pdam, 2, 0.30, 0.05), contender(ModelName::Mqssd, 10, 0.05, 0.03)],
            300,
            1,
        );
        assert_eq!(names, [ModelName::Mqssd, ModelName::Pdam]);
        assert!(
            reason.starts_with("MQSSD has the lowest mean error on 24 held-out points: 5.1 %"),
            "{reason}"
        );
    }

    #[test]
    fn nothing_to_rank_is_said() {
        assert!(rank(Vec::new(), 300, 1).1.contains("no model"));
        let blind = Contender { name: ModelName::Dam, constants: 1, errors: Vec::new() };
        assert!(rank(vec![blind], 300, 1).1.contains("every model predicts: 0"));
        let lucky = Contender { name: ModelName::Mqssd, constants: 10, errors: vec![0.01] };
        let unlucky = Contender { name: ModelName::Dam, constants: 1, errors: vec![0.4] };
        let (names, reason) = rank(vec![unlucky, lucky], 300, 1);
        assert!(names == [ModelName::Mqssd, ModelName::Dam] && reason.contains("from chance"), "{reason}");
    }
}
