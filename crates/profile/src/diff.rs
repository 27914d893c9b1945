//! Two profiles side by side: differences in origin, in learned parameters, and in speed beyond noise.

use std::collections::BTreeMap;

use flashgrain_model::Estimate;
use flashgrain_settings::drive::Setting;
use serde::Serialize;
use serde_json::Value;

use crate::Error;
use crate::schema::{DeviceProfile, Learned, LearnedValue, Point};
use crate::stats::quantile;
use crate::trial::describe_workload;

/// Rates that differ by less than this are the same for any use.
const CHANGE_MIN: f64 = 0.03;

/// Standard errors that a change must have: hundreds of workloads are compared, and none may change by
/// chance.
const Z_MIN: f64 = 5.0;

/// All differences.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diff {
    /// Differences in the origin of the profiles.
    pub provenance: Vec<FieldChange>,
    /// Differences in learned parameters.
    pub learned: Vec<LearnedChange>,
    /// Settings that follow.
    pub decisions: Vec<DecisionChange>,
    /// Workloads that became faster or slower beyond the repeats' spread, the largest change first.
    pub rates: Vec<RateChange>,
    /// Workloads that both profiles have.
    pub compared: usize,
}

/// A field with different texts; `None` where a profile has none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldChange {
    /// Its name.
    pub name: String,
    /// Value in the first profile.
    pub before: Option<String>,
    /// Value in the second profile.
    pub after: Option<String>,
}

/// A setting with different values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionChange {
    /// The setting, before and after.
    #[serde(flatten)]
    pub change: FieldChange,
    /// Whether a profile has it as a default because noise hides which alternative is better: then the drive
    /// need not have changed.
    pub hidden_by_noise: bool,
}

/// A learned number that changed: intervals that do not overlap, or determined in one profile only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LearnedChange {
    /// Its key in the profile.
    pub name: String,
    /// Estimate of the first profile.
    pub before: Estimate,
    /// Estimate of the second profile.
    pub after: Estimate,
}

/// A workload whose rate changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateChange {
    /// The experiment.
    pub experiment: String,
    /// The workload in words.
    pub workload: String,
    /// Median rate in the first profile.
    pub before_bytes_per_second: f64,
    /// Median rate in the second profile.
    pub after_bytes_per_second: f64,
    /// `after / before`.
    pub ratio: f64,
}

/// Compares two profiles.
///
/// # Errors
/// [`Error::Argument`] if a profile cannot be taken apart, which cannot happen to one that was read from a
/// file.
pub fn diff(before: &DeviceProfile, after: &DeviceProfile) -> Result<Diff, Error> {
    let (rates, compared) = rate_changes(before, after);
    Ok(Diff {
        provenance: provenance_changes(before, after)?,
        learned: learned_changes(before, after)?,
        decisions: decision_changes(before, after),
        rates,
        compared,
    })
}

fn taken_apart<T: Serialize>(value: &T) -> Result<Value, Error> {
    serde_json::to_value(value)
        .map_err(|error| Error::Argument(format!("a profile cannot be compared: {error}")))
}

/// All leaves of a JSON value by dotted path.
fn leaves(prefix: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                leaves(&path, field, into);
            }
        }
        Value::Null => {}
        Value::String(text) => {
            into.insert(prefix.to_owned(), text.clone());
        }
        Value::Array(items) if items.is_empty() => {}
        other => {
            into.insert(prefix.to_owned(), other.to_string());
        }
    }
}

fn field_changes(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<FieldChange> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| FieldChange {
            name: name.clone(),
            before: before.get(name).cloned(),
            after: after.get(name).cloned(),
        })
        .collect()
}

fn provenance_changes(before: &DeviceProfile, after: &DeviceProfile) -> Result<Vec<FieldChange>, Error> {
    let (mut first, mut second) = (BTreeMap::new(), BTreeMap::new());
    for (profile, fields) in [(before, &mut first), (after, &mut second)] {
        if let Some(cap) = &profile.learned.cap {
            fields.insert("cap before the drive".to_owned(), cap.limits());
        }
    }
    leaves("", &taken_apart(&before.provenance)?, &mut first);
    leaves("", &taken_apart(&after.provenance)?, &mut second);
    Ok(field_changes(&first, &second))
}

fn decision_changes(before: &DeviceProfile, after: &DeviceProfile) -> Vec<DecisionChange> {
    let by_setting = |profile: &DeviceProfile| -> BTreeMap<String, String> {
        // A setting that this version does not know says nothing of the drive.
        let known = profile.decisions.iter().filter(|one| !matches!(one.setting, Setting::Unknown(_)));
        known.map(|one| (one.setting.name().to_owned(), one.setting.value())).collect()
    };
    let is_hidden = |profile: &DeviceProfile, name: &str| {
        profile.decisions.iter().any(|decision| decision.setting.name() == name && decision.hidden_by_noise)
    };
    field_changes(&by_setting(before), &by_setting(after))
        .into_iter()
        .map(|change| DecisionChange {
            hidden_by_noise: is_hidden(before, &change.name) || is_hidden(after, &change.name),
            change,
        })
        .collect()
}

