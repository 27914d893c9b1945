//! The requests of one flow, one after another.

use std::fs::File;
use std::ops::Range;

use rand::{RngExt as _, SeedableRng};
use rand_pcg::Pcg64;

use super::SECTOR_BYTES;
use super::flow::{Addresses, Arrivals, Flow, FlowKind, Sizes, Synthetic, Trace};
use super::trace::{self, Recorded};
use crate::error::Error;

/// The next request of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wanted {
    pub offset_bytes: u64,
    pub length_bytes: u64,
    pub is_read: bool,
}

/// When a flow's next request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It comes as soon as one of its requests is done.
    Done,
    /// It comes at this time.
    At(u64),
    /// Never: it has ended.
    Never,
}

/// See the module.
#[derive(Debug)]
pub(super) enum Source {
    Synthetic(Box<Generator>),
    Trace(Replay),
}

impl Source {
    /// Of a flow that has `addresses` of a drive to itself.
    pub fn new(flow: &Flow, addresses: Range<u64>) -> Result<Self, Error> {
        Ok(match &flow.kind {
            FlowKind::Synthetic(synthetic) => Self::Synthetic(Box::new(Generator::new(synthetic, addresses))),
            FlowKind::Trace(recorded) => Self::Trace(Replay {
                requests: trace::read(open(recorded)?, recorded)?,
                addresses,
                next: 0,
                remaining_repeats: recorded.repeats,
                repeat_ns: 0,
            }),
        })
    }

    /// Requests that are in flight from the beginning.
    pub fn depth(&self) -> u32 {
        match self {
            Self::Synthetic(generator) => match generator.flow.arrivals {
                Arrivals::QueueDepth(depth) => depth,
                Arrivals::BytesPerSecond(_) => 0,
            },
            Self::Trace(_) => 0,
        }
    }

    /// When the next request comes, now that it is `now_ns`.
    pub fn next(&self, now_ns: u64) -> Next {
        match self {
            Self::Synthetic(generator) => generator.next(now_ns),
            Self::Trace(replay) => replay.next(),
        }
    }

    /// Takes the next request.
    pub fn take(&mut self) -> Wanted {
        match self {
            Self::Synthetic(generator) => generator.take(),
            Self::Trace(replay) => replay.take(),
        }
    }
}

fn open(recorded: &Trace) -> Result<File, Error> {
    File::open(&recorded.path).map_err(|source| Error::File { path: recorded.path.clone(), source })
}

/// Makes up requests.
#[derive(Debug)]
pub(super) struct Generator {
    flow: Synthetic,
    addresses: Range<u64>,
    random: Pcg64,
    taken: u64,
    /// Start of the next request of a stream.
    stream_at: u64,
    arrival_ns: f64,
}

impl Generator {
    fn new(flow: &Synthetic, addresses: Range<u64>) -> Self {
        let used = ((addresses.end - addresses.start) as f64 * flow.working_set) as u64;
        let used = (used / SECTOR_BYTES * SECTOR_BYTES).max(SECTOR_BYTES);
        let mut random = Pcg64::seed_from_u64(flow.seed);
        let stream_at = match flow.addresses {
            Addresses::Streaming => random.random_range(0..used) / flow.align_bytes * flow.align_bytes,
            _ => 0,
        };
        Self {
            flow: flow.clone(),
            addresses: addresses.start..addresses.start + used,
            random,
            taken: 0,
            stream_at,
            arrival_ns: 0.0,
        }
    }

    fn next(&self, now_ns: u64) -> Next {
        let stop_ns = self.flow.stop_ns.unwrap_or(u64::MAX);
        let by_depth = matches!(self.flow.arrivals, Arrivals::QueueDepth(_));
        let at_ns = if by_depth { now_ns } else { self.arrival_ns as u64 };
        if at_ns >= stop_ns || self.flow.requests.is_some_and(|most| self.taken >= most) {
            Next::Never
        } else if by_depth {
            Next::Done
        } else {
            Next::At(at_ns)
        }
    }

