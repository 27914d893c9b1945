//! A drive that starts in the steady state of random writes is in it from the first write on.

use flashgrain_device::{ChannelOptions, Completion, Device, Op, Request};
use flashgrain_ssdsim::config::StartState;
use flashgrain_ssdsim::{SimDevice, preset};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const DEPTH: usize = 128;
const SPANS: usize = 10;
const SPAN_NS: u64 = 200_000_000;

/// Writes, erases and moved units of a span.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    writes: u64,
    erases: u64,
    moved: u64,
}

/// Equal spans of random writes of 4 KiB, from the start on.
fn spans(name: &str) -> [Span; SPANS] {
    let mut config = preset::find(name).unwrap();
    config.state = StartState::SteadyRandom { working_set: 1.0 };
    // Declared before the channel, whose writes may be under way when it is dropped.
    let mut memory = vec![1; 4096];
    let device = SimDevice::new(&config, "sim:test", 1).unwrap();
    let options = ChannelOptions { depth: DEPTH as u32, arena: None, polled: false };
    let mut channel = device.open_channel(&options).unwrap();
    let mut random = Pcg64::seed_from_u64(3);
    let mut completions: Vec<Completion> = Vec::with_capacity(DEPTH);
    let mut spans = [Span::default(); SPANS];
    let (mut span, mut before) = (0, (0, 0));
    loop {
        while channel.in_flight() < DEPTH {
            let offset_bytes = random.random_range(0..config.capacity_bytes / 4096) * 4096;
            let memory = memory.as_mut_ptr();
            let request = Request { op: Op::Write, offset_bytes, length_bytes: 4096, memory, tag: 0 };
            // SAFETY: the memory outlives the channel, and writes only read it.
            unsafe { channel.submit(request) }.unwrap();
        }
        completions.clear();
        channel.wait(1, None, &mut completions).unwrap();
        for completion in &completions {
            let at = (completion.completed.0 / SPAN_NS) as usize;
            if at != span {
                let counters = device.statistics().counters;
                spans[span].erases = counters.erases - before.0;
                spans[span].moved = counters.moved_units - before.1;
                (span, before) = (at, (counters.erases, counters.moved_units));
            }
            if at >= SPANS {
                return spans;
            }
            spans[at].writes += 1;
        }
    }
}

/// Write amplification of first-in-first-out collection with `alpha` times the capacity on flash: the solution
/// `a` of `1 - 1 / a = exp(-alpha / a)`. In blocks of a thousand units, greedy collection is little better.
fn amplification(alpha: f64) -> f64 {
    let (mut low, mut high) = (1.01_f64, 1000.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if (-alpha / middle).exp() > 1.0 - 1.0 / middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[test]
fn a_drive_with_many_dies_collects_evenly_from_the_first_write_on() {
    let spans = spans("pm1733");
    let sum = |of: fn(&Span) -> u64| spans.iter().map(of).sum::<u64>() as f64;
    let mean = sum(|span| span.writes) / SPANS as f64;
    let mean_erases = sum(|span| span.erases) / SPANS as f64;
    for span in &spans {
        assert!((span.writes as f64 / mean - 1.0).abs() < 0.15, "{spans:?}");
        assert!((span.erases as f64 / mean_erases - 1.0).abs() < 0.25, "{spans:?}");
    }
    let (found, expected) = (1.0 + sum(|span| span.moved) / sum(|span| span.writes), amplification(1.1));
    assert!((found / expected - 1.0).abs() < 0.1, "{found}, expected {expected}");
}

/// Small writes go to a few dies at a time, which collect in turn.
#[test]
fn a_drive_that_writes_to_few_dies_at_a_time_collects_from_the_first_write_on() {
    let spans = spans("980pro");
    assert!(spans.iter().all(|span| span.erases > 0), "{spans:?}");
    let later = &spans[SPANS / 2..];
    let sum = |of: fn(&Span) -> u64| later.iter().map(of).sum::<u64>() as f64;
    let (found, expected) = (1.0 + sum(|span| span.moved) / sum(|span| span.writes), amplification(1.09));
    assert!((found / expected - 1.0).abs() < 0.2, "{found}, expected {expected}");
}
