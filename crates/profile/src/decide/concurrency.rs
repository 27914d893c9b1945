//! How much to keep in flight: requests, read-ahead, background writes; and through which interface.

use flashgrain_model::{Access, Estimate};

use super::noise::{Band, Span, choose, factor, smallest_good, typical_spread};
use super::{DecisionInputs, default, default_bytes, hidden, learned, size_shown, why};
use crate::schema::{Amount, Decision, Point};

const DEFAULT_IN_FLIGHT: u64 = 64;
const DEFAULT_READ_AHEAD_BYTES: u64 = 256 << 10;
const READ_AHEAD_UNIT_BYTES: u64 = 64 << 10;
const DEFAULT_COMPACTIONS: u64 = 4;

/// Compactions and flushes issue writes at least this large.
const LARGE_WRITE_BYTES: f64 = 100_000.0;

/// Share of the best rate that a depth must reach.
const GOOD_FRACTION: f64 = 0.9;

/// Readers may wait this much longer than alone.
const TOLERABLE: f64 = 1.5;

pub(super) fn decide(known: &DecisionInputs<'_>) -> Vec<Decision> {
    let mut decisions = vec![in_flight(known), read_ahead(known), compactions(known), pacing(known)];
    decisions.extend(interface(known));
    decisions
}

fn in_flight(known: &DecisionInputs<'_>) -> Decision {
    const SETTING: &str = "requests in flight";
    let depth = &known.learned.depth_90;
    match depth.estimate {
        Estimate::Determined { value, low, high } => {
            let span = Span::new(value, [low, high]).map(|depth| (depth.ceil() as u64).next_power_of_two());
            let because = format!("4 KiB random reads reach 90 % of their plateau at depth {value:.0}");
            choose(SETTING, span, DEFAULT_IN_FLIGHT, count_shown, &because)
        }
        Estimate::Undetermined { .. } => {
            default(SETTING, DEFAULT_IN_FLIGHT.to_string(), why(depth)).of(Amount::Count(DEFAULT_IN_FLIGHT))
        }
    }
}

/// A number in words and for programs.
fn count_shown(count: u64) -> (String, Amount) {
    (count.to_string(), Amount::Count(count))
}

fn read_ahead(known: &DecisionInputs<'_>) -> Decision {
    const SETTING: &str = "read-ahead";
    let parallelism = &known.learned.parallelism;
    match parallelism.estimate {
        Estimate::Determined { value: p, low, high } => {
            let span = Span::new(p, [low, high]).map(|p| p.ceil() as u64 * READ_AHEAD_UNIT_BYTES);
            let because =
                format!("P = {p:.1}: as many 64 KiB reads as the drive serves in the time of one (Lemma 13)");
            choose(SETTING, span, DEFAULT_READ_AHEAD_BYTES, size_shown, &because)
        }
        Estimate::Undetermined { .. } => default_bytes(SETTING, DEFAULT_READ_AHEAD_BYTES, why(parallelism)),
    }
}

/// The fewest streams of large writes that reach a good share of the best rate; and that rate.
fn fewest_streams(points: &[Point]) -> Option<(Span<u64>, f64)> {
    let is_large = |point: &&Point| {
        point.workload.access() == Some(Access::Write)
            && point.workload.request_bytes >= LARGE_WRITE_BYTES
            && point.is_long_enough()
    };
    let large: Vec<&Point> = points.iter().filter(is_large).collect();
    smallest_good(&large, typical_spread(points), GOOD_FRACTION, |point| point.workload.concurrency)
}

fn compactions(known: &DecisionInputs<'_>) -> Decision {
    const SETTING: &str = "compaction and flush parallelism";
    match fewest_streams(&known.measurements.order) {
        Some((span, best_bytes_per_second)) => {
            let because = format!(
                "as many streams of writes over 100 kB reach 90 % of {:.0} MB/s{}",
                best_bytes_per_second / 1e6,
                known.write_regime()
            );
            choose(SETTING, span, DEFAULT_COMPACTIONS, count_shown, &because)
        }
        None => default(SETTING, DEFAULT_COMPACTIONS.to_string(), "too few writes were measured by order")
            .of(Amount::Count(DEFAULT_COMPACTIONS)),
    }
}

