//! Everything repeats: the same configuration, seed and requests give the same events, however the host waits
//! for them.

use flashgrain_device::{Channel, ChannelOptions, Completion, Device, Op, Request};
use flashgrain_ssdsim::config::{MappingCache, MediumConfig, NandConfig, StartState};
use flashgrain_ssdsim::{SimConfig, SimDevice};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::host::{DISK, Host, NAND, XPOINT, config};

const DEPTH: usize = 16;
const LENGTH_BYTES_MAX: usize = 64 << 10;

/// When which request was answered.
pub type Trace = Vec<(u64, u64)>;

/// The flash drive with everything that draws random numbers.
fn noisy_nand(change: impl Fn(&mut NandConfig)) -> SimConfig {
    let state = StartState::SteadyRandom { working_set: 1.0 };
    let mut config = SimConfig { state, ..config(NAND) };
    let MediumConfig::Nand(nand) = &mut config.medium else { unreachable!() };
    (nand.jitter, nand.pages_per_block, nand.suspend_program) = (0.1, 8, true);
    change(nand);
    config
}

fn set_of(drives: u32, one: &SimConfig) -> SimConfig {
    SimConfig { drives, stripe_unit_bytes: 8192, ..one.clone() }
}

/// Small drives of all sorts.
pub fn drives() -> Vec<(&'static str, SimConfig)> {
    vec![
        ("3d-xpoint", config(XPOINT)),
        ("disk", config(DISK)),
        ("flash", noisy_nand(|_| ())),
        ("flash-small-table", noisy_nand(|nand| nand.mapping.cache = MappingCache::EntriesBytes(2048))),
        ("flash-no-cache", noisy_nand(|nand| nand.write_cache.bytes = 0)),
        ("flash-set", set_of(3, &noisy_nand(|_| ()))),
        ("disk-set", set_of(2, &config(DISK))),
    ]
}

/// A mixed load: reads, writes, durable writes, flushes and discards of all sizes, anywhere.
pub fn load(config: &SimConfig, device_seed: u64, load_seed: u64, requests: u64) -> (u64, Trace) {
    let mut host = Host::of(config, device_seed);
    let capacity = host.device.geometry().capacity_bytes;
    let mut random = Pcg64::seed_from_u64(load_seed);
    let mut memory = vec![vec![7; LENGTH_BYTES_MAX]; requests as usize];
    let (mut trace, mut in_flight) = (Vec::new(), 0);
    for tag in 0..requests {
        let op = match random.random_range(0..20) {
            0 => Op::Flush,
            1 => Op::Discard,
            2 => Op::WriteDsync,
            3..10 => Op::Write,
            _ => Op::Read,
        };
        let length = 512 << random.random_range(0..8);
        let offset = random.random_range(0..capacity / length as u64) * length as u64;
        host.submit(op, offset, &mut memory[tag as usize][..length], tag);
        in_flight += 1;
        if in_flight == DEPTH {
            let reaped = host.reap(1);
            in_flight -= reaped.len();
            trace.extend(reaped.iter().map(|completion| (completion.tag, completion.completed.0)));
        }
    }
    trace.extend(host.reap(in_flight).iter().map(|completion| (completion.tag, completion.completed.0)));
    (host.device.digest(), trace)
}

#[test]
fn the_same_seed_gives_the_same_events() {
    for (name, drive) in drives() {
        let first = load(&drive, 1, 1, 400);
        assert_eq!(first, load(&drive, 1, 1, 400), "{name}");
        assert_ne!(first.0, load(&drive, 1, 2, 400).0, "{name}: other requests");
        let random = name.starts_with("flash");
        assert_eq!(random, first.0 != load(&drive, 2, 1, 400).0, "{name}: another seed");
    }
}

