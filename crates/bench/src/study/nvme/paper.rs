//! Numbers that the text of "What Modern NVMe Storage Can Do, And How To Exploit It" has; the curves of its
//! figures are not in it.

use flashgrain_cost::budget::{DriveRates, Server};

use super::interface::Interface;
use crate::study::about::About;

/// The study that is repeated.
pub const ABOUT: About = About {
    name: "nvme",
    paper: "Haas, Leis: What Modern NVMe Storage Can Do, And How To Exploit It: High-Performance I/O for High-Performance Storage Engines",
    parts: "sections 2 to 4: Figures 2 to 6, 10, 11 and 13 to 16, and the cost of memory and drives",
    did: "Rates of eight Samsung PM1733 over drives, mixes, page sizes, requests in flight and interfaces; LeanStore with and without its techniques.",
    scaled: &[
        ("drives", "8 Samsung PM1733, 3.84 TB each", "sim:8xpm1733"),
        ("memory of the store", "16 GB, data of ten times that", "32 MiB, data of ten times that"),
        ("records", "128 bytes", "776 bytes"),
        ("workers", "64", "16, so that processors are the limit at times"),
        ("time for each point", "wall-clock minutes", "100,000 requests, or 50,000 operations"),
    ],
};

/// The paper's drives, eight PM1733.
pub(super) const DRIVES: &str = "sim:8xpm1733";

/// Requests per second of eight drives, random reads of 4 KiB: section 2.1, Figure 2a.
pub(super) const ARRAY_READS_PER_S: f64 = 12.5e6;

/// The same of one drive: section 2.1.
pub(super) const DRIVE_READS_PER_S: f64 = 1.56e6;

/// Reads per second by the number of drives: section 2.1, Figure 2a.
pub(super) const SCALING: [(u32, f64); 2] = [(1, DRIVE_READS_PER_S), (8, ARRAY_READS_PER_S)];

/// Requests per second of eight drives by the share of writes: section 2.1, Figure 2b.
pub(super) const MIXES: [(f64, f64); 4] = [(0.0, 12.5e6), (0.10, 8.9e6), (0.25, 7.0e6), (1.0, 4.7e6)];

/// Most random writes per second of a drive that is full, by its data sheet: section 2.1.
pub(super) const WORST_WRITES_PER_S: f64 = 135e3;

/// Bytes per second of random reads of 4 KiB and of the largest pages, one drive: section 2.2, Figure 3, in
/// binary multiples.
pub(super) const PAGE_BANDWIDTHS: [(u64, f64); 2] = [(4 << 10, 6.0 * GIB), (64 << 10, 6.5 * GIB)];

const GIB: f64 = 1_073_741_824.0;

/// Page size with the most requests per second and the lowest latency: section 2.2.
pub(super) const BEST_PAGE_BYTES: u64 = 4 << 10;

/// Requests in flight on eight drives for "decent performance", and to saturate them: section 2.3, Figure 4.
pub(super) const DECENT_IN_FLIGHT: u32 = 1000;
pub(super) const SATURATING_IN_FLIGHT: u32 = 3000;

/// Reads per second by requests in flight: one synchronous access at a time, from a latency of 100 µs
/// (section 2.3), and as many as saturate eight drives.
pub(super) const OUTSTANDING: [(u32, f64); 2] = [(1, 10e3), (SATURATING_IN_FLIGHT, ARRAY_READS_PER_S)];

/// Processor of the paper's machine: section 2.5.
pub(super) const CORES: f64 = 64.0;
pub(super) const HZ: f64 = 2.5e9;

/// Cycles for each of 12 M requests a second, and those that the kernel's interfaces leave: section 2.5.
pub(super) const BUDGET_CYCLES: f64 = 13e3;
pub(super) const LEFT_CYCLES: f64 = 6.5e3;

/// Requests per second of the kernel's interfaces with interrupts and 32 threads: section 2.5, Figure 6.
pub(super) const INTERRUPTS_READS_PER_S: f64 = 10e6;