/// Reads beside a share of writes: the latency of the median read, and the factor by which noise may have
/// moved it.
#[derive(Clone, Copy, Debug)]
struct Beside {
    write_share: f64,
    median_us: f64,
    factor: f64,
}

/// The largest share of writes beside which the median read waits no more than `TOLERABLE` times as long as
/// alone; with the time that it takes there, and alone.
fn tolerable_writes(points: &[Point]) -> Option<(Span<f64>, f64, f64)> {
    let deepest =
        points.iter().map(|point| point.workload.concurrency).filter(|k| *k <= 8.0).reduce(f64::max)?;
    let smallest = points.iter().map(|point| point.workload.request_bytes).reduce(f64::min)?;
    let of_kind =
        |point: &&Point| point.workload.concurrency == deepest && point.workload.request_bytes == smallest;
    let typical = typical_spread(points);
    let beside = |point: &Point| {
        Some(Beside {
            write_share: 1.0 - point.workload.read_share,
            median_us: point.read_latency?.p50_us,
            factor: factor(point, typical),
        })
    };
    let mut mixed: Vec<Beside> = points.iter().filter(of_kind).filter_map(beside).collect();
    mixed.sort_by(|a, b| a.write_share.total_cmp(&b.write_share));
    let alone = *mixed.first()?;
    if alone.write_share > 0.0 || mixed.len() < 3 {
        return None;
    }
    let last_within = |moved: fn(&Beside, &Beside) -> f64| {
        let within = |one: &&Beside| moved(one, &alone) <= TOLERABLE * alone.median_us;
        mixed.iter().take_while(within).last().unwrap_or(&alone)
    };
    let last = last_within(|one, _| one.median_us);
    // Latency alone is compared with itself: noise moves both by the same.
    let slow = last_within(|one, alone| {
        one.median_us * if one.write_share > 0.0 { one.factor * alone.factor } else { 1.0 }
    });
    let fast = last_within(|one, alone| one.median_us / (one.factor * alone.factor));
    let span = Span::new(last.write_share, [slow.write_share, fast.write_share]);
    Some((span, last.median_us, alone.median_us))
}

const DEFAULT_WRITE_FRACTION: f64 = 0.25;

fn share_shown(share: f64) -> (String, Amount) {
    (format!("at most {:.0} % of the requests", share * 100.0), Amount::Share(share))
}

fn pacing(known: &DecisionInputs<'_>) -> Decision {
    const SETTING: &str = "background writes beside reads";
    match tolerable_writes(&known.measurements.mix) {
        Some((span, us, alone_us)) => {
            let because = format!(
                "beside {:.0} % of writes the median read takes {us:.0} µs, alone {alone_us:.0} µs (limit: {TOLERABLE} times)",
                span.value * 100.0
            );
            choose(SETTING, span, DEFAULT_WRITE_FRACTION, share_shown, &because)
        }
        None => {
            let (text, amount) = share_shown(DEFAULT_WRITE_FRACTION);
            default(SETTING, text, "mix was not run").of(amount)
        }
    }
}

const INTERFACE: &str = "I/O interface";

