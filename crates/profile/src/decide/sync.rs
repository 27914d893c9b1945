//! Durability: log blocks, the way to make them durable, and how long commits gather.

use super::{Known, default, default_bytes, learned, learned_bytes, why};
use crate::experiment::NO_FLUSH;
use crate::schema::{Amount, Decision, FlushPoint};

const DEFAULT_LOG_BLOCK_BYTES: u64 = 4 << 10;

/// A durable write that costs less than this times a plain one needs no company.
const CHEAP: f64 = 2.0;

/// A method must be this much cheaper than `fdatasync`, which works everywhere, both on average and usually, to be preferred.
const WORTH_IT: f64 = 0.95;

pub(super) fn decide(known: &Known<'_>) -> Vec<Decision> {
    vec![log_block(known), method(known), window(known)]
}

fn log_block(known: &Known<'_>) -> Decision {
    const SETTING: &str = "log block size";
    let page = &known.learned.flash_page_bytes;
    match page.estimate.value() {
        Some(bytes) => {
            learned_bytes(SETTING, bytes as u64, "the flash page: a smaller block is padded to it (rule 5)")
        }
        None => default_bytes(SETTING, DEFAULT_LOG_BLOCK_BYTES, why(page)),
    }
}

/// The cheapest durable method; `fdatasync` if none is clearly cheaper.
fn cheapest(points: &[FlushPoint]) -> Option<&FlushPoint> {
    let durable = || points.iter().filter(|point| point.method != NO_FLUSH);
    let best = durable().min_by(|a, b| a.latency.mean_us.total_cmp(&b.latency.mean_us))?;
    let plain = durable().find(|point| point.method == "fdatasync");
    let clearly_cheaper = |plain: &FlushPoint| {
        best.latency.mean_us <= WORTH_IT * plain.latency.mean_us
            && best.latency.p50_us <= WORTH_IT * plain.latency.p50_us
    };
    Some(plain.filter(|plain| !clearly_cheaper(plain)).unwrap_or(best))
}

fn method(known: &Known<'_>) -> Decision {
    const SETTING: &str = "sync method";
    let points = &known.measurements.flush;
    match cheapest(points) {
        Some(best) => {
            let all: Vec<String> = points
                .iter()
                .map(|point| format!("{} {:.0} µs", point.method, point.latency.mean_us))
                .collect();
            learned(SETTING, best.method.clone(), format!("a durable 4 KiB write: {}", all.join(", ")))
        }
        None => default(SETTING, "fdatasync", "flush was not run"),
    }
}

fn window(known: &Known<'_>) -> Decision {
    const SETTING: &str = "group-commit window";
    let points = &known.measurements.flush;
    let plain = points.iter().find(|point| point.method == NO_FLUSH);
    match (cheapest(points), plain) {
        (Some(best), Some(plain)) if best.latency.mean_us < CHEAP * plain.latency.mean_us => learned(
            SETTING,
            "0 µs",
            format!(
                "a durable write takes {:.0} µs on average, a plain one {:.0} µs: waiting for company gains nothing",
                best.latency.mean_us, plain.latency.mean_us
            ),
        )
        .of(Amount::Microseconds(0.0)),
        (Some(best), _) => learned(
            SETTING,
            format!("{:.0} µs", best.latency.p50_us),
            format!(
                "one sync by {} (median): commits gather while the one before them is made durable",
                best.method
            ),
        )
        .of(Amount::Microseconds(best.latency.p50_us)),
        (None, _) => {
            default(SETTING, "1000 µs", "flush was not run").of(Amount::Microseconds(1000.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Latency;

    fn point(method: &str, us: f64) -> FlushPoint {
        FlushPoint {
            method: method.into(),
            latency: Latency { count: 100, mean_us: us, p50_us: us, ..Latency::default() },
        }
    }

    #[test]
    fn the_cheapest_durable_method_wins_and_the_plain_write_does_not_count() {
        let points = [point("fdatasync", 5000.0), point("RWF_DSYNC", 3000.0), point(NO_FLUSH, 50.0)];
        assert_eq!(cheapest(&points).unwrap().method, "RWF_DSYNC");
        let alike = [point("fdatasync", 3050.0), point("RWF_DSYNC", 3000.0)];
        assert_eq!(cheapest(&alike).unwrap().method, "fdatasync");
        assert!(cheapest(&[point(NO_FLUSH, 50.0)]).is_none());
    }
}
