//! Predictions of queueing theory and arithmetic for a drive, without simulating it.

use flashgrain_device::{Device, Op};
use flashgrain_ssdsim::SimConfig;
use flashgrain_ssdsim::StageTotals;
use flashgrain_ssdsim::config::{Interleave, MediumConfig, NandConfig, StartState};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::host::{DISK, Host, NAND, XPOINT, config};

const DEPTH: usize = 64;

/// The small flash drive, changed.
fn nand(change: impl Fn(&mut SimConfig, &mut NandConfig)) -> SimConfig {
    let mut config = config(NAND);
    let MediumConfig::Nand(mut nand) = config.medium.clone() else { unreachable!() };
    change(&mut config, &mut nand);
    config.medium = MediumConfig::Nand(nand);
    config
}

/// One request of a closed loop.
struct Answer {
    op: Op,
    latency_ns: u64,
    completed_ns: u64,
}

/// Keeps `depth` requests in flight until `count` are done.
fn closed_loop(
    host: &mut Host,
    depth: usize,
    count: usize,
    mut next: impl FnMut(usize) -> (Op, u64, usize),
) -> Vec<Answer> {
    let mut memory: Vec<Vec<u8>> = vec![Vec::new(); count];
    let (mut answers, mut submitted) = (Vec::new(), 0);
    let mut ops = Vec::new();
    while answers.len() < count {
        while submitted < count && submitted - answers.len() < depth {
            let (op, offset, length) = next(submitted);
            memory[submitted] = vec![submitted as u8; length];
            ops.push(op);
            host.submit(op, offset, &mut memory[submitted], submitted as u64);
            submitted += 1;
        }
        answers.extend(host.reap(1).iter().map(|completion| {
            completion.result.unwrap();
            let op = ops[completion.tag as usize];
            Answer { op, latency_ns: completion.latency().0, completed_ns: completion.completed.0 }
        }));
    }
    answers
}

/// Requests per second in the middle half of a run, where the loop is full.
fn rate(answers: &[Answer]) -> f64 {
    let (from, to) = (answers.len() / 4, answers.len() * 3 / 4);
    (to - from) as f64 * 1e9 / (answers[to].completed_ns - answers[from].completed_ns) as f64
}

/// Requests of one sort, as many per second as the drive can do: one to each chunk (or further) in turn, so
/// that all dies are equally busy. Random places would leave one without work now and then.
fn saturated(config: &SimConfig, op: Op, length: usize, count: usize) -> f64 {
    const CHUNK: usize = 16384;
    let mut host = Host::of(config, 1);
    let step = length.max(CHUNK);
    let steps = host.device.geometry().capacity_bytes as usize / step;
    rate(&closed_loop(&mut host, DEPTH, count, |index| {
        let offset = index % steps * step + index / steps * length % step;
        (op, offset as u64, length)
    }))
}

fn assert_near(measured: f64, expected: f64, share: f64, what: &str) {
    let off = measured / expected - 1.0;
    assert!(
        off.abs() < share,
        "{what}: measured {measured:.0}, expected {expected:.0} ({:+.1} %)",
        off * 100.0
    );
}

fn sum(stages: &StageTotals) -> u64 {
    let StageTotals { queue_ns, controller_ns, link_ns, mapping_ns, wait_ns, collect_ns, medium_ns } =
        *stages;
    queue_ns + controller_ns + link_ns + mapping_ns + wait_ns + collect_ns + medium_ns
}

/// Little's law holds exactly over a run that begins and ends empty: requests in the device, integrated over
/// time, are the sum of all latencies. And every nanosecond of every latency is in one stage.
#[test]
fn littles_law_holds_and_stages_add_up_on_every_drive() {
    let steady = StartState::SteadyRandom { working_set: 1.0 };
    let drives = [
        config(XPOINT),
        config(DISK),
        config(NAND),
        nand(|config, nand| {
            (config.state, nand.pages_per_block, nand.suspend_program) = (steady, 8, true);
        }),
        nand(|config, nand| (config.host.queue_depth, nand.write_cache.bytes) = (8, 0)),
    ];
    for drive in drives {
        let mut host = Host::of(&drive, 1);
        // Until here something happened that does not count.
        host.write(0, &[1; 65536]);
        host.flush();
        host.device.reset_statistics();
        let begun_ns = host.now().0;
        let mut random = Pcg64::seed_from_u64(2);
        let answers = closed_loop(&mut host, 24, 1500, |_| {
            let op = [Op::Read, Op::Read, Op::Write][random.random_range(0..3)];
            (op, random.random_range(0..4000) * 4096, 4096 << random.random_range(0..3))
        });
        let statistics = host.device.statistics();
        let latencies = |op: Option<Op>| -> u64 {
            let answers = answers.iter().filter(|answer| op.is_none_or(|op| op == answer.op));
            answers.map(|answer| answer.latency_ns).sum()
        };
        assert_eq!(statistics.in_flight_ns, u128::from(latencies(None)), "{}", drive.name);
        assert_eq!(statistics.elapsed_ns, host.now().0 - begun_ns);
        assert_eq!(sum(&statistics.read_stages), latencies(Some(Op::Read)), "{}", drive.name);
        assert_eq!(sum(&statistics.write_stages), latencies(Some(Op::Write)), "{}", drive.name);
        // L = lambda W, from the outside: the loop kept 24 in flight.
        let in_flight = statistics.in_flight_ns as f64 / statistics.elapsed_ns as f64;
        assert!((23.0..=24.0).contains(&in_flight), "{}: {in_flight}", drive.name);
    }
}