fn interface(known: &DecisionInputs<'_>) -> Option<Decision> {
    let points = &known.measurements.interface;
    let deepest = points.iter().map(|one| one.point.workload.concurrency).reduce(f64::max)?;
    let at_deepest: Vec<_> = points.iter().filter(|one| one.point.workload.concurrency == deepest).collect();
    let rates: Vec<Point> = points.iter().map(|one| one.point.clone()).collect();
    let typical = typical_spread(&rates);
    let beyond_noise =
        |fast: &Point, slow: &Point| Band::of(fast, typical).low > Band::of(slow, typical).high;
    // The backends come best first; a later one must be faster beyond noise to take its place.
    let best = at_deepest.iter().copied().reduce(|best, other| {
        let is_faster = other.point.bytes_per_second > 1.05 * best.point.bytes_per_second;
        if is_faster && beyond_noise(&other.point, &best.point) { other } else { best }
    })?;
    let all: Vec<String> = at_deepest
        .iter()
        .map(|one| {
            let requests = one.point.bytes_per_second / one.point.workload.request_bytes;
            format!(
                "{} {:.0} k/s at {:.1} µs of CPU",
                one.backend,
                requests / 1e3,
                one.point.cpu_us_per_request
            )
        })
        .collect();
    let because = format!("4 KiB random reads at depth {deepest}: {}", all.join(", "));
    let clear = at_deepest
        .iter()
        .filter(|one| one.backend != best.backend)
        .all(|one| beyond_noise(&best.point, &one.point));
    let backend = best.backend.clone();
    Some(if clear { learned(INTERFACE, backend, because) } else { hidden(INTERFACE, backend, because) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::layout::tests::nothing_learned;
    use crate::decide::noise::tests::point;
    use crate::schema::{Latency, Learned, LearnedValue, Measurements};
    use flashgrain_model::Workload;

    fn streams(noise: f64, repeats: u32) -> Vec<Point> {
        [(1.0, 100.0), (2.0, 190.0), (4.0, 195.0), (8.0, 200.0)]
            .into_iter()
            .map(|(k, rate)| point(Workload::random(Access::Write, 409_600.0, k), rate, noise, repeats))
            .collect()
    }

    #[test]
    fn the_fewest_streams_that_do_well_are_taken_unless_noise_hides_them() {
        let decided = |order: Vec<Point>| {
            let measurements = Measurements { order, ..Measurements::default() };
            let learned = nothing_learned();
            let decision =
                compactions(&DecisionInputs { learned: &learned, measurements: &measurements, models: None });
            (decision.count(), decision.from_default, decision.hidden_by_noise)
        };
        assert_eq!(decided(streams(0.01, 3)), (Some(2), false, false));
        assert_eq!(decided(streams(0.3, 3)), (Some(4), true, true));
        assert_eq!(decided(streams(0.0, 1)), (Some(4), true, true), "one repeat is not free of noise");
        assert_eq!(decided(Vec::new()), (Some(4), true, false));
    }

    fn beside_writes(noise: f64, repeats: u32) -> Vec<Point> {
        [(1.0, 80.0), (0.9, 100.0), (0.75, 114.0), (0.5, 200.0), (0.25, 90.0)]
            .into_iter()
            .map(|(read_share, us)| {
                let workload = Workload { read_share, ..Workload::random(Access::Read, 4096.0, 8.0) };
                let read_latency = Some(Latency { p50_us: us, ..Latency::default() });
                Point { read_latency, ..point(workload, 1e8, noise, repeats) }
            })
            .collect()
    }

    #[test]
    fn writes_are_paced_to_where_reads_still_answer_unless_noise_hides_it() {
        let span = |min, value, max| Span { min, value, max };
        let tolerable = |points: &[Point]| tolerable_writes(points).unwrap();
        assert_eq!(tolerable(&beside_writes(0.01, 3)), (span(0.25, 0.25, 0.25), 114.0, 80.0));
        assert_eq!(tolerable(&beside_writes(0.1, 3)).0, span(0.0, 0.25, 0.25));
        assert_eq!(tolerable(&beside_writes(0.0, 1)).0, span(0.0, 0.25, 0.75));
    }

    #[test]
    fn learned_numbers_whose_intervals_lead_to_several_settings_are_hidden_by_noise() {
        let value = |value: f64, low: f64, high: f64| LearnedValue {
            estimate: Estimate::Determined { value, low, high },
            evidence: String::new(),
            confidence: 1.0,
        };
        let decided = |depth_90: LearnedValue, parallelism: LearnedValue| {
            let learned = Learned { depth_90, parallelism, ..nothing_learned() };
            let measurements = Measurements::default();
            let known = DecisionInputs { learned: &learned, measurements: &measurements, models: None };
            [in_flight(&known), read_ahead(&known)]
        };
        let [depth, ahead] = decided(value(120.0, 110.0, 126.0), value(5.4, 5.1, 5.7));
        assert_eq!((depth.count(), depth.from_default), (Some(128), false));
        assert_eq!((ahead.bytes(), ahead.from_default), (Some(384 << 10), false));
        let [depth, ahead] = decided(value(120.0, 110.0, 140.0), value(5.9, 5.7, 6.1));
        assert_eq!((depth.count(), depth.hidden_by_noise), (Some(128), true));
        assert_eq!((ahead.bytes(), ahead.hidden_by_noise), (Some(384 << 10), true));
    }
}