/// Requests per second of a thread that does all I/O: section 3.4.
pub(super) const ONE_THREAD_READS_PER_S: f64 = 630e3;
pub(super) const ONE_THREAD_POLLED_READS_PER_S: f64 = 820e3;

/// Threads that saturate eight drives with kernel bypass: section 2.5, Figure 6.
pub(super) const BYPASS_THREADS: f64 = 3.0;

/// Reads per second by interface and threads: sections 2.5 and 3.4, Figure 6. Of the numbers of threads here,
/// four are the first that are enough for kernel bypass.
pub(super) const INTERFACES: [(Interface, u32, f64); 6] = [
    (Interface::Libaio, 1, ONE_THREAD_READS_PER_S),
    (Interface::Libaio, 32, INTERRUPTS_READS_PER_S),
    (Interface::IoUring, 1, ONE_THREAD_READS_PER_S),
    (Interface::IoUring, 32, INTERRUPTS_READS_PER_S),
    (Interface::IoUringPolled, 1, ONE_THREAD_POLLED_READS_PER_S),
    (Interface::Bypass, 4, ARRAY_READS_PER_S),
];

/// Look-ups per second on eight drives with data of ten times the memory: the original store (section 1,
/// Figure 1), then with all changes but kernel bypass, and with it (section 4.3, Figure 13).
pub(super) const LOOK_UPS_BASELINE: f64 = 3.6e6;
pub(super) const LOOK_UPS_TASKS: f64 = 10.08e6;
pub(super) const LOOK_UPS_BYPASS: f64 = 13.26e6;

/// Gain of kernel bypass in that.
pub(super) const BYPASS_GAIN: f64 = LOOK_UPS_BYPASS / LOOK_UPS_TASKS;

/// Gains of tasks instead of threads, look-ups and TPC-C: section 4.3.
pub(super) const TASKS_GAINS: [f64; 2] = [1.25, 1.16];

/// TPC-C transactions per second with 64 threads, by data over memory: section 4.4, Figure 14.
pub(super) const TRANSACTIONS: [(f64, f64); 3] = [(0.5, 2.0e6), (10.0, 1.1e6), (40.0, 0.4e6)];

/// The same of a thread with all data in memory.
pub(super) fn transactions_of_thread() -> f64 {
    let [(_, in_memory), ..] = TRANSACTIONS;
    in_memory / CORES
}

/// TPC-C transactions per second with kernel bypass, data of ten times 16 GB of memory: section 4.2,
/// Figure 12.
pub(super) const TRANSACTIONS_BYPASS: f64 = 1.07e6;

/// Processor time of submitting requests, TPC-C: kernel bypass, and the range of the kernel's interfaces;
/// that of eviction with bypass, and else: section 4.6, Figure 16.
pub(super) const SUBMISSION_BYPASS: f64 = 0.02;
pub(super) const SUBMISSION_KERNEL: [f64; 2] = [0.16, 0.19];
pub(super) const EVICTION_BYPASS: f64 = 0.18;
pub(super) const EVICTION_KERNEL: f64 = 0.14;

/// Cycles of a switch between tasks: section 3.2.
pub(super) const SWITCH_CYCLES: f64 = 20.0;

/// Servers for 15,000 dollars: section 1; reads of eight drives: section 2.1.
pub(super) const WITH_MEMORY: Server =
    Server { price: 15_000.0, memory_bytes: 2.5e12, drives: 0.0, drives_bytes: 0.0, rates: DriveRates::NONE };
pub(super) const WITH_DRIVES: Server = Server {
    price: 15_000.0,
    memory_bytes: 0.5e12,
    drives: 8.0,
    drives_bytes: 32e12,
    rates: DriveRates { reads_per_s: ARRAY_READS_PER_S, bytes_per_s: 56e9 },
};

/// Bytes per second of memory in both: section 1.
pub(super) const MEMORY_BYTES_PER_S: f64 = 150e9;

/// Price of memory over that of flash, for each byte: section 4.4.
pub(super) const PRICE_RATIO: f64 = 20.0;
