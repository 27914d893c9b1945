//! Power cuts: nobody hangs, what was made durable survives at any event, and what was not survives as the
//! cut says.

use flashgrain_device::{Channel, ChannelOptions, Completion, Device, Nanos, Op};
use flashgrain_ssdsim::fault::{Fault, FaultKind, Operation, PowerCut, Survivors, Tear, Trigger};
use flashgrain_ssdsim::{SimConfig, SimDevice};

use crate::host::{DISK, Host, NAND, XPOINT, config, pattern};

const EIO: i32 = 5;
const ENODEV: i32 = 19;

/// The durability that a host has been promised, sector by sector: the newest round that must have survived,
/// and the newest that may have.
struct Promises {
    durable: Vec<u8>,
    acknowledged: Vec<u8>,
    submitted: Vec<u8>,
}

const SECTORS: usize = 96;
const SECTOR: usize = 512;

impl Promises {
    fn new() -> Self {
        Self { durable: vec![0; SECTORS], acknowledged: vec![0; SECTORS], submitted: vec![0; SECTORS] }
    }
}

/// The host's step in the round: first sector, sectors, and how.
fn step(round: u8) -> (usize, usize, Op) {
    let draw = usize::from(round).wrapping_mul(2_654_435_761) >> 7;
    let sectors = [1, 8, 16, 3][draw % 4];
    let op = [Op::Write, Op::WriteDsync, Op::Write, Op::Flush, Op::Write, Op::WriteThenFlush][draw / 4 % 6];
    (draw / 24 % (SECTORS - sectors), sectors, op)
}

/// Writes and flushes, one after another, until the power fails. Every sector carries the round in which it
/// was written.
fn work(host: &mut Host, rounds: u8) -> Promises {
    let mut promises = Promises::new();
    for round in 1..=rounds {
        let (first, sectors, op) = step(round);
        let range = first..first + sectors;
        let result = if op == Op::Flush {
            host.try_flush()
        } else {
            promises.submitted[range.clone()].fill(round);
            host.request(op, (first * SECTOR) as u64, &mut vec![round; sectors * SECTOR]).result
        };
        match (result, op) {
            (Err(errno), _) => {
                assert!([EIO, ENODEV].contains(&errno) && !host.device.answers());
                return promises;
            }
            (Ok(()), Op::Flush) => promises.durable.clone_from(&promises.acknowledged),
            (Ok(()), _) => promises.acknowledged[range.clone()].fill(round),
        }
        match op {
            Op::WriteDsync => promises.durable[range].fill(round),
            Op::WriteThenFlush => promises.durable.clone_from(&promises.acknowledged),
            _ => {}
        }
    }
    promises
}

/// Sectors are whole, and of a round between the newest durable and the newest submitted one.
fn check(host: &mut Host, promises: &Promises, case: &str) {
    let bytes = host.read(0, SECTORS * SECTOR);
    for (sector, held) in bytes.chunks(SECTOR).enumerate() {
        assert!(held.iter().all(|byte| *byte == held[0]), "{case}: sector {sector} is torn");
        let round = held[0];
        let (durable, submitted) = (promises.durable[sector], promises.submitted[sector]);
        assert!(
            durable <= round && round <= submitted,
            "{case}: sector {sector} is of round {round}, durable was {durable}, submitted {submitted}"
        );
    }
}

/// The cut of every event of a run, in turn with other survivors; how many states were seen.
fn cut_everywhere(config: &SimConfig, rounds: u8) -> usize {
    let events = {
        let mut host = Host::of(config, 5);
        work(&mut host, rounds);
        host.device.events()
    };
    let tears = [
        Tear::Whole,
        Tear::Prefix { unit_bytes: 512 },
        Tear::Shorn { unit_bytes: 512 },
        Tear::Prefix { unit_bytes: 4096 },
    ];
    let mut states = std::collections::HashSet::new();
    for event in 0..events {
        for (which, survivors) in
            [Survivors::None, Survivors::All, Survivors::Random, Survivors::First(1), Survivors::AllBut(0)]
                .into_iter()
                .enumerate()
        {
            let tear = tears[(event as usize + which) % 4];
            let cut = PowerCut { survivors, tear, in_flight: event % 3 > 0, seed: event };
            let case = format!("event {event}, {cut:?}");
            let mut host = Host::of(config, 5);
            host.device.inject(Fault::new(FaultKind::PowerCut(cut)).at(Trigger::Event(event)));
            let promises = work(&mut host, rounds);
            assert!(!host.device.answers(), "{case}: the power did not fail");
            host.device.power_on();
            check(&mut host, &promises, &case);
            states.insert(host.read(0, SECTORS * SECTOR));
        }
    }
    states.len()
}

