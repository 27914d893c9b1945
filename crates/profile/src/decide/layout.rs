//! Sizes and places: leaves, nodes, write units, segments, stripes, placement.

use flashgrain_model::{Access, CostPart, Estimate, IoModel, Mqssd, Parameter};

use super::noise::{Span, choose, smallest_good, typical_spread};
use super::{DecisionInputs, default, default_bytes, learned, learned_bytes, size_shown, why};
use crate::schema::{Amount, Decision, Point};
use crate::trial::bytes_text;

/// Smallest page of the buffer pool.
const LEAF_BYTES_MIN: u64 = 4 << 10;

const DEFAULT_LEAF_BYTES: u64 = 4 << 10;
const DEFAULT_WRITE_UNIT_BYTES: u64 = 64 << 10;
const DEFAULT_SEGMENT_BYTES: u64 = 8 << 20;
const DEFAULT_SCAN_BYTES: u64 = 1 << 20;

/// Share of the best rate that a size must reach: more costs memory and latency for little.
const GOOD_FRACTION: f64 = 0.9;

/// Share of the best rate at which setup and transfer cost the same (Corollary 6).
const HALF: f64 = 0.5;

/// Write units per segment at least, so that a cleaner has something to choose from.
const UNITS_PER_SEGMENT: u64 = 64;

pub(super) fn decide(known: &DecisionInputs<'_>) -> Vec<Decision> {
    let unit = write_unit_span(known);
    let mut decisions =
        vec![leaf(known), write_unit(known, unit), segment(known, unit), stripe_unit(known, unit)];
    decisions.push(scan(known));
    decisions.push(table(known));
    decisions.push(placement(known));
    decisions
}

fn leaf(known: &DecisionInputs<'_>) -> Decision {
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
        if best < LEAF_BYTES_MIN {
            "; smaller pages than 4 KiB cost more memory per record than they save"
        } else {
            ""
        }
    );
    learned_bytes(SETTING, best.max(LEAF_BYTES_MIN), because)
}

/// The largest of the desirable write size, the stripe, and the size that reaches half of the best write
/// rate, where these are known.
fn write_unit_span(known: &DecisionInputs<'_>) -> Option<Span<u64>> {
    let learned = known.learned;
    let desirable = learned.desirable_write_bytes.estimate.value()?;
    let stripe = learned.stripe_bytes.estimate.value();
    let least = desirable.max(stripe.unwrap_or(0.0)) as u64;
    let least = least.max(LEAF_BYTES_MIN);
    let half_rate = good_write_bytes(&known.measurements.order, HALF);
    Some(match half_rate {
        Some((span, _)) => span.map(|bytes| bytes.next_power_of_two().max(least)),
        None => Span::new(least, [least, least]),
    })
}

fn write_unit(known: &DecisionInputs<'_>, unit: Option<Span<u64>>) -> Decision {
    const SETTING: &str = "write unit";
    let learned_values = known.learned;
    let Some(unit) = unit else {
        let because = why(&learned_values.desirable_write_bytes);
        return default_bytes(SETTING, DEFAULT_WRITE_UNIT_BYTES, because);
    };
    let text = |value: Option<f64>| value.map_or("undetermined".to_owned(), |bytes| bytes_text(bytes as u64));
    let half = good_write_bytes(&known.measurements.order, HALF).map(|(span, _)| span.value as f64);
    let because = format!(
        "the largest of: smallest desirable write {}, stripe {}, half of the best write rate reached from {} on (rules 1 and 3)",
        text(learned_values.desirable_write_bytes.estimate.value()),
        text(learned_values.stripe_bytes.estimate.value()),
        text(half)
    );
    choose(SETTING, unit, DEFAULT_WRITE_UNIT_BYTES, size_shown, &because)
}

/// The smallest size of random writes, over all depths, that reaches `share` of the best rate; and that rate.
fn good_write_bytes(points: &[Point], share: f64) -> Option<(Span<u64>, f64)> {
    let is_write = |point: &&Point| point.workload.access() == Some(Access::Write) && point.is_long_enough();
    let writes: Vec<&Point> = points.iter().filter(is_write).collect();
    smallest_good(&writes, typical_spread(points), share, |point| point.workload.request_bytes)
}

