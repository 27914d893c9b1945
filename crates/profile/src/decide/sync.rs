//! Durability: log blocks, the way to make them durable, and how long commits gather.

use std::time::Duration;

use flashgrain_settings::drive::{Decision, Setting};
use flashgrain_settings::{Bytes, SyncMethod};

use super::{DecisionInputs, default, hidden, learned, why};
use crate::schema::FlushPoint;

const DEFAULT_LOG_BLOCK: Bytes = Bytes(4 << 10);

const DEFAULT_WINDOW: Duration = Duration::from_millis(1);

/// A durable write that costs less than this times a plain one needs no company.
const CHEAP: f64 = 2.0;

/// A method must be this much cheaper than `fdatasync`, which works everywhere, both on average and usually,
/// to be preferred.
const WORTH_IT: f64 = 0.95;

pub(super) fn decide(known: &DecisionInputs<'_>) -> Vec<Decision> {
    vec![log_block(known), method(known), window(known)]
}

fn log_block(known: &DecisionInputs<'_>) -> Decision {
    let page = &known.learned.flash_page_bytes;
    match page.estimate.value() {
        Some(bytes) => {
            let because = "the flash page: a smaller block is padded to it (rule 5)";
            learned(Setting::LogBlock(Bytes(bytes as u64)), because)
        }
        None => default(Setting::LogBlock(DEFAULT_LOG_BLOCK), why(page)),
    }
}

/// A durable method, and whether it is clearly cheaper than all others.
#[derive(Debug)]
struct Choice<'a> {
    method: SyncMethod,
    point: &'a FlushPoint,
    clear: bool,
}

/// The mean times of a method's repeats; `None` if there was only one repeat, which does not show how far
/// noise has moved it.
fn means_us(point: &FlushPoint) -> Option<(f64, f64)> {
    point.mean_us_min.zip(point.mean_us_max)
}

/// Whether every repeat of one method was cheaper than every repeat of the other, and the median agrees.
fn clearly_cheaper(one: &FlushPoint, other: &FlushPoint) -> bool {
    let (Some((_, one_max_us)), Some((other_min_us, _))) = (means_us(one), means_us(other)) else {
        return false;
    };
    one_max_us <= WORTH_IT * other_min_us && one.latency.p50_us <= WORTH_IT * other.latency.p50_us
}

/// The cheapest durable method; `fdatasync` if none is clearly cheaper. Methods of other versions do not
/// count.
fn cheapest(points: &[FlushPoint]) -> Option<Choice<'_>> {
    let durable = || points.iter().filter_map(|point| Some((point.sync_method()?, point)));
    let best = durable().min_by(|(_, a), (_, b)| a.latency.mean_us.total_cmp(&b.latency.mean_us))?;
    let plain = durable().find(|(method, _)| *method == SyncMethod::Fdatasync);
    let (method, point) = plain.filter(|(_, plain)| !clearly_cheaper(best.1, plain)).unwrap_or(best);
    let is_repeated = means_us(point).is_some();
    let clear =
        is_repeated && durable().all(|(other, others)| other == method || clearly_cheaper(point, others));
    Some(Choice { method, point, clear })
}

