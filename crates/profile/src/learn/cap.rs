//! Caps before the drive, as clouds put them before volumes and hosts: token buckets of requests and of
//! bytes, maybe with credits.
//!
//! 1. The latest repeats of the experiments tell whether a cap is worth a probe ([`is_suspected`]): requests
//!    of several sizes at one rate, single small reads at the bandwidth of large ones, or reads that became
//!    slower.
//! 2. `run::cap` probes: reads that drain the buckets first, by many streams and alone, and paced far below
//!    the limit.
//! 3. [`judge`] recognises a cap by behaviour that no drive shows. A drive that serves one request after the
//!    other takes as long for each when few come; under a cap, single requests are slow at its limit and fast
//!    below it. A higher cap, which takes several streams to reach, is recognised by its width: eight page
//!    sizes at exactly one rate, random or sequential.
//! 4. Repeats that were faster than the cap ran on credits. [`without_credits`] removes them, so that the
//!    remaining repeats describe one regime.
//! 5. Parameters that the cap hides are undetermined, and say so ([`hide`]).

use flashgrain_model::Access;

use super::{Basis, determined, undetermined};
use crate::config::ExperimentName;
use crate::schema::{Cap, Credits, Learned, LearnedValue};
use crate::series::{Repeat, Series};
use crate::stats::mean;
use crate::trial::{Work, bytes_text};

/// Rates that differ by no more than this are one limit.
const SAME: f64 = 0.03;

/// Shares above which rates are alike enough to suspect a limit, and below which reads count as slower.
const ALIKE: f64 = 0.8;
const SLOWER: f64 = 0.6;
const SLOWER_SERIES_MIN: usize = 3;

/// The largest read size whose single stream reaches no drive's bandwidth.
const SMALL_BYTES: f64 = 65_536.0;

/// Shares of a request's time at the limit below which a paced one shows that it only waited for its turn: of
/// a page, of a page whose rate eight times its size reaches as well, and of a larger request, which takes
/// some time by itself.
const UNHINDERED_PAGE: f64 = 0.9;
const UNHINDERED_WIDE: f64 = 0.94;
const UNHINDERED_LARGE: f64 = 0.8;

/// A repeat that is faster than the cap by more than this ran on credits.
const CREDIT: f64 = 0.1;
const CREDIT_REPEATS_MIN: u32 = 3;
const LATENCIES_MIN: f64 = 16.0;

/// Sizes of the probe, in pages.
pub(crate) const FEW_PAGES: u64 = 4;
pub(crate) const SOME_PAGES: u64 = 8;
pub(crate) const MANY_PAGES: u64 = 64;
pub(crate) const PAGES_MAX: u64 = 128;

/// Results of the probe: requests per second with drained buckets, and seconds of single requests far below
/// the limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probed {
    pub page_bytes: u64,
    /// Random reads by several streams: of a page, of [`FEW_PAGES`] and of [`SOME_PAGES`].
    pub page: f64,
    pub few: f64,
    pub some: f64,
    /// Sequential reads of a page by as many.
    pub sequential: f64,
    /// Random reads of a page by one stream, and their median latency.
    pub alone: f64,
    pub alone_s: f64,
    /// Median latency of a page at a quarter of the rate.
    pub paced_page_s: f64,
    /// Random reads of [`MANY_PAGES`] and [`PAGES_MAX`] by several streams; zero if they were not probed.
    pub many: f64,
    pub most: f64,
    /// Random reads of [`MANY_PAGES`] by one stream, their median latency, and that at a quarter of the rate.
    pub many_alone: f64,
    pub many_alone_s: f64,
    pub paced_many_s: f64,
}

/// Requests per second of the latest repeat, and of the fastest before it.
fn latest(series: &Series) -> Option<(f64, f64)> {
    let (last, before) = series.repeats.split_last()?;
    let fastest = before.iter().map(|repeat| repeat.requests_per_second).fold(0.0, f64::max);
    Some((last.requests_per_second, fastest))
}

fn is_plain(series: &Series) -> bool {
    series.trial.experiment.feeds_models() || series.trial.experiment == ExperimentName::Sequential
}

