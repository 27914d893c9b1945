//! Setup and transfer costs of one kind of access over concurrency, with intervals.
//!
//! The finest model that was fitted counts: MQSSD's fitted curves, else the affine model's two costs, divided
//! by PDAM's P where that is known. A number's interval is its own, widened by the median error of the model
//! on held-out points of its kind, or of mixed ones if that is larger. A kind that no model knows is
//! bracketed from the other kind, and if that is unknown, too, from the drives that the papers measured.

use flashgrain_cost::Interval;
use flashgrain_cost::ranking::CostsOfKind;
use flashgrain_model::{Access, Estimate, FittedModel, ModelName, Models, Parameter};
use flashgrain_profile::export::write_regime;
use flashgrain_profile::schema::{DeviceProfile, WriteRates};

/// A cost whose own interval is undetermined lies within this factor.
const DOUBT_FACTOR: f64 = 4.0;
/// A kind that was not measured lies within this factor of the other kind.
const OTHER_KIND_FACTOR: f64 = 8.0;

/// Setup of the drives that the papers measured, at one request: 3 µs (3D XPoint) to 18 ms (disks).
const ANY_SETUP: Interval = Interval { low: 3e-6, value: 1e-4, high: 18e-3 };
/// Transfer of the same: 3.4 GB/s to 120 MB/s.
const ANY_TRANSFER: Interval = Interval { low: 1.0 / 3.4e9, value: 1.0 / 5e8, high: 1.0 / 1.2e8 };
/// Requests that the cautious and the usual one of these drives serve at a time.
const ANY_PARALLELISM: f64 = 4.0;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    pub numbers: CostsOfKind,
    pub source: String,
    pub is_measured: bool,
    /// Costs whose own intervals are undetermined, in words.
    doubts: Vec<String>,
}

impl Costs {
    fn widened(self, error: Option<f64>) -> Self {
        let factor = 1.0 + error.unwrap_or(0.0);
        let spread = |ratio: f64| (ratio.ln().powi(2) + factor.ln().powi(2)).sqrt().exp();
        let wide = |cost: Interval| Interval {
            low: cost.value / spread(cost.value / cost.low),
            value: cost.value,
            high: cost.value * spread(cost.high / cost.value),
        };
        Self { numbers: self.numbers.map(wide, wide), ..self }
    }

    /// Costs of writes that go on for hours, if `sustain` has found the drive's steady state: its collection
    /// of garbage takes time for each write at a place of its own, whatever the concurrency.
    fn in_steady_state(self, profile: &DeviceProfile, notes: &mut Vec<String>) -> Self {
        let measured = &profile.measurements;
        let Some(sustain) = &measured.sustain else {
            if measured.write_rates() == WriteRates::Bursts {
                notes.push(write_regime(profile));
            }
            return self;
        };
        let Some(rate) = sustain.sustained_bytes_per_second.value().filter(|rate| *rate > 0.0) else {
            return self;
        };
        let (bytes, concurrency) = (sustain.request_bytes as f64, f64::from(sustain.concurrency));
        let (setup, transfer) = (self.numbers.setup(concurrency), self.numbers.transfer(concurrency));
        let collection_s = bytes / rate - setup.value - transfer.value * bytes;
        if collection_s <= 0.0 {
            return self;
        }
        notes.push(write_regime(profile));
        let with_collection = |setup: Interval| setup.scaled(1.0 + collection_s / setup.value);
        Self { numbers: self.numbers.map(with_collection, |transfer| transfer), ..self }
    }

    /// The same costs for the other kind, which was not measured.
    fn as_other_kind(&self, name: &str) -> Self {
        let doubtful = |cost: Interval| Interval::within_factor(cost.value, OTHER_KIND_FACTOR);
        Self {
            numbers: self.numbers.map(doubtful, doubtful),
            source: format!("{name} were not measured: within {OTHER_KIND_FACTOR} times the other kind"),
            is_measured: false,
            doubts: Vec::new(),
        }
    }

    fn of_any_drive() -> Self {
        let parallel = |k: f64| (k, ANY_SETUP.scaled(1.0 / k));
        Self {
            numbers: CostsOfKind {
                setup: [1.0, ANY_PARALLELISM].map(parallel).to_vec(),
                transfer: vec![(1.0, ANY_TRANSFER)],
            },
            source: "nothing was measured: any drive of the papers".into(),
            is_measured: false,
            doubts: Vec::new(),
        }
    }
}

/// Costs of reads and of writes.
pub(super) fn of(profile: &DeviceProfile, notes: &mut Vec<String>) -> [Costs; 2] {
    let fitted = [Access::Read, Access::Write].map(|access| fitted(profile, access));
    notes.extend(fitted.iter().flatten().flat_map(|costs| costs.doubts.clone()));
    let [reads, writes] = fitted;
    let writes = writes.map(|costs| costs.in_steady_state(profile, notes));
    let [reads, writes] = match [reads, writes] {
        [Some(reads), Some(writes)] => return [reads, writes],
        [Some(reads), None] => {
            let writes = reads.as_other_kind("writes");
            [reads, writes]
        }
        [None, Some(writes)] => [writes.as_other_kind("reads"), writes],
        [None, None] => [Costs::of_any_drive(), Costs::of_any_drive()],
    };
    let bracketed = [&reads, &writes].into_iter().filter(|costs| !costs.is_measured);
    notes.extend(bracketed.map(|costs| format!("costs undetermined: {}", costs.source)));
    notes.dedup();
    [reads, writes]
}

