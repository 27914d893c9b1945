//! Samples grouped into one observation per workload, and the points that fits see.

use std::collections::BTreeMap;

use crate::statistics::median;
use crate::{Access, Error, Sample, Workload};
use flashgrain_cost::WorkloadKey;

/// All repeats of one workload in one experiment.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    pub(crate) experiment: String,
    pub(crate) workload: Workload,
    /// Throughput of every repeat in bytes per second, ascending; never empty.
    pub(crate) repeats: Vec<f64>,
}

impl Observation {
    /// Groups samples, in an order that does not depend on theirs.
    pub(crate) fn group(samples: &[Sample]) -> Result<Vec<Self>, Error> {
        let mut groups: BTreeMap<(&str, WorkloadKey), Self> = BTreeMap::new();
        for (index, sample) in samples.iter().enumerate() {
            sample.check().map_err(|error| {
                Error::Samples(format!("sample {} (experiment {}): {error}", index + 1, sample.experiment))
            })?;
            groups
                .entry((&sample.experiment, sample.workload.key()))
                .or_insert_with(|| Self {
                    experiment: sample.experiment.clone(),
                    workload: sample.workload,
                    repeats: Vec::new(),
                })
                .repeats
                .push(sample.bytes_per_second);
        }
        if groups.is_empty() {
            return Err(Error::Samples("there are no samples to fit".into()));
        }
        let mut observations: Vec<Self> = groups.into_values().collect();
        for observation in &mut observations {
            observation.repeats.sort_by(f64::total_cmp);
        }
        Ok(observations)
    }

    /// Median over the repeats: one slow repeat (a flush, a neighbour on the same drive) does not move it.
    pub(crate) fn bytes_per_second(&self) -> f64 {
        median(&mut self.repeats.clone()).unwrap_or(f64::MIN_POSITIVE)
    }

    pub(crate) fn point(&self) -> Point {
        Point { workload: self.workload, seconds_per_byte: self.bytes_per_second().recip() }
    }
}

/// A workload and its measured cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) workload: Workload,
    pub(crate) seconds_per_byte: f64,
}

/// The points of a fit, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Points {
    pub(crate) reads: Vec<Point>,
    pub(crate) writes: Vec<Point>,
    pub(crate) mixed: Vec<Point>,
}

impl FromIterator<Point> for Points {
    fn from_iter<I: IntoIterator<Item = Point>>(points: I) -> Self {
        let mut sorted = Self::default();
        for point in points {
            match point.workload.access() {
                Some(Access::Read) => sorted.reads.push(point),
                Some(Access::Write) => sorted.writes.push(point),
                None => sorted.mixed.push(point),
            }
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(experiment: &str, repeat: u32, read_share: f64, bytes_per_second: f64) -> Sample {
        let workload = Workload { read_share, ..Workload::random(Access::Read, 4096.0, 1.0) };
        Sample { experiment: experiment.into(), repeat, workload, bytes_per_second }
    }

    #[test]
    fn repeats_of_a_workload_become_one_observation_with_their_median() {
        let samples = [
            sample("b", 0, 1.0, 30.0),
            sample("a", 0, 1.0, 10.0),
            sample("a", 2, 1.0, 500.0),
            sample("a", 1, 1.0, 11.0),
            sample("a", 0, 0.0, 7.0),
        ];
        let observations = Observation::group(&samples).unwrap();
        let medians: Vec<f64> = observations.iter().map(Observation::bytes_per_second).collect();
        assert_eq!(medians, [7.0, 11.0, 30.0]);
        let points: Points = observations.iter().map(Observation::point).collect();
        assert_eq!((points.reads.len(), points.writes.len(), points.mixed.len()), (2, 1, 0));
    }

    #[test]
    fn the_order_of_samples_does_not_matter() {
        let mut samples = vec![sample("b", 0, 0.5, 3.0), sample("a", 0, 1.0, 1.0), sample("a", 1, 1.0, 2.0)];
        let points = |samples: &[Sample]| -> Vec<Point> {
            Observation::group(samples).unwrap().iter().map(Observation::point).collect()
        };
        let before = points(&samples);
        samples.reverse();
        assert_eq!(points(&samples), before);
    }

    #[test]
    fn a_bad_sample_is_named() {
        let error =
            Observation::group(&[sample("order", 0, 1.0, 1.0), sample("order", 1, 1.0, -1.0)]).unwrap_err();
        assert!(error.to_string().contains("sample 2 (experiment order)"), "{error}");
        assert!(Observation::group(&[]).is_err());
    }
}