/// Whether the latest repeats look as if something before the drive limited it.
pub(crate) fn is_suspected(series: &[Series], page_bytes: u64) -> bool {
    let page = page_bytes as f64;
    let reads = || {
        series.iter().filter(|one| is_plain(one)).filter_map(|one| {
            let workload = one.trial.workload().filter(|workload| workload.access() == Some(Access::Read))?;
            Some((*workload, latest(one)?))
        })
    };
    let fastest = |bytes: f64, random_share: f64| {
        reads()
            .filter(|(workload, _)| workload.request_bytes == bytes && workload.random_share == random_share)
            .map(|(_, (rate, _))| rate)
            .fold(0.0, f64::max)
    };
    let (one, few) = (fastest(page, 1.0), fastest(page * FEW_PAGES as f64, 1.0));
    let same_rate = one > 0.0 && few >= ALIKE * one && ALIKE * fastest(page, 0.0) <= one;
    let bytes_max = reads().map(|(workload, (rate, _))| rate * workload.request_bytes).fold(0.0, f64::max);
    let same_bandwidth = reads().any(|(workload, (rate, _))| {
        workload.concurrency == 1.0
            && workload.random_share == 1.0
            && workload.request_bytes <= SMALL_BYTES
            && rate * workload.request_bytes >= ALIKE * bytes_max
    });
    let slower = reads().filter(|(_, (rate, before))| *rate < SLOWER * before).count();
    same_rate || same_bandwidth || slower >= SLOWER_SERIES_MIN
}

fn same(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() <= SAME
}

/// The cap that explains the results of the probe, if nothing else does.
pub(crate) fn judge(probed: &Probed) -> Option<Cap> {
    let Probed { page_bytes, page, few, some, sequential, alone, .. } = *probed;
    let is_reached_alone = alone >= (1.0 - SAME) * page;
    let is_wide = same(some, page);
    let unhindered = if is_wide { UNHINDERED_WIDE } else { UNHINDERED_PAGE };
    let waits = is_reached_alone && probed.paced_page_s < unhindered * probed.alone_s;
    let one_rate = page > 0.0 && same(few, page) && same(sequential, page);
    let requests = (one_rate && waits).then_some(page);

    let bytes_of = |pages: u64, rate: f64| (pages * page_bytes) as f64 * rate;
    let (many, most) = (bytes_of(MANY_PAGES, probed.many), bytes_of(PAGES_MAX, probed.most));
    let waits_alone = bytes_of(MANY_PAGES, probed.many_alone) >= (1.0 - SAME) * many
        && probed.paced_many_s < UNHINDERED_LARGE * probed.many_alone_s;
    let bytes = (many > 0.0 && same(many, most) && waits_alone).then_some(many);

    let seen = [
        requests.map(|rate| {
            let largest = if is_wide { SOME_PAGES } else { FEW_PAGES };
            format!(
                "random reads of {} to {} and sequential ones of {} all come at {rate:.0} requests/s, by one stream as by several, though a read that comes alone takes {:.0} µs of the {:.0} µs between two",
                bytes_text(page_bytes),
                bytes_text(largest * page_bytes),
                bytes_text(page_bytes),
                probed.paced_page_s * 1e6,
                1e6 / rate
            )
        }),
        bytes.map(|rate| {
            format!(
                "random reads of {} and {} at {:.0} MB/s, by one stream as by several, though one of {} that comes alone takes {:.0} µs of the {:.0} µs between two",
                bytes_text(MANY_PAGES * page_bytes),
                bytes_text(PAGES_MAX * page_bytes),
                rate / 1e6,
                bytes_text(MANY_PAGES * page_bytes),
                probed.paced_many_s * 1e6,
                1e6 / probed.many_alone
            )
        }),
    ];
    let evidence = seen.into_iter().flatten().collect::<Vec<_>>().join("; ");
    (!evidence.is_empty()).then_some(Cap {
        requests_per_second: requests,
        bytes_per_second: bytes,
        credits: None,
        evidence,
    })
}

