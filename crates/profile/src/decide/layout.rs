//! Sizes and places: leaves, nodes, write units, segments, stripes, placement.

use flashgrain_model::{Access, Estimate, Workload};

use super::{Known, default, default_bytes, hidden, learned, learned_bytes, why};
use crate::schema::{Amount, Decision, Point};
use crate::trial::bytes_text;
use crate::verify::predict;

/// Smallest page of the buffer pool.
const SMALLEST_LEAF_BYTES: u64 = 4 << 10;

const DEFAULT_LEAF_BYTES: u64 = 4 << 10;
const DEFAULT_WRITE_UNIT_BYTES: u64 = 64 << 10;
const DEFAULT_SEGMENT_BYTES: u64 = 8 << 20;
const DEFAULT_SCAN_BYTES: u64 = 1 << 20;

/// Share of the best rate that a size must reach: more costs memory and latency for little.
const GOOD_SHARE: f64 = 0.9;

/// Where setup and transfer cost the same (Corollary 6).
const HALF: f64 = 0.5;

/// Write units per segment at least, so that a cleaner has something to choose from.
const UNITS_PER_SEGMENT: u64 = 64;

pub(super) fn decide(known: &Known<'_>) -> Vec<Decision> {
    let unit = write_unit_bytes(known);
    let mut decisions =
        vec![leaf(known), write_unit(known, unit), segment(known, unit), stripe_unit(known, unit)];
    decisions.push(scan(known));
    decisions.push(table(known));
    decisions.push(placement(known));
    decisions
}

fn leaf(known: &Known<'_>) -> Decision {
    const SETTING: &str = "leaf size";
    let (iops, latency) = (&known.learned.best_page_iops_bytes, &known.learned.best_page_latency_bytes);
    let (by_iops, by_latency) = (iops.estimate.value(), latency.estimate.value());
    let Some(best) = by_iops.or(by_latency).map(|bytes| bytes as u64) else {
        return default_bytes(SETTING, DEFAULT_LEAF_BYTES, why(iops));
    };
    let text = |value: Option<f64>| {
        value.map_or("an undetermined size".to_owned(), |bytes| bytes_text(bytes as u64))
    };
    let because = format!(
        "random reads per second are highest with {}, latency at depth 1 lowest with {}{}",
        text(by_iops),
        text(by_latency),
        if best < SMALLEST_LEAF_BYTES {
            "; smaller pages than 4 KiB cost more memory per record than they save"
        } else {
            ""
        }
    );
    learned_bytes(SETTING, best.max(SMALLEST_LEAF_BYTES), because)
}

/// The largest of the desirable write size, the stripe, and what reaches half of the best write rate, where these are known.
fn write_unit_bytes(known: &Known<'_>) -> Option<u64> {
    let learned = known.learned;
    let desirable = learned.desirable_write_bytes.estimate.value();
    let stripe = learned.stripe_bytes.estimate.value();
    desirable?;
    let half_rate =
        good_write_bytes(&known.measurements.order, HALF).map(|(bytes, _)| bytes.next_power_of_two());
    let bytes = desirable.into_iter().chain(stripe).map(|bytes| bytes as u64).chain(half_rate).max()?;
    Some(bytes.max(SMALLEST_LEAF_BYTES))
}

fn write_unit(known: &Known<'_>, unit: Option<u64>) -> Decision {
    const SETTING: &str = "write unit";
    let learned_values = known.learned;
    let Some(unit) = unit else {
        let because = why(&learned_values.desirable_write_bytes);
        return default_bytes(SETTING, DEFAULT_WRITE_UNIT_BYTES, because);
    };
    let text = |value: Option<f64>| value.map_or("undetermined".to_owned(), |bytes| bytes_text(bytes as u64));
    let half = good_write_bytes(&known.measurements.order, HALF).map(|(bytes, _)| bytes as f64);
    let because = format!(
        "the largest of: smallest desirable write {}, stripe {}, half of the best write rate reached from {} on (rules 1 and 3)",
        text(learned_values.desirable_write_bytes.estimate.value()),
        text(learned_values.stripe_bytes.estimate.value()),
        text(half)
    );
    learned_bytes(SETTING, unit, because)
}