fn segment(known: &DecisionInputs<'_>, unit: Option<Span<u64>>) -> Decision {
    const SETTING: &str = "segment size and alignment";
    let values = [&known.learned.stripe_bytes, &known.learned.desirable_write_bytes];
    let align = values
        .iter()
        .find_map(|value| value.estimate.value())
        .map(|bytes| (bytes as u64).max(LEAF_BYTES_MIN));
    let Some((good, best)) = good_write_bytes(&known.measurements.order, GOOD_FRACTION) else {
        let text = format!(
            "{}, aligned to {}",
            bytes_text(DEFAULT_SEGMENT_BYTES),
            bytes_text(align.unwrap_or(DEFAULT_WRITE_UNIT_BYTES))
        );
        return default(SETTING, text, "too few writes were measured by order")
            .of(Amount::Bytes(DEFAULT_SEGMENT_BYTES));
    };
    let align = align.unwrap_or(DEFAULT_WRITE_UNIT_BYTES);
    // The noise of the unit counts in the unit's decision.
    let unit = unit.map_or(DEFAULT_WRITE_UNIT_BYTES, |unit| unit.settled(DEFAULT_WRITE_UNIT_BYTES));
    let segment = good.map(|good| {
        (UNITS_PER_SEGMENT * unit)
            .max(good)
            .next_power_of_two()
            .max(DEFAULT_SEGMENT_BYTES)
            .next_multiple_of(align.max(1))
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
    let show =
        |bytes| (format!("{}, aligned to {}", bytes_text(bytes), bytes_text(align)), Amount::Bytes(bytes));
    choose(SETTING, segment, DEFAULT_SEGMENT_BYTES, show, &because)
}

fn stripe_unit(known: &DecisionInputs<'_>, unit: Option<Span<u64>>) -> Decision {
    const SETTING: &str = "stripe unit of a drive set";
    let because = "a write unit stays on one drive and fills its stripes";
    match unit {
        Some(unit) => choose(SETTING, unit, DEFAULT_WRITE_UNIT_BYTES, size_shown, because),
        None => default_bytes(SETTING, DEFAULT_WRITE_UNIT_BYTES, why(&known.learned.stripe_bytes)),
    }
}

fn scan(known: &DecisionInputs<'_>) -> Decision {
    const SETTING: &str = "node size for scans at depth 1";
    let half = &known.learned.half_bandwidth_bytes;
    let node_of = |bytes: f64| (bytes as u64).clamp(LEAF_BYTES_MIN, 16 << 20).next_power_of_two();
    match half.estimate {
        Estimate::Determined { value, low, high } => {
            let because = format!(
                "half-bandwidth size {} (Corollary 6): a larger node gains less than it costs",
                bytes_text(value as u64)
            );
            let span = Span::new(value, [low, high]).map(node_of);
            choose(SETTING, span, DEFAULT_SCAN_BYTES, size_shown, &because)
        }
        Estimate::Undetermined { .. } => default_bytes(SETTING, DEFAULT_SCAN_BYTES, why(half)),
    }
}

/// Streams of compaction that a table's size is decided for.
const TABLE_STREAMS: f64 = 4.0;

/// Setup and transfer of writes by so many streams, and the ends of their intervals: seconds per access and
/// per byte. `None` if they were not fitted.
fn table_costs(mqssd: &Mqssd) -> Option<[(f64, f64); 3]> {
    let costs = (
        mqssd.setup_seconds(Access::Write, TABLE_STREAMS)?,
        mqssd.transfer_seconds_per_byte(Access::Write, TABLE_STREAMS)?,
    );
    let parameters = mqssd.parameters();
    // Relative to the value, at the concurrency measured that is nearest; anything if it is undetermined
    // there.
    let interval = |symbol: &str| {
        let distance = |parameter: &&Parameter| {
            (parameter.at_concurrency.unwrap_or(f64::INFINITY) / TABLE_STREAMS).ln().abs()
        };
        let nearest = parameters
            .iter()
            .filter(|parameter| parameter.symbol == symbol)
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        match nearest.map(|parameter| &parameter.estimate) {
            Some(Estimate::Determined { value, low, high }) => (low / value, high / value),
            _ => (0.0, f64::INFINITY),
        }
    };
    let (setup, transfer) = (
        interval(&format!("{} fitted", CostPart::Setup.symbol(Access::Write))),
        interval(&format!("{} fitted", CostPart::Transfer.symbol(Access::Write))),
    );
    // An error that raises one cost lowers the other, since their sum was measured.
    Some([costs, (costs.0 * setup.0, costs.1 * transfer.1), (costs.0 * setup.1, costs.1 * transfer.0)])
}

/// The smallest table that reaches a good share of the best rate, and that rate.
fn good_table((setup, transfer): (f64, f64)) -> (u64, f64) {
    let sizes = || (0..13).map(|doubling| (4u64 << 10) << doubling);
    let rate = |bytes: u64| (setup / bytes as f64 + transfer).recip();
    let best = sizes().map(rate).fold(0.0, f64::max);
    let largest = sizes().next_back().unwrap_or(DEFAULT_SCAN_BYTES);
    (sizes().find(|bytes| rate(*bytes) >= GOOD_FRACTION * best).unwrap_or(largest), best)
}

/// Table size of an LSM-tree: the bytes that one stream of compaction must write at once to use the drive, by
/// the fitted setup and transfer costs.
fn table(known: &DecisionInputs<'_>) -> Decision {
    const SETTING: &str = "table write size";
    let costs = known.models.and_then(|models| table_costs(models.mqssd.as_ref()?));
    match costs.map(|costs| costs.map(good_table)) {
        Some([(bytes, best), (one, _), (other, _)]) => {
            let because = format!(
                "s(4) and β(4): {TABLE_STREAMS} streams reach 90 % of {:.0} MB/s with it{}",
                best / 1e6,
                known.write_regime()
            );
            choose(SETTING, Span::new(bytes, [one, other]), DEFAULT_SCAN_BYTES, size_shown, &because)
        }
        None => default_bytes(SETTING, DEFAULT_SCAN_BYTES, "write costs were not fitted"),
    }
}

fn placement(known: &DecisionInputs<'_>) -> Decision {
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
    use flashgrain_model::{Estimate, FitOptions, Sample, Workload, fit};

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

    fn decided(learned: &Learned, setting: &str) -> Decision {
        let measurements = Measurements::default();
        let known = DecisionInputs { learned, measurements: &measurements, models: None };
        decide(&known).into_iter().find(|decision| decision.setting == setting).unwrap()
    }

    #[test]
    fn without_numbers_there_are_defaults_that_say_so() {
        let learned = nothing_learned();
        let measurements = Measurements::default();
        let known = DecisionInputs { learned: &learned, measurements: &measurements, models: None };
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
            let known = DecisionInputs { learned: &learned, measurements: &measurements, models: None };
            let decisions = decide(&known);
            ["write unit", "segment size and alignment", "stripe unit of a drive set"].map(|setting| {
                let found = decisions.iter().find(|decision| decision.setting == setting).unwrap();
                (found.bytes(), found.hidden_by_noise)
            })
        };
        let quiet = [(Some(64 << 10), false), (Some(8 << 20), false), (Some(64 << 10), false)];
        assert_eq!(decided(0.01, 3), quiet);
        // 16 KiB may reach half of the best rate as well; segments are larger than either needs.
        let noisy = [(Some(64 << 10), true), (Some(8 << 20), false), (Some(64 << 10), true)];
        assert_eq!(decided(0.15, 3), noisy);
        assert_eq!(decided(0.0, 1), noisy, "a single repeat is not free of noise");
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
        let known = DecisionInputs { learned: &learned, measurements: &measurements, models: None };
        let found = segment(&known, None);
        assert_eq!((found.bytes(), found.hidden_by_noise), (Some(8 << 20), true), "{found:?}");
        assert!(found.because.contains("8 MiB, aligned to 64 KiB to 32 MiB"), "{found:?}");
    }

    #[test]
    fn a_table_size_follows_from_costs_that_their_noise_leaves_one_alternative() {
        let fitted = |noise: f64| {
            let sizes = [4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0];
            let workloads = [1.0, 2.0, 4.0, 8.0]
                .into_iter()
                .flat_map(|k| sizes.map(|bytes| Workload::random(Access::Write, bytes, k)));
            let samples: Vec<Sample> = workloads
                .enumerate()
                .map(|(index, workload)| {
                    let seconds_per_byte =
                        90e-6 / workload.concurrency * workload.random_accesses_per_byte() + 1e-9;
                    Sample {
                        experiment: "order".into(),
                        repeat: 0,
                        workload,
                        bytes_per_second: (1.0 + noise * (index as f64 * 2.4).sin()) / seconds_per_byte,
                    }
                })
                .collect();
            let models = fit(&samples, &FitOptions { resamples: 40, ..FitOptions::default() }).unwrap();
            let measurements = Measurements::default();
            let learned = nothing_learned();
            table(&DecisionInputs { learned: &learned, measurements: &measurements, models: Some(&models) })
        };
        // 22.5 µs and 1 ns per byte: 90 % takes 202 kB.
        let quiet = fitted(0.001);
        assert_eq!((quiet.bytes(), quiet.from_default), (Some(256 << 10), false), "{quiet:?}");
        let noisy = fitted(0.4);
        assert!(noisy.hidden_by_noise, "{noisy:?}");
    }
}