/// Takes away the repeats that ran faster than the cap, and notes those that lasted as credits. Their
/// latencies cannot be told from those of the other repeats of their series, which has none then.
pub(crate) fn without_credits(cap: &mut Cap, series: &mut Vec<Series>) {
    let mut credits = Credits::default();
    for one in series.iter_mut() {
        let Some(workload) = one.trial.workload().copied() else { continue };
        let limit = (1.0 + CREDIT) * cap.requests_per_second_of(workload.request_bytes);
        let faster = one.take_faster_than(limit);
        // In a few latencies, requests that happen to be in flight together pass for a rate.
        let is_long = |repeat: &&Repeat| {
            repeat.seconds * repeat.requests_per_second >= LATENCIES_MIN * workload.concurrency
        };
        for repeat in faster.iter().filter(is_long) {
            credits.repeats += 1;
            credits.requests_per_second_max = credits.requests_per_second_max.max(repeat.requests_per_second);
            credits.bytes_per_second_max = credits.bytes_per_second_max.max(repeat.bytes_per_second);
        }
    }
    series.retain(|one| one.visits() > 0);
    if credits.repeats >= CREDIT_REPEATS_MIN {
        cap.credits = Some(credits);
    }
}

/// Makes parameters that the cap hides undetermined, and notes that the others are the cap's.
pub(super) fn hide(cap: &Cap, series: &[Series], learned: &mut Learned) {
    let hidden = |value: &mut LearnedValue| {
        let why = format!("{} before the drive hides it", cap.describe());
        *value = undetermined(why, std::mem::take(&mut value.evidence));
    };
    if bounds_sweeps(cap, series, ExperimentName::RequestSize) {
        hidden(&mut learned.desirable_write_bytes);
        hidden(&mut learned.stripe_bytes);
    }
    if bounds_sweeps(cap, series, ExperimentName::Location) {
        hidden(&mut learned.chunk_bytes);
        hidden(&mut learned.hot_offset_bytes);
        hidden(&mut learned.hot_latency_drop);
        hidden(&mut learned.flash_page_bytes);
    }
    let at_the_cap = |name: ExperimentName| {
        series.iter().filter(move |one| one.trial.experiment == name).filter_map(|one| {
            let bytes = one.trial.workload()?.request_bytes;
            let rates: Vec<f64> = one.repeats.iter().map(|repeat| repeat.requests_per_second).collect();
            let limit = cap.requests_per_second_of(bytes);
            (mean(&rates)? >= (1.0 - SAME) * limit).then_some(limit * bytes)
        })
    };
    if let Some(bytes_per_second) = at_the_cap(ExperimentName::Parallel).next() {
        hidden(&mut learned.parallelism);
        let evidence = format!("{} before the drive, which 64 KiB random reads reach", cap.describe());
        let interval = (bytes_per_second * (1.0 - SAME), bytes_per_second * (1.0 + SAME));
        let of_parallel = series.iter().filter(|one| one.trial.experiment == ExperimentName::Parallel);
        let basis = Basis::of(of_parallel.map(|one| one.repeats.len()).max().unwrap_or(0));
        learned.saturation_bytes_per_second = determined(bytes_per_second, interval, 1.0, evidence, basis);
    }
    if at_the_cap(ExperimentName::Size).next().is_some() {
        hidden(&mut learned.half_bandwidth_bytes);
    }
    let rates = [
        &mut learned.best_page_iops_bytes,
        &mut learned.best_page_latency_bytes,
        &mut learned.depth_90,
        &mut learned.depth_99,
    ];
    for value in rates {
        value.evidence = format!("under {}: {}", cap.describe(), value.evidence);
    }
}

