//! Sizes and places: leaves, nodes, write units, segments, stripes, placement.

use flashgrain_model::{Access, Estimate};
use flashgrain_settings::drive::{Decision, Setting};
use flashgrain_settings::{Bytes, PagePlacement, SegmentShape};

use super::noise::{Span, choose, smallest_good, typical_spread};
use super::{DecisionInputs, default, learned, why};
use crate::schema::Point;
use crate::trial::bytes_text;

/// Smallest page of the buffer pool.
const LEAF_BYTES_MIN: u64 = 4 << 10;

const DEFAULT_LEAF: Bytes = Bytes(4 << 10);
const DEFAULT_WRITE_UNIT: Bytes = Bytes(64 << 10);
const DEFAULT_SEGMENT_BYTES: u64 = 8 << 20;
const DEFAULT_SCAN_NODE: Bytes = Bytes(1 << 20);

/// Share of the best rate that a size must reach: more costs memory and latency for little.
const GOOD_FRACTION: f64 = 0.9;

/// Share of the best rate at which setup and transfer cost the same (Corollary 6).
const HALF: f64 = 0.5;

/// Write units per segment at least, so that a cleaner has something to choose from.
const UNITS_PER_SEGMENT: u64 = 64;

pub(super) fn decide(known: &DecisionInputs<'_>) -> Vec<Decision> {
    let unit = write_unit_span(known);
    vec![
        leaf(known),
        write_unit(known, &unit),
        segment(known, &unit),
        stripe_unit(&unit),
        scan(known),
        placement(known),
    ]
}

fn leaf(known: &DecisionInputs<'_>) -> Decision {
    let (iops, latency) = (&known.learned.best_page_iops_bytes, &known.learned.best_page_latency_bytes);
    let (by_iops, by_latency) = (iops.estimate.value(), latency.estimate.value());
    let Some(best) = by_iops.or(by_latency).map(|bytes| bytes as u64) else {
        return default(Setting::LeafSize(DEFAULT_LEAF), why(iops));
    };
    let text = |value: Option<f64>| {
        value.map_or("an undetermined size".to_owned(), |bytes| bytes_text(bytes as u64))
    };
    let because = format!(
        "random reads per second are highest with {}, latency at depth 1 lowest with {}{}",
        text(by_iops),
        text(by_latency),
        if best < LEAF_BYTES_MIN {
            "; smaller pages than 4 KiB cost more memory per record than they save"
        } else {
            ""
        }
    );
    learned(Setting::LeafSize(Bytes(best.max(LEAF_BYTES_MIN))), because)
}

/// The largest of the desirable write size, the stripe, and the size that reaches half of the best write
/// rate; the stripe counts where it is known.
///
/// # Errors
/// The number that is missing, in words.
fn write_unit_span(known: &DecisionInputs<'_>) -> Result<Span<Bytes>, String> {
    let learned = known.learned;
    let Estimate::Determined { value, low, high } = learned.desirable_write_bytes.estimate else {
        return Err(why(&learned.desirable_write_bytes).to_owned());
    };
    let [least, at_low, at_high] = match learned.stripe_bytes.estimate {
        Estimate::Determined { value: stripe, low: stripe_low, high: stripe_high } => {
            [value.max(stripe), low.max(stripe_low), high.max(stripe_high)]
        }
        Estimate::Undetermined { .. } => [value, low, high],
    };
    let bytes = |bytes: f64| Bytes((bytes as u64).max(LEAF_BYTES_MIN));
    let least = Span::new(bytes(least), [bytes(at_low), bytes(at_high)]);
    let Some((half_rate, _)) = good_write_bytes(&known.measurements.order, HALF) else {
        return match least.min >= DEFAULT_WRITE_UNIT {
            true => Ok(least),
            false => Err(format!(
                "at least {}, the smallest desirable write; too few writes were measured to tell which size reaches half of the \
                 best rate",
                bytes_text(least.value.0)
            )),
        };
    };
    let half_rate = half_rate.map(|bytes| Bytes(bytes.next_power_of_two()));
    let larger = |half: Bytes, least: Bytes| if half > least { half } else { least };
    let ends = [larger(half_rate.min, least.min), larger(half_rate.max, least.max)];
    Ok(Span::new(larger(half_rate.value, least.value), ends))
}

fn write_unit(known: &DecisionInputs<'_>, unit: &Result<Span<Bytes>, String>) -> Decision {
    let learned_values = known.learned;
    let unit = match unit {
        Ok(unit) => *unit,
        Err(because) => return default(Setting::WriteUnit(DEFAULT_WRITE_UNIT), because),
    };
    let text = |value: Option<f64>| value.map_or("undetermined".to_owned(), |bytes| bytes_text(bytes as u64));
    let half = good_write_bytes(&known.measurements.order, HALF).map(|(span, _)| span.value as f64);
    let because = format!(
        "the largest of: smallest desirable write {}, stripe {}, half of the best write rate reached from {} on (rules 1 and 3)",
        text(learned_values.desirable_write_bytes.estimate.value()),
        text(learned_values.stripe_bytes.estimate.value()),
        text(half)
    );
    choose(Setting::WriteUnit, unit, DEFAULT_WRITE_UNIT, &because)
}

