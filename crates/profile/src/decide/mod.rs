//! Settings that follow from a profile, each with the number that led to it. If that number is undetermined,
//! a default stands and says so.

mod concurrency;
mod layout;
mod noise;
mod sync;

use flashgrain_device::BackendKind;
use flashgrain_settings::drive::{Decision, Setting};

use crate::schema::{Learned, LearnedValue, Measurements, WriteRates};
use crate::trial::bytes_text;

/// Inputs of the decisions.
pub(crate) struct DecisionInputs<'a> {
    pub learned: &'a Learned,
    pub measurements: &'a Measurements,
    /// The kernel interface that carried the run, which stands unless another is clearly faster.
    pub backend: Option<BackendKind>,
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
    backend: Option<BackendKind>,
) -> Vec<Decision> {
    let known = DecisionInputs { learned, measurements, backend };
    let mut decisions = [layout::decide(&known), sync::decide(&known), concurrency::decide(&known)].concat();
    if let Some(cap) = &learned.cap {
        for decision in decisions.iter_mut().filter(|decision| !decision.from_default) {
            decision.because = format!("under {}: {}", cap.describe(), decision.because);
        }
    }
    decisions
}

/// The default of every setting, for a run without conclusions.
pub(crate) fn defaults(why: &str) -> Vec<Decision> {
    let learned = crate::learn::nothing(why);
    let stays = |decision| Decision { because: why.to_owned(), from_default: true, ..decision };
    decide(&learned, &Measurements::default(), None).into_iter().map(stays).collect()
}

/// A decision that a learned number led to.
fn learned(setting: Setting, because: impl Into<String>) -> Decision {
    Decision { setting, because: because.into(), from_default: false, hidden_by_noise: false }
}

/// A decision that stands for want of a number.
fn default(setting: Setting, because: impl Into<String>) -> Decision {
    Decision { from_default: true, ..learned(setting, because) }
}

/// A decision that stands because noise hides which alternative is better.
fn hidden(setting: Setting, because: impl std::fmt::Display) -> Decision {
    let because = format!("noise hides which is better: {because}");
    Decision { hidden_by_noise: true, ..default(setting, because) }
}

/// Why there is no value.
fn why(value: &LearnedValue) -> &str {
    match &value.estimate {
        flashgrain_model::Estimate::Undetermined { why } => why,
        flashgrain_model::Estimate::Determined { .. } => "",
    }
}
