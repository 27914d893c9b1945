//! When a client begins its operations.

use flashgrain_device::Nanos;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{Burst, Span};

/// See the module.
pub(super) struct Pace {
    kind: Kind,
    began: Nanos,
    burst: Option<Burst>,
}

enum Kind {
    /// The next operation begins as soon as the last one has ended.
    Closed,
    /// At exponentially distributed distances, whatever happens meanwhile.
    Open { mean_ns: f64, next_ns: f64, random: Box<Pcg64> },
}

impl Pace {
    /// Of the `client`-th one, which begins at `began`.
    pub fn new(span: &Span, burst: Option<Burst>, began: Nanos, client: usize) -> Self {
        let kind = match span.rate_per_s {
            None => Kind::Closed,
            Some(rate) => {
                let mean_ns = 1e9 * span.clients as f64 / rate;
                let seed = span.seed ^ (client as u64 + 1) << 32;
                let random = Box::new(Pcg64::seed_from_u64(seed));
                Kind::Open { mean_ns, next_ns: began.0 as f64, random }
            }
        };
        Self { kind, began, burst }
    }

    /// Whether operations begin as soon as the last one has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self.kind, Kind::Closed) && self.burst.is_none()
    }

    /// When the operation after the one that has ended `now` should begin. Latencies count from there:
    /// perhaps from long ago in an open loop.
    pub fn next_start(&mut self, now: Nanos) -> Nanos {
        let next = match &mut self.kind {
            Kind::Closed => now,
            Kind::Open { mean_ns, next_ns, random } => {
                // From 0 to just below 1, so that 1 - x has a logarithm.
                let uniform: f64 = random.random();
                *next_ns -= *mean_ns * (1.0 - uniform).ln();
                Nanos(*next_ns as u64)
            }
        };
        match self.burst {
            None => next,
            Some(burst) => in_burst(next, self.began, burst),
        }
    }
}

/// `at`, or the beginning of the next burst.
fn in_burst(at: Nanos, began: Nanos, burst: Burst) -> Nanos {
    let (period, length) = (Nanos::from(burst.period).0.max(1), Nanos::from(burst.length).0);
    let passed = at.since(began).0;
    match passed % period < length {
        true => at,
        false => began + Nanos(passed.next_multiple_of(period)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn open_loops_keep_their_rate() {
        let span = Span {
            clients: 4,
            warmup: Duration::ZERO,
            length: Duration::from_secs(1),
            operations_max: None,
            written_bytes_max: None,
            rate_per_s: Some(8000.0),
            sample_every: 1,
            seed: 1,
        };
        let mut pace = Pace::new(&span, None, Nanos(0), 3);
        let last = (0..20_000).map(|_| pace.next_start(Nanos(0))).last().unwrap();
        // 2,000 per second and client; the standard deviation is 0.7 %.
        assert!((last.seconds() - 10.0).abs() < 0.3, "{last:?}");
    }

    #[test]
    fn bursts_begin_with_their_periods() {
        let burst = Burst { period: Duration::from_secs(10), length: Duration::from_secs(2) };
        let second = |seconds: f64| Nanos::from_seconds(seconds);
        let at = |seconds| in_burst(second(100.0 + seconds), second(100.0), burst);
        assert_eq!(at(1.0), second(101.0));
        assert_eq!(at(2.5), second(110.0));
        assert_eq!(at(11.0), second(111.0));
    }
}
