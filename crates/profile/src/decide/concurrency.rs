//! How much to keep in flight: requests, read-ahead, background writes; and through which interface.

use flashgrain_model::Access;

use super::{Known, default, default_bytes, hidden, learned, learned_bytes, why};
use crate::schema::{Amount, Decision, Point};

const DEFAULT_IN_FLIGHT: u64 = 64;
const DEFAULT_READ_AHEAD_BYTES: u64 = 256 << 10;
const READ_AHEAD_UNIT_BYTES: u64 = 64 << 10;
const DEFAULT_COMPACTIONS: u64 = 4;

/// Writes at least this large are what compactions and flushes issue.
const LARGE_WRITE_BYTES: f64 = 100_000.0;

/// Share of the best rate that a depth must reach.
const GOOD_SHARE: f64 = 0.9;

/// Readers may wait this much longer than alone.
const TOLERABLE: f64 = 1.5;

pub(super) fn decide(known: &Known<'_>) -> Vec<Decision> {
    let mut decisions = vec![in_flight(known), read_ahead(known), compactions(known), pacing(known)];
    decisions.extend(interface(known));
    decisions
}

fn in_flight(known: &Known<'_>) -> Decision {
    const SETTING: &str = "requests in flight";
    let depth = &known.learned.depth_90;
    match depth.estimate.value() {
        Some(value) => {
            let requests = (value.ceil() as u64).next_power_of_two();
            let because = format!("4 KiB random reads reach 90 % of their plateau at depth {value:.0}");
            learned(SETTING, requests.to_string(), because).of(Amount::Count(requests))
        }
        None => {
            default(SETTING, DEFAULT_IN_FLIGHT.to_string(), why(depth)).of(Amount::Count(DEFAULT_IN_FLIGHT))
        }
    }
}

fn read_ahead(known: &Known<'_>) -> Decision {
    const SETTING: &str = "read-ahead";
    let parallelism = &known.learned.parallelism;
    match parallelism.estimate.value() {
        Some(p) => learned_bytes(
            SETTING,
            p.ceil() as u64 * READ_AHEAD_UNIT_BYTES,
            format!("P = {p:.1}: as many 64 KiB reads as the drive serves in the time of one (Lemma 13)"),
        ),
        None => default_bytes(SETTING, DEFAULT_READ_AHEAD_BYTES, why(parallelism)),
    }
}

/// The fewest streams of large writes that reach a good share of the best rate: as the medians say, and the fewest and most
/// that the repeats allow.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Streams {
    count: u64,
    min: u64,
    max: u64,
    best_bytes_per_second: f64,
}

/// One of a point's rates: median, smallest or largest repeat.
type Rate = fn(&Point) -> f64;

fn fewest_streams(points: &[Point]) -> Option<Streams> {
    let is_large = |point: &&Point| {
        point.workload.access() == Some(Access::Write) && point.workload.request_bytes >= LARGE_WRITE_BYTES
    };
    let large = || points.iter().filter(is_large);
    let best = |rate: Rate| large().map(rate).reduce(f64::max);
    let fewest = |rate: Rate, least: f64| {
        let good = large().filter(|point| rate(point) >= GOOD_SHARE * least);
        good.map(|point| point.workload.concurrency as u64).min()
    };
    let median: Rate = |point| point.bytes_per_second;
    let low: Rate = |point| point.bytes_per_second_min;
    let high: Rate = |point| point.bytes_per_second_max;
    let best_bytes_per_second = best(median)?;
    let count = fewest(median, best_bytes_per_second)?;
    let min = fewest(high, best(low)?)?;
    // If no repeat is sure to be good, it may take all the streams that were tried.
    let deepest = large().map(|point| point.workload.concurrency as u64).max()?;
    let max = fewest(low, best(high)?).unwrap_or(deepest);
    Some(Streams { count, min: min.min(count), max: max.max(count), best_bytes_per_second })
}

fn compactions(known: &Known<'_>) -> Decision {
    const SETTING: &str = "compaction and flush parallelism";
    match fewest_streams(&known.measurements.order) {
        Some(Streams { count, min, max, best_bytes_per_second }) if min == max => {
            let because = format!(
                "as many streams of writes over 100 kB reach 90 % of {:.0} MB/s",
                best_bytes_per_second / 1e6
            );
            learned(SETTING, count.to_string(), because).of(Amount::Count(count))
        }
        Some(Streams { min, max, best_bytes_per_second, .. }) => {
            let streams = DEFAULT_COMPACTIONS.clamp(min, max);
            let because = format!(
                "writes over 100 kB reach 90 % of {:.0} MB/s with {min} to {max} streams",
                best_bytes_per_second / 1e6
            );
            hidden(SETTING, streams.to_string(), because).of(Amount::Count(streams))
        }
        None => default(SETTING, DEFAULT_COMPACTIONS.to_string(), "no writes were measured by order")
            .of(Amount::Count(DEFAULT_COMPACTIONS)),
    }
}

