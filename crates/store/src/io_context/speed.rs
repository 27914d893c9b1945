//! Measures the processor time that tasks, wake-ups and requests add to the operations themselves:
//!
//! `cargo test --release -p flashgrain --lib -- --ignored --nocapture io_context::speed`

use std::sync::Arc;

use flashgrain_device::{ChannelOptions, Device, MemoryDevice, Nanos, Op, Request, thread_cpu};

use super::{Devices, Role, now, read};
use crate::task::{park, waker, yield_now};
use crate::worker::{Bounds, Harness, Workers};

const TASKS: usize = 128;
const ROUNDS: u64 = 20_000;
const BLOCKS: u64 = 4096;

fn devices() -> Devices {
    Devices::new(Arc::new(MemoryDevice::new(BLOCKS * 4096, 0).unwrap()), None)
}

fn report(what: &str, count: u64, span: Nanos) {
    println!("{what:<55} {:8.1} ns", span.0 as f64 / count as f64);
}

/// CPU time of `TASKS` tasks that each do `work`.
fn cpu_of(devices: &Devices, work: impl Fn(u64) + Clone + Send + 'static) -> Nanos {
    let mut harness = Harness::with_bounds(devices, 1, Bounds::default()).unwrap();
    for task in 0..TASKS as u64 {
        let work = work.clone();
        drop(harness.spawn(0, move || work(task)));
    }
    let begun = thread_cpu();
    harness.run_until_idle();
    assert_eq!(harness.unfinished(), 0);
    thread_cpu() - begun
}

/// Memory of one block, for one request at a time.
fn block() -> Vec<u8> {
    vec![0; 4096]
}

fn place(task: u64, round: u64) -> u64 {
    (task.wrapping_mul(7919) ^ round.wrapping_mul(104_729)) % BLOCKS * 4096
}

#[test]
#[ignore = "prints figures; they mean something only in a release build on an idle machine"]
fn what_things_cost() {
    let devices = devices();
    let count = TASKS as u64 * ROUNDS;
    report("yield", count, cpu_of(&devices, |_| (0..ROUNDS).for_each(|_| yield_now())));
    let parks = cpu_of(&devices, |_| {
        for _ in 0..ROUNDS {
            waker().wake();
            park();
        }
    });
    report("waker, wake and park, on one task", count, parks);
    report("bare request on the memory device: 512 bytes", count, bare(512));
    report("bare request on the memory device: 4096 bytes", count, bare(4096));
    for length in [512, 4096] {
        let own = devices.clone();
        let reads = cpu_of(&devices, move |task| {
            let mut block = block();
            for round in 0..ROUNDS {
                // SAFETY: the block lives until the call returns, and is not used otherwise.
                unsafe { read(&own, Role::Data, place(task, round), block.as_mut_ptr(), length) }.unwrap();
            }
        });
        report(&format!("read by a task on the memory device: {length} bytes"), count, reads);
    }
    let mut harness = Harness::new(&devices, 1);
    let executor = harness.executor().clone();
    let spans = harness.run(move || {
        let begun = thread_cpu();
        for _ in 0..ROUNDS * 10 {
            executor.run(|| ()).join().unwrap();
        }
        let joined = thread_cpu();
        for _ in 0..ROUNDS * 10 {
            executor.spawn(|| ());
            yield_now();
        }
        (joined - begun, thread_cpu() - joined)
    });
    report("spawn and join within a worker", ROUNDS * 10, spans.0);
    report("spawn a background task within a worker", ROUNDS * 10, spans.1);
}

/// CPU time of the same number of requests without tasks, in batches of `TASKS`.
fn bare(length_bytes: u32) -> Nanos {
    let device = MemoryDevice::new(BLOCKS * 4096, 0).unwrap();
    let options = ChannelOptions { depth: 1024, arena: None, polled: false };
    let mut channel = device.open_channel(&options).unwrap();
    let mut blocks: Vec<_> = (0..TASKS).map(|_| block()).collect();
    let mut completions = Vec::with_capacity(TASKS);
    let begun = thread_cpu();
    for round in 0..ROUNDS {
        for (task, block) in blocks.iter_mut().enumerate() {
            let (offset_bytes, memory) = (place(task as u64, round), block.as_mut_ptr());
            let request = Request { op: Op::Read, offset_bytes, length_bytes, memory, tag: task as u64 };
            // SAFETY: each block has one request at a time and lives until all are answered.
            unsafe { channel.submit(request) }.unwrap();
        }
        channel.poll(&mut completions).unwrap();
        assert_eq!(completions.len(), TASKS);
        completions.clear();
    }
    thread_cpu() - begun
}

#[test]
#[ignore = "prints figures; they mean something only in a release build on an idle machine"]
fn what_a_sleeping_worker_costs() {
    let devices = devices();
    let workers = Workers::start(&devices, 1, Bounds::default(), false).unwrap();
    let begun = now(&devices);
    for _ in 0..ROUNDS {
        workers.executor().run(|| ()).join().unwrap();
    }
    report("spawn and join from another thread, elapsed", ROUNDS, now(&devices) - begun);
}
