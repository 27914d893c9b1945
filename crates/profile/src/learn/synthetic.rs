//! Latencies with known structure and realistic noise, for tests.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::series::SweepRead;

/// Reads of `sweeps` sweeps, by turns in two regions, with `each` reads of every label in each, whose latency
/// is `latency_us(label)` times: log-normal noise of 15 %, a pace of its own for every sweep, and for one
/// read in a hundred a delay by other work.
pub(super) fn reads(
    labels: &[u64],
    sweeps: u32,
    each: u32,
    seed: u64,
    latency_us: impl Fn(u64) -> f64,
) -> Vec<SweepRead> {
    let mut random = Pcg64::seed_from_u64(seed);
    let normal = |random: &mut Pcg64| (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    let latencies: Vec<(u64, f64)> = labels.iter().map(|label| (*label, latency_us(*label))).collect();
    let mut reads = Vec::new();
    for sweep in 0..sweeps {
        let pace = (0.1 * normal(&mut random)).exp();
        for _ in 0..each {
            for (label, latency_us) in &latencies {
                let delay = if random.random::<f64>() < 0.01 { 10.0 } else { 1.0 };
                let noise = (0.15 * normal(&mut random)).exp();
                reads.push(SweepRead {
                    sweep,
                    label: *label,
                    region: sweep % 2,
                    offset_bytes: *label,
                    latency_us: latency_us * pace * noise * delay,
                });
            }
        }
    }
    reads
}