fn fitted(profile: &DeviceProfile, access: Access) -> Option<Costs> {
    let models = profile.models.as_ref()?;
    let error = |name: ModelName| {
        let rows = &profile.comparison.as_ref()?.rows;
        let of_kind = |kind: Option<Access>| {
            rows.iter()
                .find(|row| row.model == name && row.access == kind)
                .map(|row| row.median_relative_error)
        };
        // Engines read and write together: a model that misses mixed workloads misses theirs.
        of_kind(Some(access)).into_iter().chain(of_kind(None)).reduce(f64::max)
    };
    let mqssd = of_mqssd(models, access).map(|costs| costs.widened(error(ModelName::Mqssd)));
    mqssd.or_else(|| of_affine(models, access).map(|costs| costs.widened(error(ModelName::Affine))))
}

fn of_mqssd(models: &Models, access: Access) -> Option<Costs> {
    let mqssd = models.mqssd.as_ref()?;
    let parameters = mqssd.parameters();
    let concurrencies = || mqssd.regressions(access).into_iter().map(|row| row.concurrency);
    let mut doubts = Vec::new();
    let mut of_part = |symbol: &str, cost: &dyn Fn(f64) -> Option<f64>| -> Vec<(f64, Interval)> {
        let mut doubtful = Vec::new();
        let costs = concurrencies().filter_map(|k| {
            let value = cost(k).filter(|value| *value > 0.0)?;
            let parameter = fitted_at(&parameters, symbol, access, k);
            if parameter.is_none_or(|parameter| parameter.estimate.value().is_none()) {
                doubtful.push(format!("{k}"));
            }
            Some((k, around(value, parameter)))
        });
        let costs = costs.collect();
        if !doubtful.is_empty() {
            let (name, at) = (symbol.trim_end_matches(" fitted"), doubtful.join(", "));
            doubts.push(format!(
                "{name} undetermined at k = {at}: taken within {DOUBT_FACTOR} times its curve"
            ));
        }
        costs
    };
    let (setup_symbol, transfer_symbol) = match access {
        Access::Read => ("t(k) fitted", "α(k) fitted"),
        Access::Write => ("s(k) fitted", "β(k) fitted"),
    };
    let setup = of_part(setup_symbol, &|k| mqssd.setup_seconds(access, k));
    let transfer = of_part(transfer_symbol, &|k| mqssd.transfer_seconds_per_byte(access, k));
    let is_whole = !setup.is_empty() && !transfer.is_empty();
    let source = "MQSSD's fitted costs".into();
    let numbers = CostsOfKind { setup, transfer };
    is_whole.then_some(Costs { numbers, source, is_measured: true, doubts })
}

/// γ at rising concurrency, if MQSSD's costs count and the term was kept.
pub(super) fn interference(profile: &DeviceProfile) -> Vec<(f64, f64)> {
    let Some(mqssd) = profile.models.as_ref().and_then(|models| models.mqssd.as_ref()) else {
        return Vec::new();
    };
    match mqssd.interference_by_concurrency() {
        [] => mqssd.interference().map(|gamma| (1.0, gamma)).into_iter().collect(),
        by_concurrency => by_concurrency.to_vec(),
    }
}

fn fitted_at<'a>(
    parameters: &'a [Parameter],
    symbol: &str,
    access: Access,
    concurrency: f64,
) -> Option<&'a Parameter> {
    parameters.iter().find(|parameter| {
        parameter.symbol == symbol
            && parameter.access == Some(access)
            && parameter.at_concurrency == Some(concurrency)
    })
}

/// The value of an estimate, if it is determined.
pub(super) fn interval_of(estimate: &Estimate) -> Option<Interval> {
    match *estimate {
        Estimate::Determined { value, low, high } => Some(Interval { low, value, high }),
        Estimate::Undetermined { .. } => None,
    }
}

/// A cost with the relative interval of its parameter.
fn around(value: f64, parameter: Option<&Parameter>) -> Interval {
    match parameter.and_then(|parameter| interval_of(&parameter.estimate)) {
        Some(own) if own.value > 0.0 && own.low > 0.0 => own.scaled(value / own.value),
        _ => Interval::within_factor(value, DOUBT_FACTOR),
    }
}

fn of_affine(models: &Models, access: Access) -> Option<Costs> {
    let affine = models.affine.as_ref()?;
    let setup = affine.setup_seconds(access).filter(|setup| *setup > 0.0)?;
    let transfer = affine.transfer_seconds_per_byte(access).filter(|transfer| *transfer > 0.0)?;
    let parameters = affine.parameters();
    let of_symbol = |symbol: &str| {
        parameters.iter().find(|parameter| parameter.symbol == symbol && parameter.access == Some(access))
    };
    let setup = around(setup, of_symbol("s"));
    let parallelism = models.pdam.as_ref().and_then(|pdam| {
        let own = |parameter: &&Parameter| {
            parameter.symbol == "P" && parameter.access.is_none_or(|of| of == access)
        };
        pdam.parameters().iter().find(own).and_then(|parameter| parameter.estimate.value())
    });
    let parallelism = parallelism.unwrap_or(1.0).max(1.0);
    let mut setups = vec![(1.0, setup)];
    if parallelism > 1.0 {
        setups.push((parallelism, setup.scaled(1.0 / parallelism)));
    }
    let transfer = vec![(1.0, around(transfer, of_symbol("β")))];
    let numbers = CostsOfKind { setup: setups, transfer };
    let source = "the affine model's costs".into();
    Some(Costs { numbers, source, is_measured: true, doubts: Vec::new() })
}
