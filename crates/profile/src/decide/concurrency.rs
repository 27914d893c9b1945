//! How much to keep in flight: requests, read-ahead, background writes; and through which interface.

use flashgrain_device::BackendKind;
use flashgrain_model::Estimate;
use flashgrain_settings::drive::{Decision, Setting};
use flashgrain_settings::{Bytes, Count, Fraction};

use super::noise::{Band, Span, choose, factor, typical_spread};
use super::{DecisionInputs, default, hidden, learned, why};
use crate::schema::{InterfacePoint, Point};
use crate::trial::bytes_text;

const DEFAULT_IN_FLIGHT: Count = Count(64);
const DEFAULT_READ_AHEAD: Bytes = Bytes(256 << 10);
const READ_AHEAD_UNIT_BYTES: u64 = 64 << 10;

const DEFAULT_BUSY_HALF_BANDWIDTH: Bytes = Bytes(64 << 10);
/// Decisions from a half-bandwidth size change little within this factor.
const TOLERABLE_SPREAD: f64 = 8.0;

/// Readers may wait this much longer than alone.
const TOLERABLE: f64 = 1.5;

pub(super) fn decide(known: &DecisionInputs<'_>) -> Vec<Decision> {
    let mut decisions = vec![in_flight(known), busy_half_bandwidth(known), read_ahead(known), pacing(known)];
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

/// Seconds of the drive's time that a random read of a size takes at the best depth; the bytes, the seconds,
/// and the factor by which noise may have moved them.
fn busy_seconds(points: &[Point]) -> Vec<(f64, f64, f64)> {
    let typical = typical_spread(points);
    let mut sizes: Vec<(f64, f64, f64)> = Vec::new();
    let reads = points.iter().filter(|point| is_read(point));
    for point in reads {
        let bytes = point.workload.request_bytes;
        let own = (bytes, bytes / point.bytes_per_second, factor(point, typical));
        match sizes.iter_mut().find(|(known, ..)| *known == bytes) {
            Some(best) if own.1 < best.1 => *best = own,
            Some(_) => {}
            None => sizes.push(own),
        }
    }
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    sizes
}

/// The smallest and the largest random read of a busy drive give setup and transfer, which are a line.
fn busy_half_bandwidth(known: &DecisionInputs<'_>) -> Decision {
    let sizes = busy_seconds(&known.measurements.depth);
    let default = |why: &str| default(Setting::BusyHalfBandwidth(DEFAULT_BUSY_HALF_BANDWIDTH), why);
    let (Some(small), Some(large)) = (sizes.first(), sizes.last()) else {
        return default("depth was not run");
    };
    // These factors move the two times apart, or together.
    let half = |moved: f64| {
        let per_byte = (large.1 * moved - small.1 / moved) / (large.0 - small.0);
        (per_byte > 0.0).then(|| (small.1 / moved / per_byte - small.0).max(small.0 / 2.0))
    };
    let noise = (small.2 * large.2).sqrt();
    let (Some(value), Some(low), Some(high)) = (half(1.0), half(noise), half(noise.recip())) else {
        return of_one_reader(known, small).unwrap_or_else(|| {
            default("the drive's bandwidth does not show in the page sizes that were measured")
        });
    };
    if high / low > TOLERABLE_SPREAD {
        return of_one_reader(known, small).unwrap_or_else(|| {
            hidden(
                Setting::BusyHalfBandwidth(DEFAULT_BUSY_HALF_BANDWIDTH),
                format!("between {} and {}", bytes_text(low as u64), bytes_text(high as u64)),
            )
        });
    }
    let because = format!(
        "reads of {} take {:.1} µs of the busy drive's time, those of {} {:.1} µs",
        bytes_text(small.0 as u64),
        small.1 * 1e6,
        bytes_text(large.0 as u64),
        large.1 * 1e6
    );
    learned(half_bandwidth_setting(value), because)
}

fn half_bandwidth_setting(bytes: f64) -> Setting {
    Setting::BusyHalfBandwidth(Bytes((bytes as u64).clamp(512, 16 << 20).next_power_of_two()))
}

/// Where setups are most of all times, as on a disk: a single reader's half-bandwidth size, less in
/// proportion to the share of time that a busy drive's setups take.
fn of_one_reader(known: &DecisionInputs<'_>, (bytes, busy_s, _): &(f64, f64, f64)) -> Option<Decision> {
    let half = known.learned.half_bandwidth_bytes.estimate.value()?;
    let alone = known.measurements.depth.iter().find(|point| {
        point.workload.request_bytes == *bytes && point.workload.concurrency <= 1.0 && is_read(point)
    })?;
    let alone_s = bytes / alone.bytes_per_second;
    let because = format!(
        "half-bandwidth size {} of one reader; reads of {} take {:.1} µs, and {:.1} µs of the busy drive's time",
        bytes_text(half as u64),
        bytes_text(*bytes as u64),
        alone_s * 1e6,
        busy_s * 1e6
    );
    Some(learned(half_bandwidth_setting(half * busy_s / alone_s), because))
}

fn is_read(point: &Point) -> bool {
    point.workload.read_share >= 1.0 && point.bytes_per_second > 0.0
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

/// Reads during a share of writes: the latency of the median read, and the factor by which noise may have
/// moved it.
#[derive(Clone, Copy, Debug)]
struct Beside {
    write_share: f64,
    median_us: f64,
    factor: f64,
}

/// The largest share of writes that lets the median read wait no more than `TOLERABLE` times as long as
/// alone; with its time there, and alone.
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
                "with {:.0} % of writes the median read takes {us:.0} µs, alone {alone_us:.0} µs (limit: {TOLERABLE} times)",
                span.value * 100.0
            );
            choose(Setting::BackgroundWrites, span.map(Fraction), DEFAULT_BACKGROUND_WRITES, &because)
        }
        None => default(Setting::BackgroundWrites(DEFAULT_BACKGROUND_WRITES), "mix was not run"),
    }
}

