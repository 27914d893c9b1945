//! The parameters and prices of a profile's drive, for rules and their costs.

use std::num::NonZeroU64;

use flashgrain_model::{Access, Estimate, FittedModel, Models, Workload};
use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::LearnedValue;
use serde::Serialize;

use super::advised::Advised;
use crate::{Grain, Rule};

/// The most pieces of one request that are priced as running side by side.
const PIECES_MAX: usize = 64;

/// A drive: its parameters, and the prices of requests on it.
#[derive(Clone, Debug)]
pub struct Drive {
    /// Its name for people.
    pub name: String,
    /// The parameters.
    pub parameters: Vec<Parameter>,
    pub(super) grain: Grain,
    pub(super) advised: Advised,
    pub(super) prices: Option<Prices>,
}

/// A hidden parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Its name, as in the profile.
    pub name: &'static str,
    /// Its value in bytes.
    pub bytes: Option<u64>,
    /// Why it is undetermined.
    pub why: Option<String>,
}

/// The time of requests, as the finest fitted model predicts it.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    pub model: String,
    read: Line,
    write: Line,
    /// Seconds of 1, 2, ... accesses side by side, without their transfer.
    write_setups: Vec<f64>,
    /// Relative drop of latency at hot locations.
    pub hot_drop: Option<f64>,
}

/// Seconds of a single access of some bytes.
#[derive(Clone, Copy, Debug)]
struct Line {
    setup: f64,
    per_byte: f64,
}

impl Drive {
    /// The drive of a profile.
    pub fn of(profile: &DeviceProfile) -> Self {
        let learned = &profile.learned;
        let all = [
            ("desirable_write_bytes", &learned.desirable_write_bytes),
            ("stripe_bytes", &learned.stripe_bytes),
            ("chunk_bytes", &learned.chunk_bytes),
            ("hot_offset_bytes", &learned.hot_offset_bytes),
            ("flash_page_bytes", &learned.flash_page_bytes),
        ];
        let parameters: Vec<_> = all.into_iter().map(|(name, learned)| parameter(name, learned)).collect();
        let bytes = |at: usize| parameters.get(at).and_then(|parameter| parameter.bytes);
        let size = |at: usize| bytes(at).and_then(NonZeroU64::new);
        let grain = Grain {
            desirable_write_bytes: size(0),
            stripe_bytes: size(1),
            chunk_bytes: size(2),
            hot_offset_bytes: bytes(3),
            flash_page_bytes: size(4),
        };
        let hot_drop = learned.hot_latency_drop.estimate.value().filter(|drop| (0.0..1.0).contains(drop));
        let prices = profile.models.as_ref().and_then(|models| Prices::of(models, hot_drop));
        let identity = &profile.provenance.identity;
        let name = identity.model.clone().unwrap_or_else(|| identity.target.clone());
        Self { name, parameters, grain, advised: Advised::default(), prices }
    }

    /// A drive with these parameters and without prices.
    pub fn of_grain(name: &str, grain: Grain) -> Self {
        let advised = Advised::default();
        Self { name: name.to_owned(), parameters: Vec::new(), grain, advised, prices: None }
    }

    /// The same drive, with the settings that are advised on it.
    pub fn with_advice(self, advised: Advised) -> Self {
        Self { advised, ..self }
    }

    /// Why `rule` cannot be judged: the parameters that it needs and that are undetermined, with the reasons.
    pub(super) fn skipped(&self, rule: Rule) -> Option<String> {
        if self.grain.knows(rule) {
            return None;
        }
        let needs: &[&str] = match rule {
            Rule::DesirableWrites => &["desirable_write_bytes"],
            Rule::HotReads => &["chunk_bytes", "hot_offset_bytes"],
            Rule::AlignedWrites => &["stripe_bytes"],
            Rule::AlignedChunks => &["chunk_bytes"],
            Rule::FewFlashPages => &["flash_page_bytes"],
        };
        let reasons = needs.iter().filter_map(|name| {
            let parameter = self.parameters.iter().find(|parameter| parameter.name == *name)?;
            Some(format!("{name} is undetermined: {}", parameter.why.as_deref()?))
        });
        let reasons: Vec<_> = reasons.collect();
        Some(if reasons.is_empty() {
            format!("{} is unknown", needs.join(" or "))
        } else {
            reasons.join("; ")
        })
    }
}

