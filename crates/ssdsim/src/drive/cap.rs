//! Limits of a host on a drive's requests: token buckets of requests and of bytes, as clouds limit their
//! volumes.
//!
//! A bucket that is drained at `rate` tokens a second and holds `burst` of them is kept as one number: the
//! time at which it would be exactly paid for all requests so far (the virtual scheduling of ATM's generic
//! cell rate algorithm). A request goes through at once while that time is no more than `burst / rate` ahead,
//! and has to wait for as long as it is further ahead otherwise. Therefore
//!
//! 1. requests go through in the order in which they come;
//! 2. in any span of `t` seconds at most `1 + burst + rate x t` requests go through, and so with bytes;
//! 3. a bucket of no burst spaces requests evenly, and lets one through at once after a pause.

use crate::config::CapConfig;

const NS_PER_S: u128 = 1_000_000_000;

/// See the module.
#[derive(Debug)]
pub(super) struct Cap {
    requests: Option<Bucket>,
    bytes: Option<Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    per_s: u64,
    burst_ns: u64,
    paid_until_ns: u64,
}

impl Cap {
    pub fn new(config: &CapConfig) -> Self {
        Self {
            requests: config.requests_per_s.map(|per_s| Bucket::new(per_s, config.burst_requests)),
            bytes: config.bytes_per_s.map(|per_s| Bucket::new(per_s, config.burst_bytes)),
        }
    }

    /// When a request that comes at `now_ns` goes through; its tokens are taken.
    pub fn admit(&mut self, now_ns: u64, bytes: u64) -> u64 {
        let mut buckets = [(&mut self.requests, 1), (&mut self.bytes, bytes)];
        let free = |bucket: &Option<Bucket>| bucket.map_or(0, Bucket::free_at_ns);
        let admitted_ns = buckets.iter().map(|(bucket, _)| free(bucket)).fold(now_ns, u64::max);
        for (bucket, tokens) in &mut buckets {
            if let Some(bucket) = bucket {
                bucket.take(admitted_ns, *tokens);
            }
        }
        admitted_ns
    }
}

impl Bucket {
    fn new(per_s: u64, burst: u64) -> Self {
        Self { per_s, burst_ns: span_ns(burst, per_s), paid_until_ns: 0 }
    }

    fn free_at_ns(self) -> u64 {
        self.paid_until_ns.saturating_sub(self.burst_ns)
    }

    fn take(&mut self, at_ns: u64, tokens: u64) {
        self.paid_until_ns = self.paid_until_ns.max(at_ns).saturating_add(span_ns(tokens, self.per_s));
    }
}

/// Time of `tokens` tokens in nanoseconds, rounded up.
fn span_ns(tokens: u64, per_s: u64) -> u64 {
    u64::try_from((u128::from(tokens) * NS_PER_S).div_ceil(u128::from(per_s))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cap(requests: Option<(u64, u64)>, bytes: Option<(u64, u64)>) -> Cap {
        Cap::new(&CapConfig {
            requests_per_s: requests.map(|(rate, _)| rate),
            burst_requests: requests.map_or(0, |(_, burst)| burst),
            bytes_per_s: bytes.map(|(rate, _)| rate),
            burst_bytes: bytes.map_or(0, |(_, burst)| burst),
        })
    }

    fn admitted<const N: usize>(mut cap: Cap, at_ns: [u64; N], bytes: u64) -> [u64; N] {
        at_ns.map(|now_ns| cap.admit(now_ns, bytes))
    }

    #[test]
    fn without_a_burst_requests_are_spaced_evenly_and_pauses_save_nothing() {
        let thousand = || cap(Some((1000, 0)), None);
        assert_eq!(admitted(thousand(), [0; 4], 512), [0, 1_000_000, 2_000_000, 3_000_000]);
        let pause = admitted(thousand(), [0, 10_000_000, 10_000_000], 512);
        assert_eq!(pause, [0, 10_000_000, 11_000_000]);
    }

    #[test]
    fn a_burst_goes_through_at_once_and_comes_back_in_pauses() {
        let two_more = || cap(Some((1000, 2)), None);
        assert_eq!(admitted(two_more(), [0; 5], 512), [0, 0, 0, 1_000_000, 2_000_000]);
        let pause = admitted(two_more(), [0, 0, 0, 1_000_000, 9_000_000, 9_000_000, 9_000_000, 9_000_000], 1);
        assert_eq!(pause[3..], [1_000_000, 9_000_000, 9_000_000, 9_000_000, 10_000_000]);
    }

    #[test]
    fn the_scarcer_of_requests_and_bytes_decides() {
        let both = || cap(Some((1000, 0)), Some((1_000_000, 0)));
        assert_eq!(admitted(both(), [0; 3], 500), [0, 1_000_000, 2_000_000]);
        assert_eq!(admitted(both(), [0; 3], 4000), [0, 4_000_000, 8_000_000]);
    }

    #[test]
    fn absurd_bursts_never_bind() {
        assert_eq!(admitted(cap(Some((1, 1 << 50)), None), [7; 3], 512), [7; 3]);
    }
}
