//! CPU time per crash state: decide what a power cut leaves of some unsettled writes, put it on a drive, and
//! read some of it.
//!
//! `cargo bench -p flashgrain_ssdsim --bench crash_states`.

use flashgrain_device::{Channel, ChannelOptions, Completion, Device, Op, Request, thread_cpu};
use flashgrain_ssdsim::fault::{PowerCut, Survivors, Tear};
use flashgrain_ssdsim::{SimConfig, SimDevice};

const STATES: u64 = 20_000;
const BASE_BYTES: usize = 8 << 20;
const WRITE_BYTES: usize = 16 << 10;
const READ_BYTES: usize = 64 << 10;

fn main() {
    println!("{:<24} {:>9} {:>16} {:>20}", "drive", "unsettled", "us CPU per state", "and with its reading");
    for toml in [include_str!("../tests/drives/disk.toml"), include_str!("../tests/drives/nand.toml")] {
        for writes in [2, 8, 32] {
            measure(toml, writes);
        }
    }
}

#[expect(clippy::unwrap_used, reason = "a benchmark of drives that exist")]
fn measure(toml: &str, writes: usize) {
    let config = SimConfig::from_toml(toml, "bench").unwrap();
    let device = SimDevice::new(&config, "sim:bench", 1).unwrap();
    let mut channel = device.open_channel(&ChannelOptions { depth: 1, arena: None, polled: false }).unwrap();
    let mut memory = vec![1; BASE_BYTES];
    request(&mut *channel, Op::Write, 0, &mut memory);
    request(&mut *channel, Op::Flush, 0, &mut []);
    for write in 0..writes {
        request(&mut *channel, Op::Write, (write * 99_328) as u64, &mut memory[..WRITE_BYTES]);
    }
    let image = device.image();
    let unsettled = image.unsettled().len();
    let cut = |seed| PowerCut {
        survivors: Survivors::Random,
        tear: Tear::Shorn { unit_bytes: 512 },
        in_flight: true,
        seed,
    };
    let decided = thread_cpu();
    for seed in 0..STATES {
        std::hint::black_box(image.after(&cut(seed)));
    }
    let restored = thread_cpu();
    for seed in 0..STATES {
        device.restore(&image.after(&cut(seed))).unwrap();
        request(&mut *channel, Op::Read, 0, &mut memory[..READ_BYTES]);
    }
    let us = |span: flashgrain_device::Nanos| span.seconds() * 1e6 / STATES as f64;
    let (state, whole) = (us(restored.since(decided)), us(thread_cpu().since(restored)));
    println!("{:<24} {unsettled:>9} {state:>16.2} {whole:>20.2}", config.name);
}

#[expect(clippy::unwrap_used, reason = "a benchmark of drives that exist")]
fn request(channel: &mut dyn Channel, op: Op, offset_bytes: u64, memory: &mut [u8]) {
    let (length_bytes, memory) = (memory.len() as u32, memory.as_mut_ptr());
    // SAFETY: the memory is the caller's, who waits here until the request is done.
    unsafe { channel.submit(Request { op, offset_bytes, length_bytes, memory, tag: 0 }) }.unwrap();
    let mut done: Vec<Completion> = Vec::with_capacity(1);
    channel.wait(1, None, &mut done).unwrap();
}
