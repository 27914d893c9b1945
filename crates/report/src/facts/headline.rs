//! The numbers that a reader wants first.

use flashgrain_model::{Access, Collection};
use flashgrain_profile::schema::{Cap, Point, Sustain, WriteRates};
use flashgrain_profile::{DeviceProfile, describe_workload};

use super::store::cached_sentence;
use super::{kind_name, share_of_raw};
use crate::unit;

/// A number with its name and the circumstances.
#[derive(Clone, Debug)]
pub struct Headline {
    /// Name of the quantity.
    pub name: &'static str,
    /// The number with its unit.
    pub value: String,
    /// The circumstances.
    pub detail: String,
}

/// A cap before the drive, random reads per second, latency alone, bandwidth, durable write, depth,
/// prediction error, the store: those that were measured.
/// None of a run that cannot be trusted.
pub(crate) fn headlines(profile: &DeviceProfile) -> Vec<Headline> {
    if profile.distrust.is_some() {
        return Vec::new();
    }
    [
        cap(profile),
        random_reads(profile),
        latency_alone(profile),
        bandwidth(profile, Access::Read, "read bandwidth"),
        sustained_writes(profile),
        burst_writes(profile),
        durable_write(profile),
        prediction(profile),
        store(profile),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The limit before the drive, if there is one.
fn cap(profile: &DeviceProfile) -> Option<Headline> {
    let cap = profile.learned.cap.as_ref()?;
    Some(Headline { name: "capped before the drive", value: cap.limits(), detail: cap_detail(cap) })
}

fn cap_detail(cap: &Cap) -> String {
    let sizes = match (cap.requests_per_second, cap.bytes_per_second) {
        (Some(_), Some(_)) => "whatever the kind, size and order of requests",
        (_, None) => {
            "whatever the kind and order of requests; larger ones may meet a limit of bytes, which did not show"
        }
        (None, _) => {
            "whatever the kind and order of requests; small ones may meet a limit of their number, which did not show"
        }
    };
    let rest = format!("{sizes}: rates that reach it are the cap's, not the drive's");
    match &cap.credits {
        None => rest,
        Some(credits) => format!(
            "{rest}; left out: {} on credits, up to {} requests/s and {}",
            unit::things(credits.repeats as u64, "repeat"),
            unit::count(credits.requests_per_second_max),
            unit::rate(credits.bytes_per_second_max)
        ),
    }
}

fn points(profile: &DeviceProfile) -> impl Iterator<Item = &Point> {
    let all = &profile.measurements;
    [&all.order, &all.parallel, &all.size, &all.depth, &all.mix, &all.sequential].into_iter().flatten()
}

fn is_4k_random_read(point: &&Point) -> bool {
    let workload = &point.workload;
    workload.access() == Some(Access::Read)
        && workload.random_share >= 1.0
        && workload.request_bytes == 4096.0
}

fn random_reads(profile: &DeviceProfile) -> Option<Headline> {
    let best = points(profile)
        .filter(is_4k_random_read)
        .filter(|point| point.is_long_enough())
        .max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second))?;
    Some(Headline {
        name: "4 KiB random reads per second",
        value: unit::count(best.bytes_per_second / best.workload.request_bytes),
        detail: format!("with {} in flight", unit::count(best.workload.concurrency)),
    })
}

fn latency_alone(profile: &DeviceProfile) -> Option<Headline> {
    let latency = points(profile)
        .filter(is_4k_random_read)
        .filter(|point| point.workload.concurrency == 1.0)
        .find_map(|point| point.read_latency)?;
    Some(Headline {
        name: "4 KiB random read, one at a time",
        value: unit::micros(latency.p50_us),
        detail: format!("median; 99 % within {}", unit::micros(latency.p99_us)),
    })
}

fn bandwidth(profile: &DeviceProfile, access: Access, name: &'static str) -> Option<Headline> {
    let best = fastest(points(profile).filter(|point| point.workload.access() == Some(access)))?;
    Some(Headline {
        name,
        value: unit::rate(best.bytes_per_second),
        detail: describe_workload(&best.workload),
    })
}

/// The fastest of those that lasted long enough to be told.
fn fastest<'a>(points: impl Iterator<Item = &'a Point>) -> Option<&'a Point> {
    points
        .filter(|point| point.is_long_enough())
        .max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second))
}

/// Writes once the drive's cache is full: in the steady state if `sustain` found it, else with a cache that
/// was kept full.
fn sustained_writes(profile: &DeviceProfile) -> Option<Headline> {
    let all = &profile.measurements;
    let name = "sustained write bandwidth";
    if let (Some(sustain), Some(rate)) = (&all.sustain, all.sustained_write_bytes_per_second()) {
        let bytes = unit::bytes(sustain.request_bytes as f64);
        let mut detail = format!("steady state of {bytes} writes with {} in flight", sustain.concurrency);
        detail += &collection(sustain).unwrap_or_default();
        return Some(Headline { name, value: unit::rate(rate), detail });
    }
    let WriteRates::Sustained { .. } = all.write_rates() else { return None };
    let mut headline = bandwidth(profile, Access::Write, name)?;
    headline.detail += ", with a full cache";
    Some(headline)
}