#[test]
fn what_was_made_durable_survives_a_cut_at_every_event() {
    for toml in [XPOINT, DISK, NAND] {
        let states = cut_everywhere(&config(toml), 40);
        assert!(states > 30, "only {states} states were seen");
    }
}

#[test]
fn what_was_made_durable_on_a_stripe_set_survives() {
    let mut set = config(DISK);
    (set.drives, set.stripe_unit_bytes) = (3, 4096);
    assert!(cut_everywhere(&set, 20) > 20);
}

/// A disk whose arm is busy far away, so that what is written stays in its cache.
fn busy_disk(far: &mut [u8]) -> Host {
    let mut host = Host::new(DISK);
    host.write(0, &pattern(0, 32768, 0));
    host.flush();
    host.submit(Op::Read, 15 << 20, far, 99);
    host
}

fn bytes_after(host: &Host, cut: &PowerCut) -> Vec<u8> {
    let mut bytes = vec![0; 32768];
    host.device.image().after(cut).read(0, &mut bytes);
    bytes
}

#[test]
fn every_subset_of_cached_writes_can_be_what_is_left() {
    let mut far = [0; 4096];
    let mut host = busy_disk(&mut far);
    // Overlapping, so that the order matters.
    let writes = [(0, 8192), (4096, 8192), (2048, 4096), (16384, 512)];
    for (round, (offset, length)) in (1..).zip(writes) {
        host.write(offset, &pattern(offset, length, round));
    }
    let unsettled = host.device.image().unsettled();
    let ranges: Vec<_> = unsettled
        .iter()
        .map(|write| (write.range.start, (write.range.end - write.range.start) as usize))
        .collect();
    assert_eq!(ranges, writes);
    for subset in 0..16_usize {
        let kept: Vec<usize> = (0..4).filter(|at| subset >> at & 1 == 1).collect();
        let mut expected = pattern(0, 32768, 0);
        for at in &kept {
            let (offset, length) = writes[*at];
            let place = offset as usize..offset as usize + length;
            expected[place].copy_from_slice(&pattern(offset, length, *at as u8 + 1));
        }
        let cut = PowerCut { survivors: Survivors::Only(kept), ..PowerCut::default() };
        assert!(bytes_after(&host, &cut) == expected, "subset {subset:04b}");
    }
    let one = Tear::One { write: 1, first_bytes: 1024 };
    let torn = PowerCut { survivors: Survivors::Only(vec![1]), tear: one, ..PowerCut::default() };
    let mut expected = pattern(0, 32768, 0);
    expected[4096..5120].copy_from_slice(&pattern(4096, 1024, 2));
    assert!(bytes_after(&host, &torn) == expected);
    // The drive itself does what its image did.
    host.device.power_cut(&torn);
    host.device.power_on();
    host.reap(1);
    assert!(host.read(0, 32768) == expected);
}

#[test]
fn a_write_on_the_link_may_arrive_in_part() {
    let cut = |tear, in_flight, seed| {
        let cut = PowerCut { survivors: Survivors::All, tear, in_flight, seed };
        let mut host = Host::new(XPOINT);
        host.write(0, &pattern(0, 8192, 0));
        let fault = Fault::new(FaultKind::PowerCut(cut)).on(Operation::Write).at(Trigger::Nth(1));
        host.device.inject(fault);
        assert_eq!(host.try_write(0, &pattern(0, 8192, 1)), Err(EIO));
        assert_eq!(host.try_write(0, &pattern(0, 8192, 1)), Err(ENODEV));
        host.device.power_on();
        let bytes = host.read(0, 8192);
        let sectors = |round| {
            let whole = pattern(0, 8192, round);
            let count =
                bytes.chunks(512).zip(whole.chunks(512)).take_while(|(held, new)| held == new).count();
            (count, bytes[count * 512..] == pattern(0, 8192, 0)[count * 512..])
        };
        sectors(1)
    };
    assert_eq!(cut(Tear::Whole, false, 0), (0, true), "a write that has not arrived is not there");
    assert_eq!(cut(Tear::Whole, true, 0), (16, true));
    assert_eq!(cut(Tear::One { write: 0, first_bytes: 1536 }, true, 0), (3, true));
    let torn: std::collections::BTreeSet<usize> = (0..200)
        .map(|seed| {
            let (sectors, old_after) = cut(Tear::Prefix { unit_bytes: 512 }, true, seed);
            assert!(old_after);
            sectors
        })
        .collect();
    assert_eq!(torn, (1..=16).collect());
}

