//! CPU time per simulated 4 KiB random read, and per simulated write, on one core.
//!
//! `cargo bench -p flashgrain_ssdsim --bench read`. Medians of rounds; the driver's own few nanoseconds are
//! included.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run says why and ends")]

use flashgrain_device::{ChannelOptions, Completion, Device, Op, Request, thread_cpu};
use flashgrain_ssdsim::{SimConfig, SimDevice};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const BYTES: u32 = 4096;
const REQUESTS: u64 = 400_000;
const ROUNDS: usize = 7;

fn main() {
    println!(
        "{:<14} {:>5} {:>6} {:>14} {:>16}",
        "drive", "op", "depth", "us CPU each", "requests/s (virtual)"
    );
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    let usual = ["pm1733", "970evo", "905p"].map(str::to_owned).to_vec();
    for name in if named.is_empty() { usual } else { named } {
        for (op, label) in [(Op::Read, "read"), (Op::Write, "write")] {
            for depth in [1, 64, 1024] {
                measure(&name, op, label, depth);
            }
        }
    }
}

fn measure(name: &str, op: Op, label: &str, depth: u32) {
    let config = SimConfig::named(name).expect("a drive");
    let mut rounds: Vec<(f64, f64)> = (0..ROUNDS as u64)
        .map(|seed| {
            let device = SimDevice::new(&config, name, seed).expect("a drive");
            one_round(&device, op, depth, seed)
        })
        .collect();
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (cpu_us, rate) = rounds[ROUNDS / 2];
    println!("{name:<14} {label:>5} {depth:>6} {cpu_us:>14.3} {rate:>16.0}");
}

/// CPU microseconds per request, and requests per virtual second.
fn one_round(device: &SimDevice, op: Op, depth: u32, seed: u64) -> (f64, f64) {
    let mut random = Pcg64::seed_from_u64(seed);
    let blocks = device.geometry().capacity_bytes / u64::from(BYTES);
    let mut memory = vec![0_u8; depth as usize * BYTES as usize];
    let options = ChannelOptions { depth, arena: None, polled: false };
    let mut channel = device.open_channel(&options).expect("a channel");
    let mut done: Vec<Completion> = Vec::with_capacity(4);
    let mut request = |slot: u64| Request {
        op,
        offset_bytes: random.random_range(0..blocks) * u64::from(BYTES),
        length_bytes: BYTES,
        memory: memory[slot as usize * BYTES as usize..].as_mut_ptr(),
        tag: slot,
    };
    let (began, start) = (thread_cpu(), channel.now());
    for slot in 0..u64::from(depth) {
        // SAFETY: each slot has its own memory, which outlives the channel.
        unsafe { channel.submit(request(slot)) }.expect("room for a request");
    }
    let mut finished = 0;
    while finished < REQUESTS {
        channel.wait(1, None, &mut done).expect("completions");
        for completion in done.drain(..) {
            finished += 1;
            // SAFETY: as above; the slot's last request is done.
            unsafe { channel.submit(request(completion.tag)) }.expect("room for a request");
        }
    }
    let (cpu, elapsed) = (thread_cpu().since(began), channel.now().since(start));
    drop(channel);
    (cpu.seconds() * 1e6 / finished as f64, finished as f64 / elapsed.seconds())
}
