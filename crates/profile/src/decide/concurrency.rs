//! How much to keep in flight: requests, read-ahead, background writes; and through which interface.

use flashgrain_device::BackendKind;
use flashgrain_model::Estimate;
use flashgrain_settings::drive::{Decision, Setting};
use flashgrain_settings::{Bytes, Count, Fraction};

use super::noise::{Band, Span, choose, factor, typical_spread};
use super::{DecisionInputs, default, hidden, learned, why};
use crate::schema::{InterfacePoint, Point};

const DEFAULT_IN_FLIGHT: Count = Count(64);
const DEFAULT_READ_AHEAD: Bytes = Bytes(256 << 10);
const READ_AHEAD_UNIT_BYTES: u64 = 64 << 10;

/// Readers may wait this much longer than alone.
const TOLERABLE: f64 = 1.5;

pub(super) fn decide(known: &DecisionInputs<'_>) -> Vec<Decision> {
    let mut decisions = vec![in_flight(known), read_ahead(known), pacing(known)];
    decisions.extend(interface(known));
    decisions
}

fn in_flight(known: &DecisionInputs<'_>) -> Decision {
    let depth = &known.learned.depth_90;
    match depth.estimate {
        Estimate::Determined { value, low, high } => {
            let power_of_two = |depth: f64| Count((depth.ceil() as u64).next_power_of_two());
            let span = Span::new(value, [low, high]).map(power_of_two);
            let because = format!("4 KiB random reads reach 90 % of their plateau at depth {value:.0}");
            choose(Setting::RequestsInFlight, span, DEFAULT_IN_FLIGHT, &because)
        }
        Estimate::Undetermined { .. } => default(Setting::RequestsInFlight(DEFAULT_IN_FLIGHT), why(depth)),
    }
}

fn read_ahead(known: &DecisionInputs<'_>) -> Decision {
    let parallelism = &known.learned.parallelism;
    match parallelism.estimate {
        Estimate::Determined { value: p, low, high } => {
            let span = Span::new(p, [low, high]).map(|p| Bytes(p.ceil() as u64 * READ_AHEAD_UNIT_BYTES));
            let because =
                format!("P = {p:.1}: as many 64 KiB reads as the drive serves in the time of one (Lemma 13)");
            choose(Setting::ReadAhead, span, DEFAULT_READ_AHEAD, &because)
        }
        Estimate::Undetermined { .. } => default(Setting::ReadAhead(DEFAULT_READ_AHEAD), why(parallelism)),
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

const DEFAULT_BACKGROUND_WRITES: Fraction = Fraction(0.25);

fn pacing(known: &DecisionInputs<'_>) -> Decision {
    match tolerable_writes(&known.measurements.mix) {
        Some((span, us, alone_us)) => {
            let because = format!(
                "beside {:.0} % of writes the median read takes {us:.0} µs, alone {alone_us:.0} µs (limit: {TOLERABLE} times)",
                span.value * 100.0
            );
            choose(Setting::BackgroundWrites, span.map(Fraction), DEFAULT_BACKGROUND_WRITES, &because)
        }
        None => default(Setting::BackgroundWrites(DEFAULT_BACKGROUND_WRITES), "mix was not run"),
    }
}

fn interface(known: &DecisionInputs<'_>) -> Option<Decision> {
    let points = &known.measurements.interface;
    let deepest = points.iter().map(|one| one.point.workload.concurrency).reduce(f64::max)?;
    let backend = |one: &InterfacePoint| one.backend.parse::<BackendKind>().ok();
    let at_deepest: Vec<(BackendKind, &Point)> = points
        .iter()
        .filter(|one| one.point.workload.concurrency == deepest)
        .filter_map(|one| Some((backend(one)?, &one.point)))
        .collect();
    let rates: Vec<Point> = points.iter().map(|one| one.point.clone()).collect();
    let typical = typical_spread(&rates);
    let beyond_noise =
        |fast: &Point, slow: &Point| Band::of(fast, typical).low > Band::of(slow, typical).high;
    // The backends come best first; a later one must be faster beyond noise to take its place.
    let best = at_deepest.iter().copied().reduce(|best, other| {
        let is_faster = other.1.bytes_per_second > 1.05 * best.1.bytes_per_second;
        if is_faster && beyond_noise(other.1, best.1) { other } else { best }
    })?;
    let cost = |(backend, point): &(BackendKind, &Point)| {
        let requests = point.bytes_per_second / point.workload.request_bytes;
        format!("{} {:.0} k/s at {:.1} µs of CPU", backend.name(), requests / 1e3, point.cpu_us_per_request)
    };
    let all: Vec<String> = at_deepest.iter().map(cost).collect();
    let because = format!("4 KiB random reads at depth {deepest}: {}", all.join(", "));
    let clear = at_deepest.iter().all(|(other, point)| *other == best.0 || beyond_noise(best.1, point));
    let setting = Setting::Interface(best.0);
    Some(if clear { learned(setting, because) } else { hidden(setting, because) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::layout::tests::nothing_learned;
    use crate::decide::noise::tests::point;
    use crate::schema::{Latency, Learned, LearnedValue, Measurements};
    use flashgrain_model::{Access, Workload};

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
            let known = DecisionInputs { learned: &learned, measurements: &measurements };
            [in_flight(&known), read_ahead(&known)]
        };
        let seen = |[depth, ahead]: [Decision; 2]| {
            let (count, bytes) = (depth.setting.requests_in_flight(), ahead.setting.read_ahead());
            ((count.unwrap().0, depth.hidden_by_noise), (bytes.unwrap().0, ahead.hidden_by_noise))
        };
        let quiet = decided(value(120.0, 110.0, 126.0), value(5.4, 5.1, 5.7));
        assert!(quiet.iter().all(|decision| !decision.from_default));
        assert_eq!(seen(quiet), ((128, false), (384 << 10, false)));
        let open = decided(value(120.0, 110.0, 140.0), value(5.9, 5.7, 6.1));
        assert_eq!(seen(open), ((128, true), (384 << 10, true)));
    }
}
