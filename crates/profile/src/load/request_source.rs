//! Chooses the next request of a stream: kind and place.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::{Load, Pattern};

/// Random starts of requests whose size is not a power of two are aligned to this.
const PAGE_BYTES: u64 = 4096;

/// The next request of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextRequest {
    pub offset_bytes: u64,
    pub is_read: bool,
}

/// The source of one worker's requests, from its seed.
pub(super) struct RequestSource<'a> {
    rng: Pcg64,
    read_share: f64,
    random_share: f64,
    request_bytes: u64,
    first_byte: u64,
    last_start: u64,
    align_bytes: u64,
    /// Start of each stream's next sequential request.
    next: Vec<u64>,
    list: &'a [u64],
    list_next: usize,
}

impl<'a> RequestSource<'a> {
    /// For the streams `first..first + count` of `total`.
    pub(super) fn new(load: &'a Load, device_align_bytes: u64, first: u32, count: u32, total: u32) -> Self {
        let workload = &load.workload;
        let request_bytes = workload.request_bytes as u64;
        let (asked, list): (Option<u64>, &[u64]) = match &load.pattern {
            Pattern::Mixed { align_bytes } => (*align_bytes, &[]),
            Pattern::List(offsets) => (None, offsets),
        };
        let natural =
            if request_bytes.is_power_of_two() { request_bytes } else { PAGE_BYTES.min(request_bytes) };
        let align_bytes =
            asked.unwrap_or(natural).next_multiple_of(device_align_bytes).max(device_align_bytes);
        let first_byte = load.region.offset_bytes;
        let last_start = first_byte + load.region.length_bytes - request_bytes;
        let apart = load.region.length_bytes / u64::from(total);
        let start = |stream: u32| {
            let offset = u64::from(stream) * apart / align_bytes * align_bytes;
            (first_byte + offset).min(last_start / align_bytes * align_bytes).max(first_byte)
        };
        Self {
            rng: Pcg64::seed_from_u64(load.seed ^ u64::from(first).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            read_share: workload.read_share,
            random_share: workload.random_share,
            request_bytes,
            first_byte,
            last_start,
            align_bytes,
            next: (first..first + count).map(start).collect(),
            list,
            list_next: list.len() * first as usize / total.max(1) as usize,
        }
    }

    /// The next request of `stream`.
    #[inline]
    pub(super) fn next(&mut self, stream: usize) -> NextRequest {
        let is_read = self.chance(self.read_share);
        if let Some(&offset_bytes) = self.list.get(self.list_next) {
            self.list_next = (self.list_next + 1) % self.list.len();
            return NextRequest { offset_bytes, is_read };
        }
        let offset_bytes = if self.chance(self.random_share) {
            let starts = (self.last_start - self.first_byte) / self.align_bytes + 1;
            self.first_byte + self.below(starts) * self.align_bytes
        } else {
            self.next[stream]
        };
        let after = offset_bytes + self.request_bytes;
        self.next[stream] = if after > self.last_start { self.first_byte } else { after };
        NextRequest { offset_bytes, is_read }
    }

    /// An exponentially distributed span with the given mean.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// True with the given probability; certainties draw nothing.
    #[inline]
    fn chance(&mut self, probability: f64) -> bool {
        probability >= 1.0 || (probability > 0.0 && self.unit() < probability)
    }

    /// Uniform in [0, 1).
    #[inline]
    fn unit(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..bound; the bias of at most 2^-64 times the bound does not matter here.
    #[inline]
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use flashgrain_model::{Access, Workload};
    use proptest::prelude::*;

    use super::super::{Region, Stop, Sync};
    use super::*;

    fn load(workload: Workload, pattern: Pattern, region: Region) -> Load {
        Load {
            workload,
            pattern,
            region,
            workers: 1,
            sync: Sync::None,
            rate_per_s: None,
            polled: false,
            warmup_share: 0.0,
            stop: Stop::default(),
            seed: 1,
        }
    }

    #[test]
    fn sequential_streams_start_apart_and_wrap() {
        let workload = Workload { random_share: 0.0, ..Workload::random(Access::Write, 4096.0, 2.0) };
        let region = Region { offset_bytes: 8192, length_bytes: 16384 };
        let load = load(workload, Pattern::Mixed { align_bytes: None }, region);
        let mut source = RequestSource::new(&load, 512, 0, 2, 2);
        let offsets: Vec<u64> = (0..5).map(|_| source.next(1).offset_bytes).collect();
        assert_eq!(offsets, [16384, 20480, 8192, 12288, 16384]);
        assert_eq!(source.next(0), NextRequest { offset_bytes: 8192, is_read: false });
    }

    #[test]
    fn a_list_is_followed_in_order() {
        let region = Region { offset_bytes: 0, length_bytes: 1 << 20 };
        let load =
            load(Workload::random(Access::Read, 4096.0, 1.0), Pattern::List(vec![8192, 0, 4096]), region);
        let mut source = RequestSource::new(&load, 512, 0, 1, 1);
        let offsets: Vec<u64> = (0..4).map(|_| source.next(0).offset_bytes).collect();
        assert_eq!(offsets, [8192, 0, 4096, 8192]);
    }

    proptest! {
        /// No request leaves the region or breaks alignment, and shares come out as asked.
        #[test]
        fn requests_stay_in_the_region(
            blocks in 1u64..300, start in 0u64..50, spare in 0u64..500, random in 0.0f64..1.0, reads in 0.0f64..1.0,
        ) {
            let (request, offset_bytes) = (blocks * 512, start * 512);
            let region = Region { offset_bytes, length_bytes: request + spare * 512 };
            let workload = Workload { read_share: reads, request_bytes: request as f64, random_share: random, concurrency: 3.0 };
            let load = load(workload, Pattern::Mixed { align_bytes: None }, region);
            let mut source = RequestSource::new(&load, 512, 0, 3, 3);
            let mut read = 0;
            for turn in 0..3000 {
                let place = source.next(turn % 3);
                prop_assert!(place.offset_bytes >= offset_bytes);
                prop_assert!(place.offset_bytes + request <= offset_bytes + region.length_bytes);
                prop_assert!(place.offset_bytes.is_multiple_of(512));
                read += u32::from(place.is_read);
            }
            prop_assert!((f64::from(read) / 3000.0 - reads).abs() < 0.06, "{} {}", read, reads);
        }
    }
}
