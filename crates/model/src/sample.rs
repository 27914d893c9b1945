//! Measurements as the models see them.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::{Error, Workload};

/// The throughput that one trial of a workload reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The experiment it belongs to, such as `order` or `mix`; free text for measurements made elsewhere.
    pub experiment: String,
    /// Number of the repetition of the same workload, from 0.
    pub repeat: u32,
    /// The workload.
    pub workload: Workload,
    /// Bytes moved by all streams together, divided by the time it took.
    pub bytes_per_second: f64,
}

/// Plausible range for a drive, a network volume or a memory; keeps the arithmetic away from overflow.
const BYTES_PER_SECOND: RangeInclusive<f64> = 1e-3..=1e18;
const REQUEST_BYTES: RangeInclusive<f64> = 1.0..=1e15;
const CONCURRENCY: RangeInclusive<f64> = 1.0..=1e9;
/// Smallest share that is told apart from none at all.
const RANDOM_FRACTION_MIN: f64 = 1e-9;

impl Sample {
    /// Checks that every number makes sense.
    ///
    /// # Errors
    /// [`Error::Samples`] naming the number, its value and the expected range.
    pub fn check(&self) -> Result<(), Error> {
        let workload = &self.workload;
        let within = |name: &str, value: f64, range: RangeInclusive<f64>| {
            if range.contains(&value) {
                return Ok(());
            }
            let (low, high) = range.into_inner();
            Err(Error::Samples(format!("{name} is {value}, but must be between {low} and {high}")))
        };
        within("bytes_per_second", self.bytes_per_second, BYTES_PER_SECOND)?;
        within("request_bytes", workload.request_bytes, REQUEST_BYTES)?;
        within("concurrency", workload.concurrency, CONCURRENCY)?;
        within("read_share", workload.read_share, 0.0..=1.0)?;
        if workload.random_share != 0.0 {
            within("random_share", workload.random_share, RANDOM_FRACTION_MIN..=1.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;

    #[test]
    fn nonsense_is_named() {
        let good = Sample {
            experiment: "order".into(),
            repeat: 0,
            workload: Workload::random(Access::Read, 4096.0, 1.0),
            bytes_per_second: 1e8,
        };
        good.check().unwrap();
        for (sample, name) in [
            (Sample { bytes_per_second: 0.0, ..good.clone() }, "bytes_per_second"),
            (Sample { bytes_per_second: f64::NAN, ..good.clone() }, "bytes_per_second"),
            (Sample { bytes_per_second: f64::INFINITY, ..good.clone() }, "bytes_per_second"),
            (
                Sample { workload: Workload { request_bytes: 0.0, ..good.workload }, ..good.clone() },
                "request_bytes",
            ),
            (
                Sample { workload: Workload { concurrency: 0.5, ..good.workload }, ..good.clone() },
                "concurrency",
            ),
            (
                Sample { workload: Workload { read_share: 1.5, ..good.workload }, ..good.clone() },
                "read_share",
            ),
            (
                Sample { workload: Workload { random_share: -0.1, ..good.workload }, ..good.clone() },
                "random_share",
            ),
            (
                Sample { workload: Workload { random_share: 1e-12, ..good.workload }, ..good.clone() },
                "random_share",
            ),
        ] {
            let message = sample.check().unwrap_err().to_string();
            assert!(message.starts_with(name), "{message}");
        }
    }
}