/// The smallest size of random writes, over all depths, that reaches `share` of the best rate; and that rate.
fn good_write_bytes(points: &[Point], share: f64) -> Option<(u64, f64)> {
    let writes: Vec<&Point> =
        points.iter().filter(|point| point.workload.access() == Some(Access::Write)).collect();
    let best = writes.iter().map(|point| point.bytes_per_second).reduce(f64::max)?;
    writes
        .iter()
        .filter(|point| point.bytes_per_second >= share * best)
        .min_by(|a, b| a.workload.request_bytes.total_cmp(&b.workload.request_bytes))
        .map(|point| (point.workload.request_bytes as u64, best))
}

fn segment(known: &Known<'_>, unit: Option<u64>) -> Decision {
    const SETTING: &str = "segment size and alignment";
    let values = [&known.learned.stripe_bytes, &known.learned.desirable_write_bytes];
    let align = values
        .iter()
        .find_map(|value| value.estimate.value())
        .map(|bytes| (bytes as u64).max(SMALLEST_LEAF_BYTES));
    let Some((good, best)) = good_write_bytes(&known.measurements.order, GOOD_SHARE) else {
        let text = format!(
            "{}, aligned to {}",
            bytes_text(DEFAULT_SEGMENT_BYTES),
            bytes_text(align.unwrap_or(DEFAULT_WRITE_UNIT_BYTES))
        );
        return default(SETTING, text, "no writes were measured by order")
            .of(Amount::Bytes(DEFAULT_SEGMENT_BYTES));
    };
    let align = align.unwrap_or(DEFAULT_WRITE_UNIT_BYTES);
    let bytes = (UNITS_PER_SEGMENT * unit.unwrap_or(DEFAULT_WRITE_UNIT_BYTES))
        .max(good)
        .next_power_of_two()
        .max(DEFAULT_SEGMENT_BYTES)
        .next_multiple_of(align.max(1));
    let because = format!(
        "writes reach 90 % of {:.0} MB/s from {} on; {UNITS_PER_SEGMENT} write units give the cleaner a choice; aligned to the {}",
        best / 1e6,
        bytes_text(good),
        match values.map(|value| value.estimate.value().is_some()) {
            [true, _] => "stripe",
            [false, true] => "smallest desirable write",
            [false, false] => "default, as the drive's own alignment is undetermined",
        }
    );
    learned(SETTING, format!("{}, aligned to {}", bytes_text(bytes), bytes_text(align)), because)
        .of(Amount::Bytes(bytes))
}

fn stripe_unit(known: &Known<'_>, unit: Option<u64>) -> Decision {
    const SETTING: &str = "stripe unit of a drive set";
    match unit {
        Some(unit) => learned_bytes(SETTING, unit, "a write unit stays on one drive and fills its stripes"),
        None => default_bytes(SETTING, DEFAULT_WRITE_UNIT_BYTES, why(&known.learned.stripe_bytes)),
    }
}

fn scan(known: &Known<'_>) -> Decision {
    const SETTING: &str = "node size for scans at depth 1";
    let half = &known.learned.half_bandwidth_bytes;
    let node_of = |bytes: f64| (bytes as u64).clamp(SMALLEST_LEAF_BYTES, 16 << 20).next_power_of_two();
    match half.estimate {
        Estimate::Determined { low, high, .. } if node_of(low) != node_of(high) => {
            let range = [low, high].map(|bytes| bytes_text(bytes as u64)).join(" – ");
            hidden(
                SETTING,
                bytes_text(DEFAULT_SCAN_BYTES),
                format!("half-bandwidth size {range} (Corollary 6)"),
            )
            .of(Amount::Bytes(DEFAULT_SCAN_BYTES))
        }
        Estimate::Determined { value: bytes, .. } => {
            let node = node_of(bytes);
            let because = format!(
                "half-bandwidth size {} (Corollary 6): a larger node gains less than it costs",
                bytes_text(bytes as u64)
            );
            learned_bytes(SETTING, node, because)
        }
        Estimate::Undetermined { .. } => default_bytes(SETTING, DEFAULT_SCAN_BYTES, why(half)),
    }
}