/// The smallest size of random writes, over all depths, that reaches `share` of the best rate; and that rate.
fn good_write_bytes(points: &[Point], share: f64) -> Option<(Span<u64>, f64)> {
    let is_write = |point: &&Point| point.workload.access() == Some(Access::Write) && point.is_long_enough();
    let writes: Vec<&Point> = points.iter().filter(is_write).collect();
    smallest_good(&writes, typical_spread(points), share, |point| point.workload.request_bytes)
}

fn segment(known: &DecisionInputs<'_>, unit: &Result<Span<Bytes>, String>) -> Decision {
    let values = [&known.learned.stripe_bytes, &known.learned.desirable_write_bytes];
    let align = values
        .iter()
        .find_map(|value| value.estimate.value())
        .map(|bytes| (bytes as u64).max(LEAF_BYTES_MIN));
    let align_bytes = align.unwrap_or(DEFAULT_WRITE_UNIT.0);
    let segment = |bytes| Setting::Segment(SegmentShape { bytes, align_bytes });
    let Some((good, best)) = good_write_bytes(&known.measurements.order, GOOD_FRACTION) else {
        return default(segment(DEFAULT_SEGMENT_BYTES), "too few writes were measured by order");
    };
    // The noise of the unit counts in the unit's decision.
    let Bytes(unit) = unit.as_ref().map_or(DEFAULT_WRITE_UNIT, |unit| unit.settled(DEFAULT_WRITE_UNIT));
    let bytes = good.map(|good| {
        (UNITS_PER_SEGMENT * unit)
            .max(good)
            .next_power_of_two()
            .max(DEFAULT_SEGMENT_BYTES)
            .next_multiple_of(align_bytes.max(1))
    });
    let because = format!(
        "writes reach 90 % of {:.0} MB/s{} from {} on; {UNITS_PER_SEGMENT} write units give the cleaner a choice; aligned to the {}",
        best / 1e6,
        known.write_regime(),
        bytes_text(good.value),
        match values.map(|value| value.estimate.value().is_some()) {
            [true, _] => "stripe",
            [false, true] => "smallest desirable write",
            [false, false] => "default, as the drive's own alignment is undetermined",
        }
    );
    choose(segment, bytes, DEFAULT_SEGMENT_BYTES, &because)
}

fn stripe_unit(unit: &Result<Span<Bytes>, String>) -> Decision {
    let because = "a write unit stays on one drive and fills its stripes";
    match unit {
        Ok(unit) => choose(Setting::StripeUnit, *unit, DEFAULT_WRITE_UNIT, because),
        Err(why) => default(Setting::StripeUnit(DEFAULT_WRITE_UNIT), why),
    }
}

fn scan(known: &DecisionInputs<'_>) -> Decision {
    let half = &known.learned.half_bandwidth_bytes;
    let node_of = |bytes: f64| Bytes((bytes as u64).clamp(LEAF_BYTES_MIN, 16 << 20).next_power_of_two());
    match half.estimate {
        Estimate::Determined { value, low, high } => {
            let because = format!(
                "half-bandwidth size {} (Corollary 6): a larger node gains less than it costs",
                bytes_text(value as u64)
            );
            let span = Span::new(value, [low, high]).map(node_of);
            choose(Setting::ScanNode, span, DEFAULT_SCAN_NODE, &because)
        }
        Estimate::Undetermined { .. } => default(Setting::ScanNode(DEFAULT_SCAN_NODE), why(half)),
    }
}

