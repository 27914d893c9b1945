//! Requests of a trace to one device, for a replay.
//!
//! Each file and each drive of the trace gets a region of its own, which begins at a multiple of
//! [`REGION_ALIGN_BYTES`], so that offsets within stripes stay the same. Regions that do not fit wrap around.

use std::collections::HashMap;

use flashgrain_device::{Nanos, Op};
use flashgrain_profile::load::Recorded;
use serde::Serialize;

use crate::{Address, Layer, NameId, Operation, Request};

/// The begin of a region is a multiple of this, in bytes: of the largest stripes.
pub const REGION_ALIGN_BYTES: u64 = 4 << 20;

/// The longest request, in bytes; longer ones are cut.
const LENGTH_BYTES_MAX: u64 = 16 << 20;

/// Requests of a trace, gathered for a replay.
#[derive(Debug, Default)]
pub struct Gathered {
    requests: Vec<Request>,
}

/// How long requests of one kind took when they were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecordedLatency {
    /// Requests whose completion was recorded.
    pub count: u64,
    /// The median, in microseconds.
    pub p50_us: f64,
    /// The 99th percentile, in microseconds.
    pub p99_us: f64,
}

impl RecordedLatency {
    /// Of these latencies; `None` if there are none.
    fn of(mut latencies_ns: Vec<u64>) -> Option<Self> {
        latencies_ns.sort_unstable();
        // The lowest latency that so large a part of all does not exceed.
        let percentile_us = |percent: usize| {
            let rank = (latencies_ns.len() * percent).div_ceil(100).saturating_sub(1);
            latencies_ns.get(rank).map(|latency| *latency as f64 * 1e-3)
        };
        let (p50_us, p99_us) = (percentile_us(50)?, percentile_us(99)?);
        Some(Self { count: latencies_ns.len() as u64, p50_us, p99_us })
    }
}

/// Requests to one device.
#[derive(Debug)]
pub struct Planned {
    /// In the order of their times, which begin at zero.
    pub requests: Vec<Recorded>,
    /// Requests whose offset or length was rounded for the device: their ends were moved outwards.
    pub rounded: u64,
    /// Requests that were cut at the end of the device, or because they are too long.
    pub cut: u64,
    /// Requests that no device can do, such as those without an address.
    pub left_out: u64,
}

impl Gathered {
    /// Takes a request.
    pub fn take(&mut self, request: &Request) {
        self.requests.push(*request);
    }

    /// The layer to replay by default: block requests if the trace has any.
    pub fn layer(&self) -> Layer {
        let has_blocks = self.requests.iter().any(|request| request.layer == Layer::Drive);
        if has_blocks { Layer::Drive } else { Layer::File }
    }

    fn of(&self, layer: Layer) -> impl Iterator<Item = (&Request, Address)> {
        let of_layer = self.requests.iter().filter(move |request| request.layer == layer);
        of_layer.filter_map(move |request| {
            let address = match layer {
                Layer::File => request.in_file.or(request.on_device),
                Layer::Drive => request.on_device.or(request.in_file),
            };
            Some((request, address?))
        })
    }

    /// Whether there are writes or discards in a layer.
    pub fn modifies(&self, layer: Layer) -> bool {
        self.of(layer).any(|(request, _)| matches!(request.operation, Operation::Write | Operation::Discard))
    }

    /// How long the requests of an operation took in the recording; `None` if it does not say. A system call
    /// may have been served from memory.
    pub fn recorded_latency(&self, layer: Layer, operation: Operation) -> Option<RecordedLatency> {
        let of_operation = self.of(layer).filter(|(request, _)| request.operation == operation);
        RecordedLatency::of(of_operation.filter_map(|(request, _)| request.latency_ns).collect())
    }

    /// Where the region of each name begins, and where the last one ends.
    fn regions(&self, layer: Layer) -> (HashMap<NameId, u64>, u64) {
        let mut ends: Vec<(NameId, u64)> = Vec::new();
        let mut places: HashMap<NameId, usize> = HashMap::new();
        for (request, address) in self.of(layer) {
            let end = address.offset_bytes.saturating_add(request.length_bytes);
            let place = *places.entry(address.name).or_insert_with(|| {
                ends.push((address.name, 0));
                ends.len() - 1
            });
            if let Some((_, reached)) = ends.get_mut(place) {
                *reached = end.max(*reached);
            }
        }
        let mut regions = HashMap::new();
        let mut begin: u64 = 0;
        for (name, end) in ends {
            regions.insert(name, begin);
            let length = end.checked_next_multiple_of(REGION_ALIGN_BYTES).unwrap_or(u64::MAX);
            begin = begin.saturating_add(length);
        }
        (regions, begin)
    }

    /// Bytes that a device needs for a layer, so that no region wraps around.
    pub fn span_bytes(&self, layer: Layer) -> u64 {
        self.regions(layer).1
    }