/// Table size of an LSM-tree: what one stream of compaction must write at once to use the drive, by the fitted setup and transfer costs.
fn table(known: &Known<'_>) -> Decision {
    const SETTING: &str = "table write size";
    const STREAMS: f64 = 4.0;
    let sizes: Vec<u64> = (0..13).map(|doubling| (4 << 10) << doubling).collect();
    let rate = |bytes: u64| {
        known
            .models
            .and_then(|models| predict(models, &Workload::random(Access::Write, bytes as f64, STREAMS)))
    };
    let best = sizes.iter().filter_map(|bytes| rate(*bytes)).reduce(f64::max);
    let good = best.and_then(|best| {
        sizes
            .iter()
            .find(|bytes| rate(**bytes).is_some_and(|rate| rate >= GOOD_SHARE * best))
            .map(|bytes| (*bytes, best))
    });
    match good {
        Some((bytes, best)) => learned_bytes(
            SETTING,
            bytes,
            format!("s(4) and β(4): {STREAMS} streams reach 90 % of {:.0} MB/s with it", best / 1e6),
        ),
        None => default_bytes(SETTING, DEFAULT_SCAN_BYTES, "write costs were not fitted"),
    }
}

fn placement(known: &Known<'_>) -> Decision {
    const SETTING: &str = "page placement in a write unit";
    let learned_values = known.learned;
    let (chunk, hot) =
        (learned_values.chunk_bytes.estimate.value(), learned_values.hot_offset_bytes.estimate.value());
    match (chunk, hot) {
        (Some(chunk), Some(hot)) => {
            let drop = learned_values.hot_latency_drop.estimate.value().unwrap_or(0.0) * 100.0;
            let value = if hot > 0.0 {
                format!("pages of {} shifted by {}", bytes_text(chunk as u64), bytes_text(hot as u64))
            } else {
                format!("pages aligned to {}", bytes_text(chunk as u64))
            };
            learned(SETTING, value, format!("reads there are {drop:.0} % faster (rules 2 and 4)"))
        }
        _ => default(SETTING, "pages aligned to their size", why(&learned_values.chunk_bytes)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use flashgrain_model::Estimate;

    use super::*;
    use crate::schema::{Learned, LearnedValue, Measurements};

    fn value(number: Option<f64>) -> LearnedValue {
        let estimate = match number {
            Some(value) => Estimate::Determined { value, low: value, high: value },
            None => Estimate::Undetermined { why: "the test says so".into() },
        };
        LearnedValue { estimate, evidence: String::new(), confidence: 1.0 }
    }

    pub(crate) fn nothing_learned() -> Learned {
        let none = value(None);
        Learned {
            desirable_write_bytes: none.clone(),
            stripe_bytes: none.clone(),
            chunk_bytes: none.clone(),
            hot_offset_bytes: none.clone(),
            hot_latency_drop: none.clone(),
            flash_page_bytes: none.clone(),
            best_page_iops_bytes: none.clone(),
            best_page_latency_bytes: none.clone(),
            depth_90: none.clone(),
            depth_99: none.clone(),
            parallelism: none.clone(),
            saturation_bytes_per_second: none.clone(),
            half_bandwidth_bytes: none,
        }
    }

    fn decided(learned: &Learned, setting: &str) -> Decision {
        let measurements = Measurements::default();
        let known = Known { learned, measurements: &measurements, models: None };
        decide(&known).into_iter().find(|decision| decision.setting == setting).unwrap()
    }

    #[test]
    fn without_numbers_there_are_defaults_that_say_so() {
        let learned = nothing_learned();
        let measurements = Measurements::default();
        let known = Known { learned: &learned, measurements: &measurements, models: None };
        for decision in decide(&known) {
            assert!(decision.from_default && !decision.because.is_empty(), "{decision:?}");
            let is_size = decision.setting != "page placement in a write unit";
            assert_eq!(decision.bytes().is_some(), is_size, "{decision:?}");
        }
        assert_eq!(decided(&learned, "write unit").because, "the test says so");
    }

    #[test]
    fn numbers_decide() {
        // The hidden-parameters paper's SSD-S.
        let learned = Learned {
            desirable_write_bytes: value(Some(32768.0)),
            stripe_bytes: value(Some(65536.0)),
            chunk_bytes: value(Some(65536.0)),
            hot_offset_bytes: value(Some(32768.0)),
            hot_latency_drop: value(Some(0.39)),
            best_page_iops_bytes: value(Some(512.0)),
            ..nothing_learned()
        };
        assert_eq!(decided(&learned, "write unit").value, "64 KiB");
        assert_eq!(decided(&learned, "stripe unit of a drive set").value, "64 KiB");
        assert_eq!(
            decided(&learned, "page placement in a write unit").value,
            "pages of 64 KiB shifted by 32 KiB"
        );
        let leaf = decided(&learned, "leaf size");
        assert_eq!((leaf.value.as_str(), leaf.bytes(), leaf.from_default), ("4 KiB", Some(4096), false));
    }
}