#[test]
fn power_fails_at_a_time_a_flush_or_at_once() {
    let cut = || Fault::new(FaultKind::PowerCut(PowerCut::default()));
    let mut far = [0; 4096];
    let mut host = busy_disk(&mut far);
    let at = Nanos(host.now().0 + 123_456);
    host.device.inject(cut().at(Trigger::TimeNs(at.0)));
    let completion = host.reap(1)[0];
    assert_eq!((completion.result, completion.completed), (Err(EIO), at));
    assert_eq!(host.now(), at);

    let mut host = Host::new(DISK);
    host.device.inject(cut().on(Operation::Flush).at(Trigger::Nth(2)));
    host.write(0, &pattern(0, 4096, 1));
    host.flush();
    host.write(0, &pattern(0, 4096, 2));
    assert_eq!(host.try_flush(), Err(EIO));
    host.device.power_on();
    assert_eq!(host.read(0, 4096), pattern(0, 4096, 1));

    host.device.inject(cut());
    assert!(!host.device.answers());
}

/// Requests of three channels, of which one waits until a point in time.
#[test]
fn nobody_waits_for_ever() {
    let device = SimDevice::new(&config(DISK), "sim:test", 1).unwrap();
    let options = ChannelOptions { depth: 8, arena: None, polled: false };
    let mut channels: Vec<Box<dyn Channel>> =
        (0..3).map(|_| device.open_channel(&options).unwrap()).collect();
    let mut memory = vec![[0; 4096]; 24];
    for (tag, memory) in memory.iter_mut().enumerate() {
        let op = if tag % 2 == 0 { Op::Write } else { Op::Read };
        let request = flashgrain_device::Request {
            op,
            offset_bytes: tag as u64 * 500 * 1024,
            length_bytes: 4096,
            memory: memory.as_mut_ptr(),
            tag: tag as u64,
        };
        // SAFETY: the memory lives until all requests are reaped.
        unsafe { channels[tag % 3].submit(request) }.unwrap();
    }
    let cut = Fault::new(FaultKind::PowerCut(PowerCut::default()));
    device.inject(cut.at(Trigger::Event(device.events() + 40)));
    let mut answered = 0;
    let mut failed = 0;
    let mut completions: Vec<Completion> = Vec::with_capacity(8);
    for (number, channel) in channels.iter_mut().enumerate() {
        let until = (number == 1).then_some(Nanos(60_000_000_000));
        while channel.in_flight() > 0 {
            completions.clear();
            channel.wait(8, until, &mut completions).unwrap();
            answered += completions.len();
            failed += completions.iter().filter(|completion| completion.result == Err(EIO)).count();
        }
        assert!(channel.now().0 < 60_000_000_000, "it waited although nothing was to come");
    }
    assert_eq!(answered, 24);
    assert!((1..24).contains(&failed), "{failed} failed");
    // A channel that is dropped with a refused request in flight does not wait for it either.
    let request = flashgrain_device::Request {
        op: Op::Flush,
        offset_bytes: 0,
        length_bytes: 0,
        memory: std::ptr::null_mut(),
        tag: 0,
    };
    // SAFETY: a flush has no memory.
    unsafe { channels[0].submit(request) }.unwrap();
}

#[test]
fn images_are_restored_and_independent() {
    let mut host = Host::new(DISK);
    host.write(0, &pattern(0, 8192, 1));
    let image = host.device.image();
    host.write(0, &pattern(0, 8192, 2));
    host.flush();
    assert!(!host.device.image().same_bytes(&image));
    host.device.restore(&image).unwrap();
    assert_eq!(host.read(0, 8192), pattern(0, 8192, 1));
    assert!(host.device.image().unsettled().is_empty());

    let mut other = Host::new(DISK);
    other.device.restore(&image).unwrap();
    other.write(4096, &pattern(4096, 4096, 3));
    assert_eq!(other.read(0, 4096), pattern(0, 4096, 1));
    assert_eq!(host.read(0, 8192), pattern(0, 8192, 1));

    let mut larger = config(DISK);
    larger.capacity_bytes *= 2;
    let refused = Host::of(&larger, 1).device.restore(&image).unwrap_err().to_string();
    assert!(refused.contains("1 drives of 16777216 bytes"), "{refused}");
}
