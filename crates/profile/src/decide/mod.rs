//! Settings that follow from a profile, each with the number that led to it. If that number is undetermined,
//! a default stands and says so.

mod concurrency;
mod layout;
mod noise;
mod sync;

use flashgrain_model::Models;

use crate::schema::{Amount, Decision, Learned, LearnedValue, Measurements, WriteRates};
use crate::trial::bytes_text;

/// Inputs of the decisions.
pub(crate) struct DecisionInputs<'a> {
    pub learned: &'a Learned,
    pub measurements: &'a Measurements,
    pub models: Option<&'a Models>,
}

impl DecisionInputs<'_> {
    /// Names the regime of a rate of writes, as a suffix.
    fn write_regime(&self) -> String {
        match self.measurements.write_rates() {
            WriteRates::Sustained { .. } => " (sustained)".to_owned(),
            WriteRates::NoFall { written_bytes } => {
                format!(" (the rate did not fall within {})", bytes_text(written_bytes))
            }
            WriteRates::Bursts => " in bursts".to_owned(),
        }
    }
}

/// All decisions, in the order of a store's layers: pages, segments, log, requests in flight.
pub(crate) fn decide(
    learned: &Learned,
    measurements: &Measurements,
    models: Option<&Models>,
) -> Vec<Decision> {
    let known = DecisionInputs { learned, measurements, models };
    let mut decisions = [layout::decide(&known), sync::decide(&known), concurrency::decide(&known)].concat();
    if let Some(cap) = &learned.cap {
        for decision in decisions.iter_mut().filter(|decision| !decision.from_default) {
            decision.because = format!("behind {}: {}", cap.describe(), decision.because);
        }
    }
    decisions
}

/// A decision that a learned number led to.
fn learned(setting: &str, value: impl Into<String>, because: impl Into<String>) -> Decision {
    Decision {
        setting: setting.to_owned(),
        value: value.into(),
        amount: None,
        because: because.into(),
        from_default: false,
        hidden_by_noise: false,
    }
}

/// A decision that stands for want of a number.
fn default(setting: &str, value: impl Into<String>, because: impl Into<String>) -> Decision {
    Decision { from_default: true, ..learned(setting, value, because) }
}

/// A decision that stands because noise hides which alternative is better.
fn hidden(setting: &str, value: impl Into<String>, because: impl std::fmt::Display) -> Decision {
    let because = format!("noise hides which is better: {because}");
    Decision { hidden_by_noise: true, ..default(setting, value, because) }
}

/// A decision on a size that a learned number led to.
fn learned_bytes(setting: &str, bytes: u64, because: impl Into<String>) -> Decision {
    learned(setting, bytes_text(bytes), because).of(Amount::Bytes(bytes))
}

/// A decision on a size that stands for want of a number.
fn default_bytes(setting: &str, bytes: u64, because: impl Into<String>) -> Decision {
    default(setting, bytes_text(bytes), because).of(Amount::Bytes(bytes))
}

/// A size in words and for programs.
fn size_shown(bytes: u64) -> (String, Amount) {
    (bytes_text(bytes), Amount::Bytes(bytes))
}

/// Why there is no value.
fn why(value: &LearnedValue) -> &str {
    match &value.estimate {
        flashgrain_model::Estimate::Undetermined { why } => why,
        flashgrain_model::Estimate::Determined { .. } => "",
    }
}
