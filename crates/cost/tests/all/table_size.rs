//! The size of tables that is best for a drive, beside merges on a drive that is simulated request by request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashgrain_cost::lsm::TableSize;

const KIBI: u64 = 1 << 10;
const MEBI: u64 = 1 << 20;

/// Times are in those in which the busy drive transfers a byte. A request waits for `delay` by itself, and
/// for the one channel through which all of them pass in turn, for a setup and its bytes.
struct Drive {
    delay: u64,
    setup: u64,
}

impl Drive {
    /// One that as many small reads as `requests` just keep busy.
    fn of(size: &TableSize) -> Self {
        let (setup, small) = (size.half_bandwidth_bytes as u64, 4 * KIBI);
        Self { delay: (size.small_requests as u64 - 1) * (setup + small), setup }
    }

    /// The time of parts, each with so many bytes in tables of `table_bytes`, of which each begins with a
    /// request of its own.
    fn time(&self, parts: &[u64], table_bytes: u64, size: &TableSize) -> u64 {
        let request_bytes = size.request_bytes as u64;
        let mut left: Vec<Vec<u64>> = parts
            .iter()
            .map(|bytes| {
                let whole = bytes / request_bytes;
                let mut requests = vec![request_bytes; whole as usize];
                requests.extend(vec![0; (bytes / table_bytes) as usize]);
                requests
            })
            .collect();
        let mut asked: BinaryHeap<Reverse<(u64, u64, usize)>> = BinaryHeap::new();
        for (part, requests) in left.iter_mut().enumerate() {
            for _ in 0..size.requests_per_part as usize {
                if let Some(bytes) = requests.pop() {
                    asked.push(Reverse((self.delay, bytes, part)));
                }
            }
        }
        let (mut free, mut end) = (0, 0);
        while let Some(Reverse((at, bytes, part))) = asked.pop() {
            free = free.max(at) + self.setup + bytes;
            end = free;
            if let Some(bytes) = left[part].pop() {
                asked.push(Reverse((free + self.delay, bytes, part)));
            }
        }
        end
    }

    /// The time of a merge that is cut into parts at borders of tables.
    fn merge(&self, merged_bytes: u64, table_bytes: u64, size: &TableSize) -> u64 {
        let tables = merged_bytes / table_bytes;
        let parts = (tables / size.tables_per_part as u64).clamp(1, size.parts_max as u64);
        let bytes = |part: u64| (tables * (part + 1) / parts - tables * part / parts) * table_bytes;
        self.time(&(0..parts).map(bytes).collect::<Vec<_>>(), table_bytes, size)
    }
}

/// All table sizes are tried; the one of the formula, of which there are none between two powers, takes next
/// to no longer than the best.
#[test]
fn the_table_size_of_the_formula_takes_the_least_simulated_time() {
    let merged = 128 * MEBI;
    let sizes: Vec<u64> = (0..10).map(|power| merged >> (1 + power)).collect();
    let mut chosen = Vec::new();
    for (half, requests) in [(4.0, 32.0), (16.0, 128.0), (64.0, 64.0), (64.0, 256.0), (1024.0, 16.0)] {
        let size = TableSize {
            half_bandwidth_bytes: half * KIBI as f64,
            small_requests: requests,
            request_bytes: 64.0 * KIBI as f64,
            requests_per_part: 8.0,
            tables_per_part: 2.0,
            parts_max: 16.0,
        };
        let drive = Drive::of(&size);
        let best = size.best(merged as f64);
        let own = *sizes.iter().find(|bytes| **bytes as f64 <= best).unwrap();
        let times: Vec<(u64, u64)> =
            sizes.iter().map(|bytes| (*bytes, drive.merge(merged, *bytes, &size))).collect();
        let least = times.iter().map(|(_, time)| *time).min().unwrap();
        let time = drive.merge(merged, own, &size);
        println!("{half} KiB, {requests}: {own} {time} {least} {times:?}");
        assert!(time as f64 <= 1.1 * least as f64, "{half} KiB, {requests} requests: {own} of {times:?}");
        chosen.push(own / MEBI);
    }
    assert_eq!(chosen, [64, 8, 8, 4, 32]);
}