fn placement(known: &DecisionInputs<'_>) -> Decision {
    let learned_values = known.learned;
    let (chunk, hot) =
        (learned_values.chunk_bytes.estimate.value(), learned_values.hot_offset_bytes.estimate.value());
    match (chunk, hot) {
        (Some(chunk), Some(hot)) => {
            let drop = learned_values.hot_latency_drop.estimate.value().unwrap_or(0.0) * 100.0;
            let (chunk_bytes, shift_bytes) = (chunk as u64, hot as u64);
            let placement = match shift_bytes {
                0 => PagePlacement::Aligned { chunk_bytes },
                _ => PagePlacement::Shifted { chunk_bytes, shift_bytes },
            };
            let because = format!("reads there are {drop:.0} % faster (rules 2 and 4)");
            learned(Setting::PagePlacement(placement), because)
        }
        _ => default(Setting::PagePlacement(PagePlacement::OwnSize), why(&learned_values.chunk_bytes)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use flashgrain_model::{Estimate, Workload};
    use flashgrain_settings::drive;

    use super::*;
    use crate::decide::noise::tests::point;
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
            cap: None,
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

    fn decided<T>(learned: &Learned, setting: fn(&Setting) -> Option<T>) -> (T, Decision) {
        let measurements = Measurements::default();
        let known = DecisionInputs { learned, measurements: &measurements, backend: None };
        let decisions = decide(&known);
        let (value, decision) = drive::decided(&decisions, setting).unwrap();
        (value, decision.clone())
    }

    #[test]
    fn without_numbers_there_are_defaults_that_say_so() {
        let learned = nothing_learned();
        let measurements = Measurements::default();
        let known = DecisionInputs { learned: &learned, measurements: &measurements, backend: None };
        for decision in decide(&known) {
            assert!(decision.from_default && !decision.because.is_empty(), "{decision:?}");
            let is_size = decision.setting.page_placement().is_none();
            assert_eq!(decision.setting.amount().is_some(), is_size, "{decision:?}");
        }
        assert_eq!(decided(&learned, Setting::write_unit).1.because, "the test says so");
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
        assert_eq!(decided(&learned, Setting::write_unit).0, Bytes(64 << 10));
        assert_eq!(decided(&learned, Setting::stripe_unit).0, Bytes(64 << 10));
        let shifted = PagePlacement::Shifted { chunk_bytes: 64 << 10, shift_bytes: 32 << 10 };
        let (placement, decision) = decided(&learned, Setting::page_placement);
        assert_eq!(
            (placement, decision.setting.value().as_str()),
            (shifted, "pages of 64 KiB shifted by 32 KiB")
        );
        let (leaf, decision) = decided(&learned, Setting::leaf_size);
        assert_eq!((leaf, decision.from_default), (Bytes(4096), false));
    }

    /// Random writes of a drive whose best rate takes 64 KiB, by depth 4.
    fn writes(noise: f64, repeats: u32) -> Vec<Point> {
        [(4096.0, 30.0), (16_384.0, 85.0), (65_536.0, 190.0), (262_144.0, 200.0)]
            .into_iter()
            .map(|(bytes, rate)| {
                point(Workload::random(Access::Write, bytes, 4.0), rate * 1e6, noise, repeats)
            })
            .collect()
    }

    #[test]
    fn sizes_that_noise_hides_are_defaults_that_say_so() {
        let learned = Learned { desirable_write_bytes: value(Some(4096.0)), ..nothing_learned() };
        let decided = |noise: f64, repeats: u32| {
            let measurements = Measurements { order: writes(noise, repeats), ..Measurements::default() };
            let known = DecisionInputs { learned: &learned, measurements: &measurements, backend: None };
            let decisions = decide(&known);
            let bytes = |setting: &Setting| match setting {
                Setting::WriteUnit(Bytes(bytes)) | Setting::StripeUnit(Bytes(bytes)) => Some(*bytes),
                Setting::Segment(segment) => Some(segment.bytes),
                _ => None,
            };
            let rows = |decision: &Decision| Some((bytes(&decision.setting)?, decision.hidden_by_noise));
            decisions.iter().filter_map(rows).collect::<Vec<_>>()
        };
        let quiet = [(64 << 10, false), (8 << 20, false), (64 << 10, false)];
        assert_eq!(decided(0.01, 3), quiet);
        // 16 KiB may reach half of the best rate as well; segments are larger than either needs.
        let noisy = [(64 << 10, true), (8 << 20, false), (64 << 10, true)];
        assert_eq!(decided(0.15, 3), noisy);
        assert_eq!(decided(0.0, 1), noisy, "a single repeat is not free of noise");
    }

    #[test]
    fn a_write_unit_needs_rates_of_writes_and_follows_the_whole_interval() {
        let unit = |[value, low, high]: [f64; 3], order: Vec<Point>| {
            let mut learned = nothing_learned();
            learned.desirable_write_bytes.estimate = Estimate::Determined { value, low, high };
            let measurements = Measurements { order, ..Measurements::default() };
            let known = DecisionInputs { learned: &learned, measurements: &measurements, backend: None };
            let found = write_unit(&known, &write_unit_span(&known));
            (found.setting.write_unit().unwrap().0 >> 10, found.from_default)
        };
        let kib = 1024.0;
        assert_eq!(unit([kib; 3], writes(0.01, 3)), (64, false));
        // No rates of writes: the smallest desirable write alone is no write unit.
        assert_eq!(unit([kib; 3], Vec::new()), (64, true));
        assert_eq!(unit([128.0 * kib; 3], Vec::new()), (128, false));
        // Resamples that lead to 128 KiB as well.
        assert_eq!(unit([kib, kib, 128.0 * kib], writes(0.01, 3)), (64, true));
    }

    #[test]
    fn a_segment_that_noise_hides_is_a_default_that_says_so() {
        let huge: Vec<Point> = [(8.0, 170.0), (16.0, 190.0), (32.0, 200.0)]
            .into_iter()
            .map(|(mib, rate)| {
                let workload = Workload::random(Access::Write, mib * 1_048_576.0, 4.0);
                point(workload, rate * 1e6, 0.1, 3)
            })
            .collect();
        let measurements = Measurements { order: huge, ..Measurements::default() };
        let learned = nothing_learned();
        let known = DecisionInputs { learned: &learned, measurements: &measurements, backend: None };
        let found = segment(&known, &Err(String::new()));
        let shape = SegmentShape { bytes: 8 << 20, align_bytes: 64 << 10 };
        assert_eq!((found.setting.segment(), found.hidden_by_noise), (Some(shape), true), "{found:?}");
        assert!(found.because.contains("8 MiB, aligned to 64 KiB to 32 MiB"), "{found:?}");
    }
}
