//! Write amplification of uniform random writes of single units against closed forms.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::harness::{Bench, drive, nand};
use crate::config::{
    CollectConfig, CollectPolicy, LayoutConfig, NandConfig, SimConfig, StartState, WriteCacheConfig,
};

const UNIT_BYTES: u64 = 4096;
const UNITS_PER_BLOCK: f64 = 64.0;

/// `FLASHGRAIN_AMPLIFICATION_UNITS`: units of the drive; more make the drive's reserve of free blocks matter
/// less.
fn units() -> u64 {
    std::env::var("FLASHGRAIN_AMPLIFICATION_UNITS").map_or(1 << 17, |units| units.parse().unwrap())
}

/// W0(x) for -1/e < x < 0, by Newton's method.
fn lambert_w0(x: f64) -> f64 {
    let mut w = 0.0_f64;
    for _ in 0..200 {
        w -= (w * w.exp() - x) / (w.exp() * (w + 1.0));
    }
    w
}

#[test]
fn lambert_w_is_right() {
    for x in [-0.36, -0.2, -0.01] {
        let w = lambert_w0(x);
        assert!(w > -1.0 && (w * w.exp() - x).abs() < 1e-12);
    }
}

/// First in, first out: valid units of the oldest block are those that have not been overwritten in one turn
/// of the drive.
fn fifo(alpha: f64) -> f64 {
    alpha / (alpha + lambert_w0(-alpha * (-alpha).exp()))
}

/// Greedy, with `n` units per block (Desnoyers 2014).
fn greedy(alpha: f64, n: f64) -> f64 {
    let beta = (1.0 + 1.0 / (2.0 * n)) * alpha;
    let fewest = 0.5 - n / alpha * lambert_w0(-beta * (-beta).exp());
    n / (n - (fewest - 1.0))
}

fn bench(over_provisioning: f64, policy: CollectPolicy, state: StartState) -> Bench {
    let nand = NandConfig {
        channels: 1,
        chips_per_channel: 2,
        planes_per_die: 1,
        pages_per_block: 16,
        page_bytes: 16384,
        over_provisioning,
        write_cache: WriteCacheConfig { bytes: 1 << 18, volatile: false },
        layout: LayoutConfig { chunk_bytes: UNIT_BYTES, ..nand().layout },
        collect: CollectConfig {
            policy,
            start_below_free_blocks: 3,
            stop_writes_below_free_blocks: 2,
            wear_gap: 0,
        },
        ..nand()
    };
    let drive = SimConfig { capacity_bytes: units() * UNIT_BYTES, ..drive(&nand, state) };
    Bench::of(&nand, &drive)
}

/// Write amplification of the next `writes` writes.
fn measure(bench: &mut Bench, random: &mut Pcg64, writes: u64) -> f64 {
    let moved = bench.around.tally.counters.moved_units;
    for _ in 0..writes {
        bench.write_unit(random.random_range(0..units() as u32));
    }
    1.0 + (bench.around.tally.counters.moved_units - moved) as f64 / writes as f64
}

/// From a filled drive to the steady state, and from the steady state as constructed.
fn check(policy: CollectPolicy, over_provisioning: f64, expected: f64) {
    let mut random = Pcg64::seed_from_u64(1);
    let mut bench_filled = bench(over_provisioning, policy, StartState::Filled);
    measure(&mut bench_filled, &mut random, 3 * units());
    let simulated = measure(&mut bench_filled, &mut random, units());
    bench_filled.check();

    let mut bench_steady = bench(over_provisioning, policy, StartState::SteadyRandom { working_set: 1.0 });
    let windows: Vec<f64> = (0..5).map(|_| measure(&mut bench_steady, &mut random, units() / 5)).collect();
    bench_steady.check();
    println!(
        "{policy:?} {over_provisioning}: expected {expected:.3}, simulated {simulated:.3}, from the start {windows:.3?}"
    );
    for (what, found) in
        std::iter::once(("simulated", simulated)).chain(windows.iter().map(|w| ("start", *w)))
    {
        assert!((found / expected - 1.0).abs() < 0.05, "{what}: {found}, expected {expected}");
    }
}

#[test]
fn greedy_collection_amplifies_as_desnoyers_says() {
    for over_provisioning in [0.15, 0.2, 0.28, 0.4] {
        check(CollectPolicy::Greedy, over_provisioning, greedy(1.0 + over_provisioning, UNITS_PER_BLOCK));
    }
}

#[test]
fn first_in_first_out_collection_amplifies_by_the_closed_form() {
    for over_provisioning in [0.15, 0.2, 0.28, 0.4] {
        check(CollectPolicy::Fifo, over_provisioning, fifo(1.0 + over_provisioning));
    }
}