    fn take(&mut self) -> Wanted {
        self.taken += 1;
        let used = self.addresses.end - self.addresses.start;
        let length_bytes = (self.sectors() * SECTOR_BYTES).min(used);
        if let Arrivals::BytesPerSecond(rate) = self.flow.arrivals {
            let mean_ns = self.mean_bytes() / rate * 1e9;
            self.arrival_ns += -mean_ns * (1.0 - self.random.random::<f64>()).ln();
        }
        let is_read = self.random.random::<f64>() < self.flow.read_share;
        let last_start = used - length_bytes;
        let offset_bytes = self.addresses.start + self.start(last_start, length_bytes);
        Wanted { offset_bytes, length_bytes, is_read }
    }

    /// Start of a request of `length_bytes`; `last_start` at most.
    fn start(&mut self, last_start: u64, length_bytes: u64) -> u64 {
        let align = self.flow.align_bytes;
        match self.flow.addresses {
            Addresses::Streaming => {
                let start = if self.stream_at > last_start { 0 } else { self.stream_at };
                self.stream_at = start + length_bytes.next_multiple_of(align);
                start
            }
            Addresses::Uniform => self.random.random_range(0..=last_start / align) * align,
            Addresses::HotCold { hot } => {
                let border = (last_start as f64 * hot) as u64 / align;
                let is_hot = self.random.random::<f64>() >= hot;
                let range = if is_hot { 0..=border } else { border..=last_start / align };
                self.random.random_range(range) * align
            }
        }
    }

    fn mean_bytes(&self) -> f64 {
        match self.flow.sizes {
            Sizes::Fixed { sectors } => (sectors * SECTOR_BYTES) as f64,
            Sizes::Normal { mean, .. } => mean * SECTOR_BYTES as f64,
        }
    }

    fn sectors(&mut self) -> u64 {
        match self.flow.sizes {
            Sizes::Fixed { sectors } => sectors,
            // Box and Muller.
            Sizes::Normal { mean, deviation } => {
                let radius = (-2.0 * (1.0 - self.random.random::<f64>()).ln()).sqrt();
                let angle = std::f64::consts::TAU * self.random.random::<f64>();
                ((mean + deviation * radius * angle.cos()).ceil() as u64).clamp(1, 1 << 17)
            }
        }
    }
}

/// Repeats recorded requests.
#[derive(Debug)]
pub(super) struct Replay {
    requests: Vec<Recorded>,
    addresses: Range<u64>,
    next: usize,
    remaining_repeats: u32,
    /// When the running repeat began.
    repeat_ns: u64,
}

impl Replay {
    fn next(&self) -> Next {
        let recorded = self.requests.get(self.next).filter(|_| self.remaining_repeats > 0);
        recorded.map_or(Next::Never, |recorded| Next::At(self.repeat_ns + recorded.arrival_ns))
    }

