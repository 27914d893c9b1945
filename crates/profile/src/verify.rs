//! Verification: fresh workloads between those that the models were fitted to, predicted first and then
//! measured.

use flashgrain_model::{Access, IoModel, ModelName, Models, Workload};

use crate::config::ExperimentName;
use crate::experiment::Trials;
use crate::schema::Verification;
use crate::series::Series;
use crate::target::Site;
use crate::trial::{Trial, grid_level};

/// Streams between those of the grids.
const STREAMS: [u32; 6] = [3, 6, 12, 24, 48, 96];

/// Sizes between those of the grids.
const REQUEST_BYTES: [u64; 5] = [8 << 10, 24 << 10, 96 << 10, 200 << 10, 768 << 10];

/// Mixed workloads: streams and size, 70 % reads.
const MIXED: [(u32, u64); 4] = [(3, 8 << 10), (12, 8 << 10), (48, 8 << 10), (12, 24 << 10)];

/// The workloads, as trials of the `order` experiment's kind.
pub(crate) fn trials(site: &Site) -> Trials {
    let mut found = Trials::default();
    for (k_index, k) in STREAMS.into_iter().enumerate() {
        for (size_index, bytes) in REQUEST_BYTES.into_iter().enumerate() {
            let rank = grid_level(k_index, STREAMS.len()) + grid_level(size_index, REQUEST_BYTES.len());
            for access in [Access::Read, Access::Write] {
                let workload = Workload::random(access, rounded(bytes, site), f64::from(k));
                found.trials.push(Trial::load(ExperimentName::Order, rank, workload));
            }
        }
    }
    for (rank, (k, bytes)) in MIXED.into_iter().enumerate() {
        let workload = Workload {
            read_share: 0.7,
            ..Workload::random(Access::Read, rounded(bytes, site), f64::from(k))
        };
        found.trials.push(Trial::load(ExperimentName::Mix, rank as u32, workload));
    }
    found
}

/// Puts a message about a trial that was left out under the name of the verification instead of the
/// experiment that the trial resembles.
pub(crate) fn left_out_text(text: &str) -> String {
    format!("verification: {}", text.split_once(": ").map_or(text, |(_, rest)| rest))
}

fn rounded(bytes: u64, site: &Site) -> f64 {
    bytes.next_multiple_of(site.page_bytes) as f64
}

/// The MQSSD model's prediction, bytes per second; `None` if it says nothing about such a workload.
pub(crate) fn predict(models: &Models, workload: &Workload) -> Option<f64> {
    let model = models.iter().find(|model| model.name() == ModelName::Mqssd)?;
    let seconds = IoModel::seconds_per_byte(model, workload)?;
    (seconds > 0.0 && seconds.is_finite()).then(|| 1.0 / seconds)
}

/// A prediction and the later measurement.
pub(crate) fn judge(series: &Series, predicted_bytes_per_second: f64) -> Option<Verification> {
    let point = series.point()?;
    let measured = point.bytes_per_second;
    Some(Verification {
        workload: point.workload,
        predicted_bytes_per_second,
        measured_bytes_per_second: measured,
        measured_min_bytes_per_second: point.bytes_per_second_min,
        measured_max_bytes_per_second: point.bytes_per_second_max,
        relative_error: (predicted_bytes_per_second - measured).abs() / measured,
        regime: point.regime,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing;

    #[test]
    fn no_workload_of_the_experiments_comes_back() {
        let fitted: Vec<Workload> = ExperimentName::ALL
            .into_iter()
            .filter(|name| name.feeds_models())
            .flat_map(|name| testing::trials(name).trials)
            .filter_map(|trial| trial.workload().copied())
            .collect();
        let fresh = trials(&testing::site());
        assert_eq!(fresh.trials.len(), 6 * 5 * 2 + 4);
        for trial in &fresh.trials {
            let workload = trial.workload().unwrap();
            assert!(!fitted.contains(workload), "{workload:?}");
        }
    }
}