/// Whether the single reads of an experiment waited for the cap rather than for the drive: some sweep in
/// which the mean read, or a fifth of the reads, took the time that the cap leaves between two.
fn bounds_sweeps(cap: &Cap, series: &[Series], name: ExperimentName) -> bool {
    const WAITED_FRACTION_MIN: f64 = 0.2;
    series.iter().filter(|one| one.trial.experiment == name).any(|one| {
        let Work::Sweep(sweep) = &one.trial.work else { return false };
        let between_us = 1e6 / cap.requests_per_second_of(f64::from(sweep.length_bytes));
        let latencies: Vec<f64> = one.reads.iter().map(|read| read.latency_us).collect();
        let waited = latencies.iter().filter(|us| same(**us, between_us)).count();
        mean(&latencies).is_some_and(|us| (us / between_us - 1.0).abs() <= CREDIT)
            || waited as f64 > WAITED_FRACTION_MIN * latencies.len() as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of a probe of a drive whose single requests take `latency_s` and then a time per byte, and
    /// which serves at most `requests` requests and `bytes` bytes a second.
    fn probed(latency_s: f64, seconds_per_byte: f64, requests: f64, bytes: f64) -> Probed {
        let page_bytes = 4096;
        let size = |pages: u64| (pages * page_bytes) as f64;
        let alone_s = |pages: u64| latency_s + size(pages) * seconds_per_byte;
        let limit = |pages: u64| f64::min(requests, bytes / size(pages));
        let rate = |pages: u64, streams: f64| {
            limit(pages).min(streams / alone_s(pages)).min(1.0 / (size(pages) * seconds_per_byte))
        };
        Probed {
            page_bytes,
            page: rate(1, 16.0),
            few: rate(FEW_PAGES, 16.0),
            some: rate(SOME_PAGES, 16.0),
            sequential: rate(1, 16.0),
            alone: rate(1, 1.0),
            alone_s: 1.0 / rate(1, 1.0),
            paced_page_s: alone_s(1),
            many: rate(MANY_PAGES, 8.0),
            most: rate(PAGES_MAX, 8.0),
            many_alone: rate(MANY_PAGES, 1.0),
            many_alone_s: 1.0 / rate(MANY_PAGES, 1.0),
            paced_many_s: alone_s(MANY_PAGES),
        }
    }

    const FAST: f64 = 1.0 / 7e9;

    fn limits(probed: &Probed) -> (Option<f64>, Option<f64>) {
        judge(probed).map_or((None, None), |cap| (cap.requests_per_second, cap.bytes_per_second))
    }

    #[test]
    fn both_limits_of_a_cap_are_found_and_each_alone() {
        let none = f64::INFINITY;
        assert_eq!(limits(&probed(60e-6, FAST, 3000.0, 125e6)), (Some(3000.0), Some(125e6)));
        assert_eq!(limits(&probed(60e-6, FAST, 500.0, none)), (Some(500.0), None));
        let (requests, bytes) = limits(&probed(60e-6, FAST, none, 125e6));
        assert_eq!((requests, bytes.map(f64::round)), (None, Some(125e6)));
        assert_eq!(limits(&probed(58e-6, FAST, 16_000.0, 1e9)), (Some(16_000.0), Some(1e9)));
    }

    #[test]
    fn drives_that_are_slow_by_themselves_have_no_cap() {
        let none = f64::INFINITY;
        for drive in [
            probed(60e-6, FAST, none, none),
            // A command processor and a link: SATA and NVMe.
            probed(80e-6, 1.0 / 520e6, 95_000.0, none),
            probed(60e-6, FAST, 1e6, none),
            // One request after the other.
            Probed { page: 100.0, few: 99.0, some: 98.0, ..probed(10e-3, 1.0 / 150e6, 100.0, none) },
            // Few servers, as a cap that one stream does not reach.
            probed(160e-6, 0.5e-9, 50_000.0, none),
            // A slow link.
            probed(500e-6, 1.0 / 30e6, none, none),
        ] {
            assert_eq!(limits(&drive), (None, None), "{drive:?}");
        }
        // Without the last of these a drive that serves one after the other passes for a cap.
        let serial = probed(333e-6, FAST, 3000.0, none);
        assert!(judge(&Probed { some: 2000.0, ..serial }).is_none());
        assert!(judge(&Probed { some: 2000.0, paced_page_s: 60e-6, ..serial }).is_some());
    }

    #[test]
    fn another_rate_of_sequential_pages_refutes_a_cap_of_requests() {
        let disk = Probed { sequential: 20_000.0, ..probed(60e-6, FAST, 3000.0, f64::INFINITY) };
        assert!(judge(&disk).is_none());
        assert!(judge(&Probed::default()).is_none());
    }
}
