//! DAM, PDAM and affine given the costs of one thread, as in Figure 2 of the MQSSD paper (§4.1), next to all
//! models as they are fitted to every concurrency.

use serde::{Deserialize, Serialize};

use crate::observation::{Observation, Point, Points};
use crate::statistics::{mean, median};
use crate::{Access, Affine, Dam, Error, FitOptions, FittedModel, ModelName, Models, Sample};

/// The points that a model's costs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostsOf {
    /// Those of k = 1.
    OneThread,
    /// Those of every k.
    AllThreads,
}

/// A model's predictions for one kind of access, over all workloads: none is held out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneThreadRow {
    /// The model.
    pub model: ModelName,
    /// The points that its costs come from.
    pub costs_of: CostsOf,
    /// Reads or writes.
    pub access: Access,
    /// By rising k, predicted over measured throughput: the geometric mean over the workloads of that k.
    pub predicted_over_measured: Vec<(f64, f64)>,
    /// Median of |predicted - measured| / measured.
    pub median_relative_error: f64,
    /// Worst of them.
    pub worst_relative_error: f64,
}

/// Predictions with the costs of one thread, and with those of all; MQSSD has the latter alone.
///
/// - DAM and PDAM: the page and the cycle cost are the mean time of a page over the workloads of one thread.
///   The paper takes P from the drive's channels; it is the fitted one here.
/// - Affine: setup and transfer are those of a regression over the workloads of one thread.
///
/// # Errors
/// As [`fit`](crate::fit), and [`Error::Samples`] without workloads of one thread.
pub fn one_thread(
    samples: &[Sample],
    fitted: &Models,
    options: &FitOptions,
) -> Result<Vec<OneThreadRow>, Error> {
    let points: Points = Observation::group(samples)?.iter().map(Observation::point).collect();
    let alone = Points {
        reads: of_one_thread(&points.reads),
        writes: of_one_thread(&points.writes),
        mixed: Vec::new(),
    };
    if alone.reads.is_empty() && alone.writes.is_empty() {
        return Err(Error::Samples("no workload of one thread (concurrency 1) was measured".into()));
    }
    let single = Models {
        dam: Dam::of_mean_costs(&alone, options.page_bytes),
        pdam: fitted.pdam.as_ref().and_then(|pdam| pdam.with_mean_costs(&alone)),
        affine: Affine::fit_costs(&alone, options.page_bytes),
        mqssd: None,
    };
    let mut rows = Vec::new();
    for (access, points) in [(Access::Read, &points.reads), (Access::Write, &points.writes)] {
        for (costs_of, models) in [(CostsOf::OneThread, &single), (CostsOf::AllThreads, fitted)] {
            rows.extend(models.iter().filter_map(|model| row(model, costs_of, access, points)));
        }
    }
    Ok(rows)
}

fn of_one_thread(points: &[Point]) -> Vec<Point> {
    points.iter().filter(|point| point.workload.concurrency == 1.0).copied().collect()
}

fn row(model: &dyn FittedModel, costs_of: CostsOf, access: Access, points: &[Point]) -> Option<OneThreadRow> {
    let ratio = |point: &Point| Some(point.seconds_per_byte / model.seconds_per_byte(&point.workload)?);
    let ratios: Vec<(f64, f64)> =
        points.iter().filter_map(|point| Some((point.workload.concurrency, ratio(point)?))).collect();
    let mut concurrencies: Vec<f64> = ratios.iter().map(|(k, _)| *k).collect();
    concurrencies.sort_by(f64::total_cmp);
    concurrencies.dedup();
    let at = |k: f64| {
        let logarithms = ratios.iter().filter(|(own, _)| *own == k).map(|(_, ratio)| ratio.ln());
        Some((k, mean(logarithms)?.exp()))
    };
    let mut errors: Vec<f64> = ratios.iter().map(|(_, ratio)| (ratio - 1.0).abs()).collect();
    Some(OneThreadRow {
        model: model.name(),
        costs_of,
        access,
        predicted_over_measured: concurrencies.into_iter().filter_map(at).collect(),
        median_relative_error: median(&mut errors)?,
        worst_relative_error: errors.last().copied()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Workload, fit};

    /// Reads whose setup is shared by 8 streams, and whose transfer is by none.
    fn samples(concurrencies: &[f64]) -> Vec<Sample> {
        let sample = |k: f64, bytes: f64| Sample {
            experiment: "order".into(),
            repeat: 0,
            workload: Workload::random(Access::Read, bytes, k),
            bytes_per_second: (1e-4 / k.min(8.0) / bytes + 1e-9).recip(),
        };
        let sizes = [4e3, 16e3, 64e3, 1e6];
        concurrencies.iter().flat_map(|k| sizes.map(|bytes| sample(*k, bytes))).collect()
    }

    #[test]
    fn one_threads_costs_err_with_concurrency_as_in_figure_2() {
        let (samples, options) = (samples(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), FitOptions::default());
        let rows = one_thread(&samples, &fit(&samples, &options).unwrap(), &options).unwrap();
        let of =
            |model, costs_of| rows.iter().find(|row| row.model == model && row.costs_of == costs_of).unwrap();
        let at = |row: &OneThreadRow, k: f64| {
            row.predicted_over_measured.iter().find(|(own, _)| *own == k).unwrap().1
        };
        // Affine is right for one thread, and too slow for more of them.
        let affine = of(ModelName::Affine, CostsOf::OneThread);
        assert!((at(affine, 1.0) - 1.0).abs() < 1e-6 && at(affine, 32.0) < 0.5, "{affine:?}");
        // DAM has one throughput, that of the mean time of a page.
        let dam = of(ModelName::Dam, CostsOf::OneThread);
        let mean_s = (1e-4 / 4e3 + 1e-4 / 16e3 + 1e-4 / 64e3 + 1e-4 / 1e6) / 4.0 + 1e-9;
        let logarithms = |k: f64| [4e3, 16e3, 64e3, 1e6].map(|bytes| (1e-4 / k / bytes + 1e-9).ln());
        let expected = |k: f64| (logarithms(k).iter().sum::<f64>() / 4.0).exp() / mean_s;
        for k in [1.0, 8.0] {
            assert!((at(dam, k) / expected(k) - 1.0).abs() < 1e-9, "{dam:?}");
        }
        // PDAM is the same for one thread, and as many times as fast for two.
        let pdam = of(ModelName::Pdam, CostsOf::OneThread);
        assert!((at(pdam, 1.0) / at(dam, 1.0) - 1.0).abs() < 1e-9, "{pdam:?}");
        assert!((at(pdam, 2.0) / at(dam, 2.0) - 2.0).abs() < 1e-9, "{pdam:?}");
        // Fitted to all, MQSSD is best.
        let mqssd = of(ModelName::Mqssd, CostsOf::AllThreads);
        assert!(mqssd.median_relative_error < 0.05, "{mqssd:?}");
        assert!(rows.iter().all(|row| row.access == Access::Read) && rows.len() == 7);
    }

    #[test]
    fn without_one_thread_there_is_nothing_to_give() {
        let (samples, options) = (samples(&[2.0, 4.0]), FitOptions::default());
        let error = one_thread(&samples, &fit(&samples, &options).unwrap(), &options).unwrap_err();
        assert!(error.to_string().contains("concurrency 1"), "{error}");
    }
}