/// `fdatasync 308 µs (240 – 410)`, and so on.
fn all_costs(points: &[FlushPoint]) -> String {
    let one = |point: &FlushPoint| {
        let range = means_us(point).map_or(" (once)".into(), |(min, max)| format!(" ({min:.0} – {max:.0})"));
        format!("{} {:.0} µs{range}", point.method, point.latency.mean_us)
    };
    points.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn method(known: &DecisionInputs<'_>) -> Decision {
    let points = &known.measurements.flush;
    let because = format!("a durable 4 KiB write, mean of the repeats: {}", all_costs(points));
    match cheapest(points) {
        Some(Choice { method, clear: true, .. }) => learned(Setting::SyncMethod(method), because),
        Some(Choice { method, clear: false, .. }) => hidden(Setting::SyncMethod(method), because),
        None => default(Setting::SyncMethod(SyncMethod::Fdatasync), "flush was not run"),
    }
}

fn window(known: &DecisionInputs<'_>) -> Decision {
    let points = &known.measurements.flush;
    let plain = points.iter().find(|point| point.method == FlushPoint::NO_FLUSH);
    let Some(Choice { method, point: best, .. }) = cheapest(points) else {
        return default(Setting::GroupCommitWindow(DEFAULT_WINDOW), "flush was not run");
    };
    let costs = plain.map(|plain| {
        format!(
            "a durable write takes {:.0} µs on average, a plain one {:.0} µs",
            best.latency.mean_us, plain.latency.mean_us
        )
    });
    let no_wait = Setting::GroupCommitWindow(Duration::ZERO);
    match plain.and_then(|plain| is_cheap(best, plain)).zip(costs) {
        Some((true, costs)) => learned(no_wait, format!("{costs}: waiting for company gains nothing")),
        None if plain.is_some() => {
            let because = format!(
                "the repeats of durable and of plain writes lie on both sides of a factor of {CHEAP}; without waiting no commit \
                 loses time ({})",
                all_costs(points)
            );
            hidden(no_wait, because)
        }
        Some((false, _)) | None => {
            let window = Setting::GroupCommitWindow(Duration::from_secs_f64(best.latency.p50_us * 1e-6));
            let because = format!(
                "one sync by {} (median): commits gather while the one before them is made durable",
                method.name()
            );
            match means_us(best) {
                Some(_) => learned(window, because),
                None => {
                    let why =
                        "durable writes were measured once, which does not show how far noise has moved them";
                    default(Setting::GroupCommitWindow(DEFAULT_WINDOW), why)
                }
            }
        }
    }
}

/// Whether a durable write costs little compared with a plain one; `None` if the repeats lie on both sides.
fn is_cheap(durable: &FlushPoint, plain: &FlushPoint) -> Option<bool> {
    let ((durable_min, durable_max), (plain_min, plain_max)) = (means_us(durable)?, means_us(plain)?);
    if durable_max < CHEAP * plain_min {
        Some(true)
    } else if durable_min > CHEAP * plain_max {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::layout::tests::nothing_learned;
    use crate::schema::{Latency, Measurements};

    /// Repeats scatter by this share.
    fn point_with_noise(method: &str, us: f64, noise: f64) -> FlushPoint {
        FlushPoint {
            method: method.into(),
            latency: Latency { count: 100, mean_us: us, p50_us: us, ..Latency::default() },
            mean_us_min: Some(us * (1.0 - noise)),
            mean_us_max: Some(us * (1.0 + noise)),
        }
    }

    fn point(method: &str, us: f64) -> FlushPoint {
        point_with_noise(method, us, 0.01)
    }

    #[test]
    fn the_cheapest_durable_method_wins_and_the_plain_write_does_not_count() {
        let points =
            [point("fdatasync", 5000.0), point("RWF_DSYNC", 3000.0), point(FlushPoint::NO_FLUSH, 50.0)];
        let choice = cheapest(&points).unwrap();
        assert!(choice.method == SyncMethod::Dsync && choice.clear);
        let alike = [point("fdatasync", 3050.0), point("RWF_DSYNC", 3000.0)];
        let choice = cheapest(&alike).unwrap();
        assert!(choice.method == SyncMethod::Fdatasync && !choice.clear);
        assert!(cheapest(&[point(FlushPoint::NO_FLUSH, 50.0)]).is_none());
        assert!(cheapest(&[point("a method of a later version", 50.0)]).is_none());
    }

    #[test]
    fn nothing_is_learned_from_one_repeat() {
        let once =
            |method: &str, us| FlushPoint { mean_us_min: None, mean_us_max: None, ..point(method, us) };
        for points in [
            vec![once("fdatasync", 900.0)],
            vec![once("fdatasync", 900.0), once(FlushPoint::NO_FLUSH, 20.0)],
            vec![once("fdatasync", 900.0), once("RWF_DSYNC", 100.0)],
        ] {
            let measurements = Measurements { flush: points, ..Measurements::default() };
            let learned = nothing_learned();
            let known = DecisionInputs { learned: &learned, measurements: &measurements, backend: None };
            assert!(decide(&known).iter().all(|one| one.from_default), "{:?}", decide(&known));
        }
        let twice = Measurements { flush: vec![point("fdatasync", 900.0)], ..Measurements::default() };
        let learned = nothing_learned();
        let window = window(&DecisionInputs { learned: &learned, measurements: &twice, backend: None });
        assert!(!window.from_default, "{window:?}");
    }

    #[test]
    fn what_noise_hides_is_a_default_that_says_so_and_does_not_flip() {
        // Means of three runs on one disk whose repeats differ by a factor of two.
        let runs = [[308.0, 202.0, 196.0, 60.0], [313.0, 280.0, 337.0, 73.0], [132.0, 210.0, 158.0, 93.0]];
        for us in runs {
            let methods = ["fdatasync", "RWF_DSYNC", "linked flush", FlushPoint::NO_FLUSH];
            let points =
                methods.iter().zip(us).map(|(method, us)| point_with_noise(method, us, 0.6)).collect();
            let measurements = Measurements { flush: points, ..Measurements::default() };
            let learned = nothing_learned();
            let known = DecisionInputs { learned: &learned, measurements: &measurements, backend: None };
            let (method, window) = (method(&known), window(&known));
            assert_eq!(
                (method.setting.sync_method(), method.from_default, method.hidden_by_noise),
                (Some(SyncMethod::Fdatasync), true, true)
            );
            assert_eq!(
                (window.setting.group_commit_window(), window.from_default, window.hidden_by_noise),
                (Some(Duration::ZERO), true, true)
            );
            assert!(method.because.starts_with("noise hides"), "{}", method.because);
        }
    }
}