fn parameter(name: &'static str, learned: &LearnedValue) -> Parameter {
    match &learned.estimate {
        Estimate::Determined { value, .. } if value.is_finite() && *value >= 0.0 => {
            Parameter { name, bytes: Some(value.round() as u64), why: None }
        }
        Estimate::Determined { value, .. } => {
            Parameter { name, bytes: None, why: Some(format!("the profile says {value}")) }
        }
        Estimate::Undetermined { why } => Parameter { name, bytes: None, why: Some(why.clone()) },
    }
}

impl Prices {
    fn of(models: &Models, hot_drop: Option<f64>) -> Option<Self> {
        let finest = [
            models.mqssd.as_ref().map(|model| model as &dyn FittedModel),
            models.affine.as_ref().map(|model| model as _),
        ];
        finest.into_iter().flatten().find_map(|model| {
            let read = Line::of(model, Access::Read)?;
            let write = Line::of(model, Access::Write)?;
            let write_setups =
                (1..=PIECES_MAX).map(|pieces| setups(model, pieces).unwrap_or(write.setup)).collect();
            Some(Self { model: model.name().to_string(), read, write, write_setups, hot_drop })
        })
    }

    fn line(&self, access: Access) -> Line {
        if access == Access::Read { self.read } else { self.write }
    }

    /// Seconds of a request by itself. One that goes on where the last one ended has no setup.
    pub fn seconds(&self, access: Access, bytes: u64, is_begin: bool) -> f64 {
        let line = self.line(access);
        let setup = if is_begin { line.setup } else { 0.0 };
        setup + line.per_byte * bytes as f64
    }

    /// Seconds of setup of one write.
    pub fn write_setup(&self) -> f64 {
        self.write.setup
    }

    /// Seconds to write `bytes` without a setup.
    pub fn write_transfer(&self, bytes: u64) -> f64 {
        self.write.per_byte * bytes as f64
    }

    /// Seconds that writing in `pieces` side by side takes longer than in `least`.
    pub fn more_pieces(&self, pieces: u64, least: u64) -> f64 {
        let at = |pieces: u64| {
            let index = usize::try_from(pieces.saturating_sub(1)).unwrap_or(usize::MAX);
            self.write_setups.get(index.min(PIECES_MAX - 1)).copied().unwrap_or(0.0)
        };
        (at(pieces) - at(least)).max(0.0)
    }
}

/// Seconds that `pieces` accesses without bytes take side by side.
fn setups(model: &dyn FittedModel, pieces: usize) -> Option<f64> {
    let bytes = 4096.0;
    let random = Workload::random(Access::Write, bytes, pieces as f64);
    let per_request = model.seconds_per_request(&random)?;
    let transfer = model.seconds_per_request(&Workload { random_share: 0.0, ..random })?;
    let seconds = (per_request - transfer) * pieces as f64;
    seconds.is_finite().then_some(seconds.max(0.0))
}

impl Line {
    /// From two sizes: the models' cost is a line in the size.
    fn of(model: &dyn FittedModel, access: Access) -> Option<Self> {
        let seconds = |bytes: f64| model.seconds_per_request(&Workload::random(access, bytes, 1.0));
        let (small, large) = (4096.0, 1_048_576.0);
        let (at_small, at_large) = (seconds(small)?, seconds(large)?);
        let per_byte = ((at_large - at_small) / (large - small)).max(0.0);
        let setup = (at_small - per_byte * small).max(0.0);
        (setup.is_finite() && per_byte.is_finite()).then_some(Self { setup, per_byte })
    }
}