/// The interfaces measured at the deepest queue that the one in use was measured at, best first.
fn compared_interfaces(points: &[InterfacePoint], in_use: BackendKind) -> (f64, Vec<(BackendKind, &Point)>) {
    let of = |one: &InterfacePoint| one.backend.parse::<BackendKind>().ok();
    let depth = |one: &InterfacePoint| one.point.workload.concurrency;
    let deepest = points.iter().filter(|one| of(one) == Some(in_use)).map(depth).fold(0.0, f64::max);
    let compared = points.iter().filter(|one| depth(one) == deepest);
    (deepest, compared.filter_map(|one| Some((of(one)?, &one.point))).collect())
}

/// The interface that carried the run, unless another one was faster beyond noise.
fn interface(known: &DecisionInputs<'_>) -> Option<Decision> {
    let points = &known.measurements.interface;
    let first = points.iter().find_map(|one| one.backend.parse().ok());
    let in_use = known.backend.or(first)?;
    if points.is_empty() {
        return None;
    }
    let (depth, compared) = compared_interfaces(points, in_use);
    let (Some(own), 2..) = (compared.iter().find(|(backend, _)| *backend == in_use), compared.len()) else {
        let why = "carried this run; `interface` ended before it was compared with another one";
        return Some(default(Setting::Interface(in_use), format!("{} {why}", in_use.name())));
    };
    let rates: Vec<Point> = points.iter().map(|one| one.point.clone()).collect();
    let typical = typical_spread(&rates);
    let beyond_noise =
        |fast: &Point, slow: &Point| Band::of(fast, typical).low > Band::of(slow, typical).high;
    // Another one must be faster beyond noise to take its place.
    let best = compared.iter().copied().fold(*own, |best, other| {
        let is_faster = other.1.bytes_per_second > 1.05 * best.1.bytes_per_second;
        if is_faster && beyond_noise(other.1, best.1) { other } else { best }
    });
    let cost = |(backend, point): &(BackendKind, &Point)| {
        let requests = point.bytes_per_second / point.workload.request_bytes;
        format!("{} {:.0} k/s at {:.1} µs of CPU", backend.name(), requests / 1e3, point.cpu_us_per_request)
    };
    let all: Vec<String> = compared.iter().map(cost).collect();
    let because = format!("4 KiB random reads at depth {depth}: {}", all.join(", "));
    let clear = compared.iter().all(|(other, point)| *other == best.0 || beyond_noise(best.1, point));
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
    fn an_interface_that_was_not_compared_leaves_the_one_in_use() {
        let at = |backend: &str, depth: f64, rate: f64| InterfacePoint {
            backend: backend.into(),
            point: point(Workload::random(Access::Read, 4096.0, depth), rate, 0.01, 3),
        };
        let decided = |points: Vec<InterfacePoint>| {
            let measurements = Measurements { interface: points, ..Measurements::default() };
            let learned = nothing_learned();
            let backend = Some(BackendKind::IoUring);
            let known = DecisionInputs { learned: &learned, measurements: &measurements, backend };
            interface(&known).map(|decision| (decision.setting.interface(), decision.from_default))
        };
        let (ring, aio) = (Some(BackendKind::IoUring), Some(BackendKind::Libaio));
        assert_eq!(decided(Vec::new()), None);
        // Cut short: the interface in use has no rate at the depth of the other one, or none at all.
        assert_eq!(decided(vec![at("libaio", 128.0, 2e8)]), Some((ring, true)));
        assert_eq!(decided(vec![at("io_uring", 1.0, 1e7), at("libaio", 128.0, 2e8)]), Some((ring, true)));
        assert_eq!(decided(vec![at("io_uring", 1.0, 1e7), at("libaio", 1.0, 1e6)]), Some((ring, false)));
        assert_eq!(decided(vec![at("io_uring", 1.0, 1e7), at("libaio", 1.0, 1e7)]), Some((ring, true)));
        assert_eq!(decided(vec![at("io_uring", 1.0, 1e7), at("libaio", 1.0, 1e8)]), Some((aio, false)));
    }

    /// A drive with setups of 2 µs of its time, and 4 GB/s.
    #[test]
    fn the_half_bandwidth_of_a_busy_drive_is_found_behind_idle_depths() {
        let depth: Vec<Point> = [(4096.0, 1.0), (4096.0, 64.0), (16384.0, 64.0), (65536.0, 64.0)]
            .into_iter()
            .map(|(bytes, k): (f64, f64)| {
                let seconds = (2e-6 + bytes / 4e9) * (64.0 / k);
                point(Workload::random(Access::Read, bytes, k), bytes / seconds, 0.01, 3)
            })
            .collect();
        let decided = |depth: Vec<Point>| {
            let measurements = Measurements { depth, ..Measurements::default() };
            let learned = nothing_learned();
            busy_half_bandwidth(&DecisionInputs {
                learned: &learned,
                measurements: &measurements,
                backend: None,
            })
        };
        let found = decided(depth.clone());
        assert_eq!(found.setting.busy_half_bandwidth(), Some(Bytes(8192)), "{}", found.because);
        assert!(!found.from_default);
        assert!(decided(Vec::new()).from_default && decided(depth[..2].to_vec()).from_default);
    }

    /// A disk: 10 ms to begin, 100 MB/s, four of 32 readers served in the time of one.
    #[test]
    fn where_setups_hide_the_bandwidth_a_single_reader_has_shown_it() {
        let depth: Vec<Point> = [(512.0, 1.0, 10e-3), (512.0, 32.0, 2.5e-3), (65536.0, 32.0, 2.49e-3)]
            .into_iter()
            .map(|(bytes, k, seconds): (f64, f64, f64)| {
                point(Workload::random(Access::Read, bytes, k), bytes / seconds, 0.01, 3)
            })
            .collect();
        let half_bandwidth_bytes = LearnedValue {
            estimate: Estimate::Determined { value: 1e6, low: 0.9e6, high: 1.1e6 },
            evidence: String::new(),
            confidence: 1.0,
        };
        let learned = Learned { half_bandwidth_bytes, ..nothing_learned() };
        let measurements = Measurements { depth, ..Measurements::default() };
        let found = busy_half_bandwidth(&DecisionInputs {
            learned: &learned,
            measurements: &measurements,
            backend: None,
        });
        assert_eq!(found.setting.busy_half_bandwidth(), Some(Bytes(256 << 10)), "{}", found.because);
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
            let known = DecisionInputs { learned: &learned, measurements: &measurements, backend: None };
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