#[test]
fn how_the_host_waits_makes_no_difference() {
    let run = |drive: &SimConfig, way: usize| {
        let mut host = Host::of(drive, 1);
        let mut memory = vec![vec![way as u8; 4096]; 48];
        for (tag, memory) in memory.iter_mut().enumerate() {
            let op = if tag % 3 == 0 { Op::Write } else { Op::Read };
            host.submit(op, tag as u64 * 7919 % 4000 * 4096, memory, tag as u64);
        }
        let mut completions: Vec<Completion> = Vec::with_capacity(48);
        while host.channel.in_flight() > 0 {
            match way {
                0 => host.channel.wait(48, None, &mut completions).unwrap(),
                1 => host.channel.wait(1, None, &mut completions).unwrap(),
                2 => {
                    host.channel.poll(&mut completions).unwrap();
                    host.channel.wait(5, None, &mut completions).unwrap()
                }
                _ => {
                    let soon = host.now() + flashgrain_device::Nanos(10_000);
                    host.channel.wait(48, Some(soon), &mut completions).unwrap()
                }
            };
        }
        let trace: Trace =
            completions.iter().map(|completion| (completion.tag, completion.completed.0)).collect();
        (host.device.digest(), trace)
    };
    for (name, drive) in drives() {
        let first = run(&drive, 0);
        for way in 1..4 {
            assert_eq!(run(&drive, way), first, "{name}, way {way}");
        }
    }
}

/// Answers of two channels that are used in turn from one thread.
#[test]
fn channels_that_are_stepped_in_turn_repeat() {
    let run = |drive: &SimConfig| {
        let device = SimDevice::new(drive, "sim:test", 1).unwrap();
        let options = ChannelOptions { depth: 8, arena: None, polled: false };
        let mut channels: Vec<Box<dyn Channel>> =
            (0..2).map(|_| device.open_channel(&options).unwrap()).collect();
        let mut memory = vec![vec![0; 4096]; 200];
        let mut traces: [Trace; 2] = Default::default();
        let mut completions: Vec<Completion> = Vec::with_capacity(8);
        for (tag, memory) in memory.iter_mut().enumerate() {
            let which = tag % 2;
            let channel = &mut channels[which];
            if channel.in_flight() == 8 {
                completions.clear();
                channel.wait(1 + tag % 3, None, &mut completions).unwrap();
                let answers = completions.iter();
                traces[which].extend(answers.map(|completion| (completion.tag, completion.completed.0)));
            }
            let op = if which == 0 { Op::Write } else { Op::Read };
            let offset_bytes = tag as u64 * 104_729 % 4000 * 4096;
            let request = Request {
                op,
                offset_bytes,
                length_bytes: 4096,
                memory: memory.as_mut_ptr(),
                tag: tag as u64,
            };
            // SAFETY: the memory outlives the channels.
            unsafe { channel.submit(request) }.unwrap();
        }
        for (channel, trace) in channels.iter_mut().zip(&mut traces) {
            completions.clear();
            channel.wait(8, None, &mut completions).unwrap();
            trace.extend(completions.iter().map(|completion| (completion.tag, completion.completed.0)));
            assert_eq!((channel.in_flight(), trace.len()), (0, 100));
        }
        for (which, trace) in traces.iter().enumerate() {
            assert!(trace.iter().all(|(tag, _)| *tag as usize % 2 == which), "an answer to another channel");
        }
        (device.digest(), traces)
    };
    for (name, drive) in drives() {
        assert_eq!(run(&drive), run(&drive), "{name}");
    }
}

/// Threads do not repeat (who comes first is the system's choice), but each gets its answers and its bytes.
#[test]
fn channels_of_many_threads_all_get_their_answers() {
    for (_, drive) in drives() {
        let device = SimDevice::new(&drive, "sim:test", 1).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let device = &device;
                scope.spawn(move || {
                    let options = ChannelOptions { depth: 4, arena: None, polled: false };
                    let mut channel = device.open_channel(&options).unwrap();
                    let mut completions: Vec<Completion> = Vec::with_capacity(4);
                    let mut memory = vec![0; 4096];
                    for round in 0..50_u64 {
                        let offset_bytes = (u64::from(thread) * 50 + round) * 4096;
                        for op in [Op::Write, Op::Read] {
                            memory.fill(if op == Op::Write { thread + 1 } else { 0 });
                            let memory = memory.as_mut_ptr();
                            let request =
                                Request { op, offset_bytes, length_bytes: 4096, memory, tag: round };
                            // SAFETY: the memory outlives the wait for this one request.
                            unsafe { channel.submit(request) }.unwrap();
                            completions.clear();
                            assert_eq!(channel.wait(1, None, &mut completions).unwrap(), 1);
                            assert!(completions[0].result.is_ok() && completions[0].tag == round);
                        }
                        assert!(memory.iter().all(|byte| *byte == thread + 1));
                    }
                });
            }
        });
    }
}