/// The largest share of writes beside which the median read waits no more than `TOLERABLE` times as long as alone.
fn tolerable_writes(points: &[Point]) -> Option<(f64, f64, f64)> {
    let deepest =
        points.iter().map(|point| point.workload.concurrency).filter(|k| *k <= 8.0).reduce(f64::max)?;
    let smallest = points.iter().map(|point| point.workload.request_bytes).reduce(f64::min)?;
    let of_kind = |point: &&Point| {
        point.workload.concurrency == deepest
            && point.workload.request_bytes == smallest
            && point.read_latency.is_some()
    };
    let median_us = |point: &Point| point.read_latency.map(|latency| latency.p50_us);
    let mut mixed: Vec<(f64, f64)> = points
        .iter()
        .filter(of_kind)
        .filter_map(|point| Some((1.0 - point.workload.read_share, median_us(point)?)))
        .collect();
    mixed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (no_writes, alone_us) = *mixed.first()?;
    if no_writes > 0.0 || mixed.len() < 3 {
        return None;
    }
    let (share, us) = *mixed.iter().take_while(|(_, us)| *us <= TOLERABLE * alone_us).last()?;
    Some((share, us, alone_us))
}

fn pacing(known: &Known<'_>) -> Decision {
    const SETTING: &str = "background writes beside reads";
    match tolerable_writes(&known.measurements.mix) {
        Some((share, us, alone_us)) => learned(
            SETTING,
            format!("at most {:.0} % of the requests", share * 100.0),
            format!(
                "the median read then takes {us:.0} µs, alone {alone_us:.0} µs (limit: {TOLERABLE} times)"
            ),
        )
        .of(Amount::Share(share)),
        None => default(SETTING, "at most 25 % of the requests", "mix was not run").of(Amount::Share(0.25)),
    }
}

const INTERFACE: &str = "I/O interface";

fn interface(known: &Known<'_>) -> Option<Decision> {
    let points = &known.measurements.interface;
    let deepest = points.iter().map(|one| one.point.workload.concurrency).reduce(f64::max)?;
    let at_deepest: Vec<_> = points.iter().filter(|one| one.point.workload.concurrency == deepest).collect();
    // The backends come best first; a later one must be faster beyond noise to take its place.
    let best = at_deepest.iter().copied().reduce(|best, other| {
        let clearly_faster = other.point.bytes_per_second > 1.05 * best.point.bytes_per_second
            && other.point.bytes_per_second_min > best.point.bytes_per_second_max;
        if clearly_faster { other } else { best }
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
        .all(|one| best.point.bytes_per_second_min > one.point.bytes_per_second_max);
    let backend = best.backend.clone();
    Some(if clear { learned(INTERFACE, backend, because) } else { hidden(INTERFACE, backend, because) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::layout::tests::nothing_learned;
    use crate::schema::{Latency, Measurements};
    use flashgrain_model::Workload;

    fn point(workload: Workload, rate: f64, read_us: Option<f64>) -> Point {
        Point {
            workload,
            bytes_per_second: rate,
            bytes_per_second_min: rate,
            bytes_per_second_max: rate,
            repeats: 3,
            read_latency: read_us.map(|us| Latency { p50_us: us, ..Latency::default() }),
            write_latency: None,
            cpu_us_per_request: 2.0,
        }
    }

    #[test]
    fn the_fewest_streams_that_do_well_are_taken() {
        let points: Vec<Point> = [(1.0, 100.0), (2.0, 180.0), (4.0, 195.0), (8.0, 200.0)]
            .into_iter()
            .map(|(k, rate)| point(Workload::random(Access::Write, 409_600.0, k), rate, None))
            .collect();
        let streams = Streams { count: 2, min: 2, max: 2, best_bytes_per_second: 200.0 };
        assert_eq!(fewest_streams(&points), Some(streams));
        let noisy: Vec<Point> = points
            .into_iter()
            .map(|point| Point {
                bytes_per_second_min: 0.7 * point.bytes_per_second,
                bytes_per_second_max: 1.4 * point.bytes_per_second,
                ..point
            })
            .collect();
        let streams = Streams { count: 2, min: 1, max: 8, best_bytes_per_second: 200.0 };
        assert_eq!(fewest_streams(&noisy), Some(streams));
        let measurements = Measurements { order: noisy, ..Measurements::default() };
        let learned = nothing_learned();
        let decision = compactions(&Known { learned: &learned, measurements: &measurements, models: None });
        assert_eq!(
            (decision.count(), decision.from_default, decision.hidden_by_noise),
            (Some(4), true, true)
        );
        assert_eq!(fewest_streams(&[]), None);
    }

    #[test]
    fn writes_are_paced_to_where_reads_still_answer() {
        let points: Vec<Point> = [(1.0, 80.0), (0.9, 100.0), (0.75, 118.0), (0.5, 200.0), (0.25, 90.0)]
            .into_iter()
            .map(|(read_share, us)| {
                let workload = Workload { read_share, ..Workload::random(Access::Read, 4096.0, 8.0) };
                point(workload, 1e8, Some(us))
            })
            .collect();
        assert_eq!(tolerable_writes(&points), Some((0.25, 118.0, 80.0)));
    }
}