/// How garbage collection slows these down, if that was asked for.
fn collection(sustain: &Sustain) -> Option<String> {
    let [least, most] = [sustain.by_valid_data.first(), sustain.by_valid_data.last()];
    let found = sustain.collection.as_ref()?;
    Some(match found {
        Collection::None { why } => format!("; no term for garbage collection: {why}"),
        Collection::Kept { room_bytes, left_out_error, left_out_error_without, .. } => {
            let [least, most] = [least?.valid_bytes, most?.valid_bytes];
            format!(
                "; garbage collection writes {:.2} times as much with {} of valid data, {:.2} times with {}, in room \
                 for {}; error of left-out steady states {} with this term, {} without",
                found.amplification(least)?,
                unit::bytes(least),
                found.amplification(most)?,
                unit::bytes(most),
                unit::bytes(*room_bytes),
                unit::share(*left_out_error),
                unit::share(*left_out_error_without)
            )
        }
    })
}

/// Writes that the cache takes; all writes where none shows, with how far that was tried.
fn burst_writes(profile: &DeviceProfile) -> Option<Headline> {
    let all = &profile.measurements;
    let is_steady_known = all.sustained_write_bytes_per_second().is_some();
    match all.write_rates() {
        WriteRates::Sustained { burst_bytes } => {
            let found = all.write_cache.as_ref()?;
            let search = (found.burst_bytes_per_second, found.workload);
            let best = fastest(all.burst.iter()).map(|best| (best.bytes_per_second, best.workload));
            let (rate, workload) = best.filter(|best| best.0 > search.0).unwrap_or(search);
            Some(Headline {
                name: "burst write bandwidth",
                value: unit::rate(rate),
                detail: format!(
                    "{}, until {} are written",
                    describe_workload(&workload),
                    unit::bytes(burst_bytes)
                ),
            })
        }
        WriteRates::NoFall { written_bytes } if !is_steady_known => {
            let mut headline = bandwidth(profile, Access::Write, "write bandwidth")?;
            let written = unit::bytes(written_bytes as f64);
            headline.detail += &format!("; no fall within {written}, longer bursts: --sustain");
            Some(headline)
        }
        WriteRates::NoFall { .. } | WriteRates::Bursts => {
            let mut headline = bandwidth(profile, Access::Write, "burst write bandwidth")?;
            if !is_steady_known {
                headline.detail += "; sustained rate: --sustain";
            }
            Some(headline)
        }
    }
}

fn durable_write(profile: &DeviceProfile) -> Option<Headline> {
    let best = profile
        .measurements
        .flush
        .iter()
        .filter(|point| point.sync_method().is_some())
        .min_by(|a, b| a.latency.mean_us.total_cmp(&b.latency.mean_us))?;
    Some(Headline {
        name: "durable 4 KiB write",
        value: unit::micros(best.latency.mean_us),
        detail: format!(
            "mean with {}; half within {}, 99 % within {}",
            best.method,
            unit::micros(best.latency.p50_us),
            unit::micros(best.latency.p99_us)
        ),
    })
}

fn prediction(profile: &DeviceProfile) -> Option<Headline> {
    let comparison = profile.comparison.as_ref()?;
    let first = *comparison.ranking.first()?;
    let errors: Vec<String> = comparison
        .rows
        .iter()
        .filter(|row| row.model == first)
        .map(|row| format!("{} {}", kind_name(row.access), unit::share(row.median_relative_error)))
        .collect();
    Some(Headline {
        name: "best model",
        value: first.to_string(),
        detail: format!("median held-out error: {}", errors.join(", ")),
    })
}

fn store(profile: &DeviceProfile) -> Option<Headline> {
    let store = profile.store.as_ref()?;
    let look_ups = store.operations.iter().find(|operation| operation.operation == "random look-ups")?;
    let of_raw = match (share_of_raw(look_ups), look_ups.raw_per_second) {
        (Some(share), _) => format!("{} of the raw device's rate", unit::share(share)),
        (None, Some(_)) => "the raw device was measured with too much noise".to_owned(),
        (None, None) => return None,
    };
    let place = match cached_sentence(store) {
        None => "out of memory",
        Some(_) => "many of them in memory",
    };
    Some(Headline {
        name: "store look-ups per second",
        value: unit::count(look_ups.measured_per_second),
        detail: format!("{place}, {} at a time; {of_raw}", look_ups.concurrency),
    })
}