    fn take(&mut self) -> Wanted {
        let recorded = self.requests.get(self.next).copied();
        let recorded = recorded.unwrap_or(Recorded {
            arrival_ns: 0,
            offset_bytes: 0,
            length_bytes: SECTOR_BYTES,
            is_read: true,
        });
        self.next += 1;
        if self.next >= self.requests.len() {
            self.next = 0;
            self.remaining_repeats -= 1;
            self.repeat_ns += recorded.arrival_ns;
        }
        let have = self.addresses.end - self.addresses.start;
        let length_bytes = recorded.length_bytes.min(have);
        // Traces come from drives of any size: addresses after the end wrap around.
        let offset_bytes = self.addresses.start + (recorded.offset_bytes % have).min(have - length_bytes);
        Wanted { offset_bytes, length_bytes, is_read: recorded.is_read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn flow(addresses: Addresses, sizes: Sizes) -> Synthetic {
        Synthetic {
            working_set: 0.5,
            read_share: 0.5,
            arrivals: Arrivals::QueueDepth(1),
            addresses,
            align_bytes: 8192,
            sizes,
            seed: 7,
            stop_ns: None,
            requests: Some(10_000),
        }
    }

    /// All requests of a flow that has the third to sixth mebibyte of a drive.
    fn requests(flow: &Synthetic) -> Vec<Wanted> {
        let mut generator = Generator::new(flow, 2 * MIB..6 * MIB);
        let mut all = Vec::new();
        while generator.next(0) != Next::Never {
            all.push(generator.take());
        }
        assert_eq!(all.len(), 10_000);
        for wanted in &all {
            let end = wanted.offset_bytes + wanted.length_bytes;
            assert!(wanted.offset_bytes >= 2 * MIB && end <= 4 * MIB, "half of its addresses: {wanted:?}");
            assert!((wanted.offset_bytes - 2 * MIB).is_multiple_of(8192), "{wanted:?}");
        }
        all
    }

    #[test]
    fn uniform_requests_go_anywhere() {
        let all = requests(&flow(Addresses::Uniform, Sizes::Fixed { sectors: 8 }));
        let places: std::collections::BTreeSet<u64> = all.iter().map(|wanted| wanted.offset_bytes).collect();
        assert_eq!(places.len() as u64, 2 * MIB / 8192);
        let reads = all.iter().filter(|wanted| wanted.is_read).count();
        assert!((4_700..5_300).contains(&reads), "{reads}");
    }

    #[test]
    fn streams_go_on_and_begin_again() {
        let mut begins = std::collections::BTreeSet::new();
        for seed in 1..=8 {
            let flow = Synthetic { seed, ..flow(Addresses::Streaming, Sizes::Fixed { sectors: 16 }) };
            let all = requests(&flow);
            let first = all[0].offset_bytes - 2 * MIB;
            begins.insert(first);
            let expected = |index: u64| 2 * MIB + (first + index * 8192) % (2 * MIB);
            assert!(all.iter().zip(0..).all(|(wanted, index)| wanted.offset_bytes == expected(index)));
        }
        assert!(begins.len() > 4, "streams begin anywhere: {begins:?}");
    }

    #[test]
    fn most_requests_go_to_the_hot_part() {
        let all = requests(&flow(Addresses::HotCold { hot: 0.2 }, Sizes::Fixed { sectors: 8 }));
        let border = 2 * MIB + (0.2 * 2.0 * MIB as f64) as u64;
        let hot = all.iter().filter(|wanted| wanted.offset_bytes <= border).count();
        assert!((7_800..8_300).contains(&hot), "{hot}");
    }

    #[test]
    fn sizes_scatter_as_they_should() {
        let all = requests(&flow(Addresses::Uniform, Sizes::Normal { mean: 32.0, deviation: 4.0 }));
        let sectors: Vec<f64> = all.iter().map(|wanted| wanted.length_bytes as f64 / 512.0).collect();
        // Sizes are rounded up.
        let mean = sectors.iter().sum::<f64>() / sectors.len() as f64 - 0.5;
        let variance = sectors.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / sectors.len() as f64;
        assert!((mean - 32.0).abs() < 0.2 && (variance.sqrt() - 4.0).abs() < 0.15, "{mean} {variance}");
    }

    #[test]
    fn streams_of_many_sizes_leave_no_gaps() {
        let unaligned = Synthetic {
            align_bytes: 512,
            requests: Some(100),
            ..flow(Addresses::Streaming, Sizes::Normal { mean: 32.0, deviation: 8.0 })
        };
        let mut generator = Generator::new(&unaligned, 0..64 * MIB);
        let all: Vec<Wanted> = (0..100).map(|_| generator.take()).collect();
        let goes_on = |pair: &[Wanted]| pair[0].offset_bytes + pair[0].length_bytes == pair[1].offset_bytes;
        let gaps = all.windows(2).filter(|pair| !goes_on(pair) && pair[1].offset_bytes > 0).count();
        assert_eq!(gaps, 0, "{all:?}");
    }

    #[test]
    fn addresses_behind_the_end_come_round_again() {
        let recorded =
            |offset_bytes| Recorded { arrival_ns: 0, offset_bytes, length_bytes: 8192, is_read: true };
        let requests = [4096, MIB - 8192, MIB, 3 * MIB + 4096, MIB - 512].map(recorded).to_vec();
        let mut replay =
            Replay { requests, addresses: MIB..2 * MIB, next: 0, remaining_repeats: 1, repeat_ns: 0 };
        let offsets: Vec<u64> = (0..5).map(|_| replay.take().offset_bytes - MIB).collect();
        assert_eq!(offsets, [4096, MIB - 8192, 0, 4096, MIB - 8192]);
    }
}