fn learned_changes(before: &DeviceProfile, after: &DeviceProfile) -> Result<Vec<LearnedChange>, Error> {
    let values = |profile: &DeviceProfile| -> Result<BTreeMap<String, LearnedValue>, Error> {
        // The cap is no value with an interval; it is among the circumstances.
        let learned = Learned { cap: None, ..profile.learned.clone() };
        serde_json::from_value(taken_apart(&learned)?)
            .map_err(|error| Error::Argument(format!("a profile cannot be compared: {error}")))
    };
    let (first, mut second) = (values(before)?, values(after)?);
    let mut changes = Vec::new();
    for (name, value) in first {
        let Some(other) = second.remove(&name) else { continue };
        if !same(&value.estimate, &other.estimate) {
            changes.push(LearnedChange { name, before: value.estimate, after: other.estimate });
        }
    }
    Ok(changes)
}

/// Whether two estimates may be of one number: overlapping intervals, or both undetermined.
fn same(one: &Estimate, other: &Estimate) -> bool {
    match (one, other) {
        (
            Estimate::Determined { low, high, .. },
            Estimate::Determined { low: other_low, high: other_high, .. },
        ) => low <= other_high && other_low <= high,
        (Estimate::Undetermined { .. }, Estimate::Undetermined { .. }) => true,
        _ => false,
    }
}

/// All throughput points of a profile by experiment and workload.
fn points(profile: &DeviceProfile) -> BTreeMap<(String, String), &Point> {
    let measured = &profile.measurements;
    let named = [
        ("order", &measured.order),
        ("parallel", &measured.parallel),
        ("size", &measured.size),
        ("depth", &measured.depth),
        ("mix", &measured.mix),
        ("sequential", &measured.sequential),
    ];
    let plain = named.into_iter().flat_map(|(name, points)| {
        points.iter().map(move |point| ((name.to_owned(), describe_workload(&point.workload)), point))
    });
    let interface = measured.interface.iter().map(|one| {
        (
            ("interface".to_owned(), format!("{}, {}", describe_workload(&one.point.workload), one.backend)),
            &one.point,
        )
    });
    plain.chain(interface).collect()
}

fn rate_changes(before: &DeviceProfile, after: &DeviceProfile) -> (Vec<RateChange>, usize) {
    let (first, second) = (points(before), points(after));
    let (typical_first, typical_second) = (typical_deviations(&first), typical_deviations(&second));
    let mut compared = 0;
    let mut changes = Vec::new();
    for ((experiment, workload), one) in first {
        let Some(other) = second.get(&(experiment.clone(), workload.clone())) else { continue };
        compared += 1;
        let ratio = other.bytes_per_second / one.bytes_per_second;
        let typical = |of: &BTreeMap<String, f64>| of.get(&experiment).copied();
        let errors =
            standard_error(one, typical(&typical_first)).zip(standard_error(other, typical(&typical_second)));
        let significant = errors.is_some_and(|(a, b)| ratio.ln().abs() >= Z_MIN * a.hypot(b));
        if significant && (ratio - 1.0).abs() >= CHANGE_MIN {
            changes.push(RateChange {
                experiment,
                workload,
                before_bytes_per_second: one.bytes_per_second,
                after_bytes_per_second: other.bytes_per_second,
                ratio,
            });
        }
    }
    changes.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    (changes, compared)
}

/// Upper quartile of the relative standard deviations of each experiment's points: mixed loads vary more than
/// plain ones, and small mixed loads more than large.
fn typical_deviations(points: &BTreeMap<(String, String), &Point>) -> BTreeMap<String, f64> {
    let mut by_experiment: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for ((experiment, _), point) in points {
        by_experiment.entry(experiment.clone()).or_default().extend(deviation(point));
    }
    by_experiment
        .into_iter()
        .filter_map(|(experiment, deviations)| Some((experiment, quantile(&deviations, 0.75)?)))
        .collect()
}

/// Relative standard deviation of a point's repeats, from their range; `None` without repeats.
fn deviation(point: &Point) -> Option<f64> {
    /// Mean range of 2, 3, ... normal values, in standard deviations.
    const RANGES: [f64; 9] = [1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970, 3.078];
    let range = (point.bytes_per_second_max / point.bytes_per_second_min).ln();
    let index = (point.repeats as usize).checked_sub(2)?;
    let expected = RANGES.get(index).or(RANGES.last())?;
    (range.is_finite()).then_some(range / expected)
}

/// Relative standard error of a point's median. Three repeats may lie close together by chance, so that no
/// point counts as quieter than is typical of its profile. `None` if nothing is known of the noise.
fn standard_error(point: &Point, typical: Option<f64>) -> Option<f64> {
    /// A median is that much less precise than a mean.
    const MEDIAN: f64 = 1.253;
    let deviation = deviation(point).unwrap_or(0.0).max(typical?);
    Some(MEDIAN * deviation / f64::from(point.repeats.max(1)).sqrt())
}
