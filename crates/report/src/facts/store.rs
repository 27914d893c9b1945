//! The store on the drive, compared with the rates that the drive allows.

use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::{StoreOperation, StoreRun};

use super::learned::because;
use crate::table::{Cell, Kind, Table, Tone};
use crate::unit;

/// Text for a profile without a store: the reason in the budget, if there is one.
pub(crate) fn no_store(profile: &DeviceProfile) -> String {
    let left_out = profile.budget.left_out.iter().find_map(|words| words.strip_prefix("store: "));
    match left_out {
        Some(why) => format!("Not built: {why}."),
        None => "Not built; flashgrain tune does that.".into(),
    }
}

/// Size of the store, and cost of its creation.
pub(crate) fn store_sentence(store: &StoreRun) -> String {
    let sentence = format!(
        "{} of {} + {} bytes, {} on the drive, with a cache of {} and {}, made in {} with {} written.",
        unit::things(store.records, "record"),
        store.key_bytes,
        store.value_bytes,
        unit::bytes(store.stored_bytes as f64),
        unit::bytes(store.cache_bytes as f64),
        unit::things(store.workers.into(), "worker"),
        unit::seconds(store.used_s),
        unit::bytes(store.used_write_bytes as f64)
    );
    cached_sentence(store).map_or_else(|| sentence.clone(), |cached| format!("{sentence} {cached}"))
}

/// A store is made this many times as large as its cache, if there is time to fill it.
const TIMES_CACHE: f64 = 3.0;

/// Says that the store became too small for its cache, if it did.
pub(super) fn cached_sentence(store: &StoreRun) -> Option<String> {
    let times = store.stored_bytes as f64 / store.cache_bytes.max(1) as f64;
    (times < TIMES_CACHE).then(|| {
        format!(
            "It is {times:.1} times as large as its cache only, for want of time to fill it: many look-ups found their \
             records in memory; give it more --seconds."
        )
    })
}

/// How to read the numbers of its operations.
pub(crate) const STORE_LIMITS: &str = "Predicted and raw: operations per second if the drive did nothing but the requests that an operation brings about, one \
    after the other, at the cost that the models and the flush measurements of this profile give, and at that of the raw device in the same run.";

/// How the layout was decided.
pub(crate) fn layout_table(store: &StoreRun, is_trusted: bool) -> Table {
    let mut table = Table::new(&[("layout", Kind::Label), ("value", Kind::Number), ("because", Kind::Prose)]);
    for decision in &store.layout {
        table.push([
            decision.setting.name().into(),
            Cell::toned(decision.setting.value(), Tone::Strong),
            because(&decision.because, is_trusted).into(),
        ]);
    }
    table
}

/// `random look-ups × 64`: with how many of them under way.
pub(crate) fn operation_name(operation: &StoreOperation) -> String {
    format!("{} × {}", operation.operation, operation.concurrency)
}

/// No store is faster than the raw device, but measurements of both scatter by about this factor.
const ABOVE_RAW_MAX: f64 = 1.1;

/// Repeats of the raw device that differ by more than this factor are no rate to compare with.
const RAW_SPREAD_MAX: f64 = 2.0;

/// Measured rate as a share of the rate that the raw device allows; `None` where that was not measured, or
/// [`no_share`] has a reason.
pub(crate) fn share_of_raw(operation: &StoreOperation) -> Option<f64> {
    let share = plain_share(operation)?;
    no_share(operation).is_none().then_some(share)
}

fn plain_share(operation: &StoreOperation) -> Option<f64> {
    operation.raw_per_second.filter(|raw| *raw > 0.0).map(|raw| operation.measured_per_second / raw)
}

/// Why a measured rate is no share of the raw device's.
pub(crate) fn no_share(operation: &StoreOperation) -> Option<String> {
    let share = plain_share(operation)?;
    let rates = &operation.raw_repeats_per_second;
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let why = if rates.len() == 1 {
        "the raw device was measured once, which does not show how far noise has moved it".to_owned()
    } else if share > ABOVE_RAW_MAX {
        format!(
            "{} per second are more than the {} that the raw device allows, which cannot be but for noise",
            unit::count(operation.measured_per_second),
            unit::count(operation.raw_per_second?)
        )
    } else if most > RAW_SPREAD_MAX * least {
        format!(
            "repeats of the raw device lie between {} and {} per second",
            unit::count(least),
            unit::count(most)
        )
    } else {
        return None;
    };
    Some(format!("{} of raw undetermined: {why}.", operation_name(operation)))
}

/// The sentences of [`no_share`].
pub(crate) fn shares_left_out(store: &StoreRun) -> Vec<String> {
    store.operations.iter().filter_map(no_share).collect()
}

/// Measured, predicted and raw, for each kind of operation.
pub(crate) fn operation_table(store: &StoreRun) -> Table {
    let mut table = Table::new(&[
        ("operations/s × under way", Kind::Label),
        ("measured", Kind::Number),
        ("predicted", Kind::Number),
        ("raw", Kind::Number),
        ("of raw", Kind::Number),
        ("CPU busy", Kind::Number),
        ("median", Kind::Number),
        ("99 %", Kind::Number),
        ("requests", Kind::Prose),
    ]);
    let optional = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "–".into(), show);
    for operation in &store.operations {
        table.push([
            operation_name(operation).into(),
            Cell::toned(unit::count(operation.measured_per_second), Tone::Strong),
            optional(operation.predicted_per_second, unit::count).into(),
            optional(operation.raw_per_second, unit::count).into(),
            match (share_of_raw(operation), no_share(operation)) {
                (None, Some(_)) => Cell::toned("noise", Tone::Warning),
                (share, _) => optional(share, unit::share).into(),
            },
            optional(operation.cpu_busy_share, unit::share).into(),
            unit::micros(operation.latency.p50_us).into(),
            unit::micros(operation.latency.p99_us).into(),
            requests(operation).into(),
        ]);
    }
    table
}

/// Requests of an operation to the drive.
fn requests(operation: &StoreOperation) -> String {
    let mut parts = Vec::new();
    if operation.reads_per_operation >= 0.005 {
        parts.push(format!("{} reads", unit::three_digits(operation.reads_per_operation)));
    }
    if operation.written_bytes_per_operation >= 0.5 {
        parts.push(format!("{} written", unit::bytes(operation.written_bytes_per_operation)));
    }
    let each = if parts.is_empty() { "nothing".into() } else { parts.join(" and ") };
    format!("{each} each; {}", operation.requests)
}