    /// The requests of a layer, for a device of `capacity_bytes` whose offsets and lengths are multiples of
    /// `align_bytes`.
    pub fn plan(&self, layer: Layer, capacity_bytes: u64, align_bytes: u64) -> Planned {
        let (regions, _) = self.regions(layer);
        let align = align_bytes.max(1);
        let capacity = capacity_bytes / align * align;
        let mut planned = Planned { requests: Vec::new(), rounded: 0, cut: 0, left_out: 0 };
        for (request, address) in self.of(layer) {
            let at = Nanos(request.time_ns);
            let op = match request.operation {
                Operation::Read => Op::Read,
                Operation::Write => Op::Write,
                Operation::Flush => Op::Flush,
                Operation::Discard => Op::Discard,
            };
            if op == Op::Flush {
                planned.requests.push(Recorded { at, op, offset_bytes: 0, length_bytes: 0 });
                continue;
            }
            if request.length_bytes == 0 || capacity == 0 {
                planned.left_out += 1;
                continue;
            }
            let region = regions.get(&address.name).copied().unwrap_or(0);
            let offset = region.wrapping_add(address.offset_bytes) % capacity;
            let begin = offset / align * align;
            let end = offset
                .saturating_add(request.length_bytes)
                .checked_next_multiple_of(align)
                .unwrap_or(capacity);
            let end_max = capacity.min(begin.saturating_add(LENGTH_BYTES_MAX / align * align));
            planned.rounded +=
                u64::from(begin != offset || end != offset.saturating_add(request.length_bytes));
            planned.cut += u64::from(end > end_max);
            let Ok(length_bytes) = u32::try_from(end.min(end_max) - begin) else { continue };
            planned.requests.push(Recorded { at, op, offset_bytes: begin, length_bytes });
        }
        planned.requests.sort_by_key(|request| request.at);
        let first = planned.requests.first().map_or(0, |request| request.at.0);
        for request in &mut planned.requests {
            request.at.0 -= first;
        }
        planned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Names;

    fn request(
        name: NameId,
        time_ns: u64,
        operation: Operation,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Request {
        let in_file = Some(Address { name, offset_bytes });
        Request {
            time_ns,
            layer: Layer::File,
            operation,
            on_device: None,
            in_file,
            length_bytes,
            process: None,
            latency_ns: None,
        }
    }

    #[test]
    fn files_have_regions_of_their_own_and_requests_the_devices_alignment() {
        let mut names = Names::default();
        let (first, second) = (names.id("a"), names.id("b"));
        let mut gathered = Gathered::default();
        gathered.take(&request(first, 2000, Operation::Write, 100, 100));
        gathered.take(&request(second, 1000, Operation::Read, 4096, 4096));
        gathered.take(&request(second, 3000, Operation::Flush, 0, 0));
        assert_eq!(
            (gathered.layer(), gathered.span_bytes(Layer::File)),
            (Layer::File, 2 * REGION_ALIGN_BYTES)
        );
        let planned = gathered.plan(Layer::File, 1 << 30, 512);
        let of =
            |at, op, offset_bytes, length_bytes| Recorded { at: Nanos(at), op, offset_bytes, length_bytes };
        assert_eq!(
            planned.requests,
            [
                of(0, Op::Read, REGION_ALIGN_BYTES + 4096, 4096),
                of(1000, Op::Write, 0, 512),
                of(2000, Op::Flush, 0, 0)
            ]
        );
        assert_eq!((planned.rounded, planned.cut, planned.left_out), (1, 0, 0));
    }

    #[test]
    fn recorded_latencies_are_ranks_of_those_that_were_recorded() {
        let name = Names::default().id("a");
        let mut gathered = Gathered::default();
        for latency_us in (1..=200).rev() {
            let write = request(name, 0, Operation::Write, 0, 512);
            gathered.take(&Request { latency_ns: Some(latency_us * 1000), ..write });
        }
        gathered.take(&request(name, 0, Operation::Write, 0, 512));
        gathered.take(&request(name, 0, Operation::Read, 0, 512));
        let found = gathered.recorded_latency(Layer::File, Operation::Write).unwrap();
        assert_eq!((found.count, found.p50_us.round(), found.p99_us.round()), (200, 100.0, 198.0));
        for (layer, operation) in [(Layer::File, Operation::Read), (Layer::Drive, Operation::Write)] {
            assert_eq!(gathered.recorded_latency(layer, operation), None);
        }
    }

    #[test]
    fn any_numbers_stay_on_the_device() {
        let mut names = Names::default();
        let name = names.id("a");
        let mut gathered = Gathered::default();
        let numbers = [0, 1, 511, 4096, 1 << 31, u64::MAX - 1, u64::MAX];
        for offset in numbers {
            for length in numbers {
                gathered.take(&request(name, offset, Operation::Write, offset, length));
            }
        }
        for capacity in [0, 511, 512, 1 << 20, (1 << 40) + 7] {
            let planned = gathered.plan(Layer::File, capacity, 512);
            for request in planned.requests {
                let end = request.offset_bytes + u64::from(request.length_bytes);
                assert!(end <= capacity && request.length_bytes > 0, "{request:?} of {capacity}");
                assert!(request.offset_bytes % 512 == 0 && request.length_bytes % 512 == 0, "{request:?}");
            }
        }
    }
}
