//! The store on the drive, beside the rates that the drive allows.

use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::{StoreOperation, StoreRun};

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
            "It is {times:.1} times as large as its cache only, for want of time to fill it: many look-ups found what they \
             wanted in memory; give it more --seconds."
        )
    })
}

/// How to read the numbers of its operations.
pub(crate) const STORE_LIMITS: &str = "Predicted and raw: operations per second if the drive did nothing but the requests that an operation brings about, one \
    after the other, at the cost that the models and the flush measurements of this profile give, and at that of the raw device in the same run.";

/// How the layout was decided.
pub(crate) fn layout_table(store: &StoreRun) -> Table {
    let mut table = Table::new(&[("layout", Kind::Label), ("value", Kind::Number), ("because", Kind::Prose)]);
    for decision in &store.layout {
        table.push([
            decision.setting.name().into(),
            Cell::toned(decision.setting.value(), Tone::Strong),
            decision.because.as_str().into(),
        ]);
    }
    table
}

/// `random look-ups × 64`: with how many of them under way.
pub(crate) fn operation_name(operation: &StoreOperation) -> String {
    format!("{} × {}", operation.operation, operation.concurrency)
}

/// Measured rate as a share of the rate that the raw device allows.
pub(crate) fn share_of_raw(operation: &StoreOperation) -> Option<f64> {
    operation.raw_per_second.filter(|raw| *raw > 0.0).map(|raw| operation.measured_per_second / raw)
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
            optional(share_of_raw(operation), unit::share).into(),
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
