//! The rounds' results: their median, and how far they scatter.

use serde::Serialize;

/// Results of the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Scatter {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// One of each round, in the order of rounds.
    pub rounds: Vec<f64>,
}

impl Scatter {
    /// Of at least one result.
    pub fn of(rounds: Vec<f64>) -> Self {
        assert!(!rounds.is_empty(), "there is at least one round");
        let mut sorted = rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
            _ => sorted[middle],
        };
        Self { median, min: sorted[0], max: sorted[sorted.len() - 1], rounds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_of_the_sorted_results() {
        let scatter = |rounds: &[f64]| {
            let scatter = Scatter::of(rounds.to_vec());
            (scatter.median, scatter.min, scatter.max)
        };
        assert_eq!(scatter(&[3.0]), (3.0, 3.0, 3.0));
        assert_eq!(scatter(&[9.0, 1.0, 2.0]), (2.0, 1.0, 9.0));
        assert_eq!(scatter(&[9.0, 1.0, 2.0, 4.0]), (3.0, 1.0, 9.0));
        assert_eq!(Scatter::of(vec![9.0, 1.0]).rounds, [9.0, 1.0]);
    }
}