/// 4 KiB over the link of 3 GB/s, and over a channel of 800 MB/s.
const LINK_NS: u64 = 1366;
const CHANNEL_NS: u64 = 5120;
/// Command processing, fetch, completion; and the channel's time for a flash command.
const HOST_NS: u64 = 300 + 800 + 500;
const FLASH_COMMAND_NS: u64 = 300;

#[test]
fn an_idle_flash_drive_takes_the_sum_of_its_stages() {
    let mut host = Host::new(NAND);
    let mut latencies: Vec<u64> = (0..256)
        .map(|page| host.request(Op::Read, page * 61 % 4096 * 4096, &mut [0; 4096]).latency().0)
        .collect();
    latencies.sort_unstable();
    latencies.dedup();
    let around = HOST_NS + LINK_NS + FLASH_COMMAND_NS + CHANNEL_NS;
    assert_eq!(latencies, [around + 50_000, around + 70_000], "both page types, and nothing else");

    let write = host.request(Op::Write, 0, &mut [1; 4096]).latency().0;
    assert_eq!(write, HOST_NS + LINK_NS, "into the cache");

    let mut host = Host::of(&nand(|_, nand| nand.write_cache.bytes = 0), 1);
    let write = host.request(Op::Write, 0, &mut [1; 4096]).latency().0;
    assert_eq!(
        write,
        HOST_NS + LINK_NS + FLASH_COMMAND_NS + CHANNEL_NS + 400_000,
        "through to the first page"
    );

    let mut host = Host::of(&nand(|config, _| config.state = StartState::Fresh), 1);
    let read = host.request(Op::Read, 0, &mut [0; 4096]).latency().0;
    assert_eq!(read, HOST_NS + LINK_NS, "nothing to read");

    let mut host = Host::of(&nand(|_, nand| nand.mapping.lookup_ns = 700), 1);
    let read = host.request(Op::Read, 0, &mut [0; 4096]).latency().0;
    assert_eq!(read, around + 700 + 50_000);
}

#[test]
fn a_narrow_link_bounds_reads_and_writes() {
    let narrow = nand(|config, _| config.host.link_bytes_per_s = 50_000_000);
    for op in [Op::Read, Op::Write] {
        let bytes_per_s = saturated(&narrow, op, 16384, 800) * 16384.0;
        assert_near(bytes_per_s, 50e6, 0.01, &format!("{op:?}"));
    }
}

#[test]
fn a_slow_command_processor_bounds_requests() {
    let slow = nand(|config, _| config.host.command_ns = 40_000);
    assert_near(saturated(&slow, Op::Read, 4096, 2000), 25e3, 0.01, "reads");
}

/// A die, or a chip of which only one die works at a time, is busy with command, cells (of two page types in
/// turn) and transfer. With a single one on each channel nobody waits for the channel.
#[test]
fn dies_bound_reads_that_sense_long() {
    let busy_ns = (FLASH_COMMAND_NS + 60_000 + CHANNEL_NS) as f64;
    for (dies_per_chip, interleave) in [(1, Interleave::Dies), (2, Interleave::ChipBusy)] {
        let drive = nand(|_, nand| {
            (nand.chips_per_channel, nand.dies_per_chip, nand.interleave) = (1, dies_per_chip, interleave);
        });
        let what = format!("{dies_per_chip} dies per chip");
        assert_near(saturated(&drive, Op::Read, 4096, 4000), 2.0 * 1e9 / busy_ns, 0.01, &what);
    }
}

/// Two channels of eight chips, all of which have something to do. Sensed data cross a channel before the
/// next command does, so the chips of a channel work in step: all transfer one after the other, then all get
/// their commands and sense together. The channels are the narrowest stage as far as sensing is short beside
/// that.
#[test]
fn channels_bound_reads_that_transfer_long() {
    for (rate, length, share) in [(100.0, 4096, 0.2), (25.0, 16384, 0.02)] {
        let narrow = nand(|config, nand| {
            config.capacity_bytes = 64 << 20;
            (nand.channel_mega_transfers_per_s, nand.chips_per_channel) = (rate, 8);
        });
        let measured = saturated(&narrow, Op::Read, length, 4000);
        let channel_ns = FLASH_COMMAND_NS as f64 + length as f64 * 1e3 / rate;
        assert_near(measured, 2.0 * 1e9 / channel_ns, share, "the channels' rate");
        assert_near(measured, 2.0 * 8.0 * 1e9 / (8.0 * channel_ns + 60_000.0), 0.01, "in step");
    }
}

#[test]
fn programs_bound_sequential_writes() {
    let fresh = nand(|config, _| config.state = StartState::Fresh);
    let bytes_per_s = saturated(&fresh, Op::Write, 65536, 240) * 65536.0;
    // A row of two planes is 16 KiB; the two page types program in turn.
    let row_ns = FLASH_COMMAND_NS as f64 + 4.0 * CHANNEL_NS as f64 + 650_000.0;
    let expected = 4.0 * 16384.0 * 1e9 / row_ns;
    assert_near(bytes_per_s, expected, 0.02, "bytes per second");
}
