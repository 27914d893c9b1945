//! Every kind of fault does what it says, and nothing else.

use flashgrain_device::{Nanos, Op};
use flashgrain_ssdsim::fault::{
    Discarded, Fault, FaultKind, FlushLoss, Operation, PowerCut, Repeat, Trigger,
};
use flashgrain_ssdsim::{FaultId, SimDevice};

use crate::host::{DISK, Host, NAND, XPOINT, config, pattern};

const EIO: i32 = 5;
const ENODEV: i32 = 19;
const ENOSPC: i32 = 28;

/// So much is written before anything goes wrong, and checked afterwards.
const BYTES: usize = 64 << 10;

/// Start of the range that the fault strikes.
const AT: u64 = 8192;

/// A drive with a known content on the medium, and a fault.
fn faulty(toml: &str, fault: Fault) -> (Host, FaultId) {
    let mut host = Host::new(toml);
    host.write(0, &pattern(0, BYTES, 0));
    host.flush();
    let id = host.device.inject(fault);
    (host, id)
}

/// All bytes are `expected`, now and after the power was cut and nothing unsettled survived; and the fault is
/// over.
fn check_content(host: &mut Host, expected: &[u8]) {
    assert!(host.read(0, BYTES) == expected, "the drive holds other bytes");
    host.flush();
    power_cycle(&host.device);
    assert!(host.read(0, BYTES) == expected, "the drive holds other bytes after a power cut");
}

fn power_cycle(device: &SimDevice) {
    device.power_cut(&PowerCut::default());
    device.power_on();
}

/// The content without a fault, but for `changed` at [`AT`].
fn expected(changed: &[u8]) -> Vec<u8> {
    let mut bytes = pattern(0, BYTES, 0);
    bytes[AT as usize..AT as usize + changed.len()].copy_from_slice(changed);
    bytes
}

#[test]
fn a_read_error_leaves_the_rest_of_the_memory_alone() {
    for (done_bytes, done) in [(0, 0), (1000, 1000), (1 << 20, 4096)] {
        let (mut host, fault) = faulty(XPOINT, Fault::new(FaultKind::ReadError { done_bytes }));
        let mut memory = [0xee; 4096];
        assert_eq!(host.try_read(AT, &mut memory), Err(EIO));
        assert_eq!(memory[..done], pattern(AT, done, 0));
        assert!(memory[done..].iter().all(|byte| *byte == 0xee));
        assert_eq!(host.device.fired(fault), 1);
        check_content(&mut host, &expected(&[]));
    }
}

#[test]
fn a_write_error_writes_so_many_whole_sectors() {
    for toml in [XPOINT, DISK, NAND] {
        for (done_bytes, done) in [(0, 0), (511, 0), (1500, 1024), (1 << 20, 4096)] {
            let (mut host, fault) = faulty(toml, Fault::new(FaultKind::WriteError { done_bytes }));
            assert_eq!(host.try_write(AT, &pattern(AT, 4096, 1)), Err(EIO));
            assert_eq!(host.device.fired(fault), 1);
            check_content(&mut host, &expected(&pattern(AT, done, 1)));
            host.write(AT, &pattern(AT, 4096, 2));
            assert_eq!(host.read(AT, 4096), pattern(AT, 4096, 2));
        }
    }
}

#[test]
fn a_full_drive_writes_nothing() {
    let (mut host, _) = faulty(XPOINT, Fault::new(FaultKind::NoSpace).repeat(Repeat::Times(2)));
    assert_eq!(host.try_write(AT, &pattern(AT, 4096, 1)), Err(ENOSPC));
    assert_eq!(host.request(Op::WriteDsync, AT, &mut pattern(AT, 4096, 1)).result, Err(ENOSPC));
    check_content(&mut host, &expected(&[]));
    host.write(AT, &pattern(AT, 4096, 1));
    check_content(&mut host, &expected(&pattern(AT, 4096, 1)));
}

#[test]
fn a_failed_flush_keeps_drops_or_strands_what_was_not_durable() {
    let new = pattern(AT, 4096, 1);
    let old = pattern(AT, 4096, 0);
    for (data, read, after_next_flush) in
        [(FlushLoss::Kept, &new, &new), (FlushLoss::Dropped, &old, &old), (FlushLoss::Undurable, &new, &old)]
    {
        let (mut host, fault) = faulty(DISK, Fault::new(FaultKind::FlushError { data }));
        host.write(AT, &new);
        assert_eq!(host.try_flush(), Err(EIO));
        assert_eq!(host.device.fired(fault), 1);
        assert_eq!(&host.read(AT, 4096), read, "{data:?}");
        // As if nothing had happened: the flush succeeds.
        host.flush();
        assert_eq!(&host.read(AT, 4096), read, "{data:?}");
        power_cycle(&host.device);
        check_content(&mut host, &expected(after_next_flush));
    }
}

#[test]
fn a_failed_flush_takes_no_durable_write_along_that_is_under_way() {
    for data in [FlushLoss::Dropped, FlushLoss::Undurable] {
        let (mut host, fault) = faulty(DISK, Fault::new(FaultKind::FlushError { data }));
        let mut new = pattern(AT, 4096, 1);
        host.submit(Op::WriteDsync, AT, &mut new, 0);
        host.submit(Op::Flush, 0, &mut [], 1);
        let results: Vec<_> = host.reap(2).into_iter().map(|done| (done.tag, done.result)).collect();
        assert!(results.contains(&(0, Ok(()))) && results.contains(&(1, Err(EIO))), "{results:?}");
        assert_eq!(host.device.fired(fault), 1);
        power_cycle(&host.device);
        check_content(&mut host, &expected(&pattern(AT, 4096, 1)));
    }
}

#[test]
fn an_ignored_flush_makes_nothing_durable() {
    for (round, op) in [(1, Op::Flush), (2, Op::WriteDsync), (3, Op::WriteThenFlush)] {
        let (mut host, fault) = faulty(DISK, Fault::new(FaultKind::IgnoredFlush));
        let new = pattern(AT, 4096, round);
        // The arm is busy elsewhere, so the write stays in the cache.
        let mut elsewhere = [0; 4096];
        host.submit(Op::Read, 15 << 20, &mut elsewhere, 0);
        if op == Op::Flush {
            host.write(AT, &new);
            host.flush();
        } else {
            host.request(op, AT, &mut new.clone()).result.unwrap();
        }
        assert_eq!(host.device.fired(fault), 1);
        assert_eq!(host.device.image().unsettled().len(), 1, "{op:?}");
        power_cycle(&host.device);
        assert_eq!(host.reap(1)[0].result, Err(EIO), "the read was under way");
        check_content(&mut host, &expected(&[]));
    }
}

#[test]
fn a_lost_write_is_acknowledged_and_not_done() {
    for toml in [XPOINT, DISK, NAND] {
        let (mut host, _) = faulty(toml, Fault::new(FaultKind::LostWrite));
        host.write(AT, &pattern(AT, 4096, 1));
        check_content(&mut host, &expected(&[]));
        host.write(AT, &pattern(AT, 4096, 2));
        check_content(&mut host, &expected(&pattern(AT, 4096, 2)));
    }
}

#[test]
fn a_misdirected_write_hits_another_place() {
    for toml in [XPOINT, DISK, NAND] {
        for by_bytes in [4096, -4096] {
            let (mut host, _) = faulty(toml, Fault::new(FaultKind::MisdirectedWrite { by_bytes }));
            host.write(AT, &pattern(AT, 4096, 1));
            let mut hit = pattern(0, BYTES, 0);
            let place = (AT as i64 + by_bytes) as usize;
            hit[place..place + 4096].copy_from_slice(&pattern(AT, 4096, 1));
            check_content(&mut host, &hit);
        }
    }
}

#[test]
fn a_misdirected_read_returns_another_place() {
    let (mut host, _) = faulty(XPOINT, Fault::new(FaultKind::MisdirectedRead { by_bytes: 512 }));
    assert_eq!(host.read(AT, 4096), pattern(AT + 512, 4096, 0));
    check_content(&mut host, &expected(&[]));

    // Round the end: the drive's last sector comes before its first.
    let (mut host, _) = faulty(XPOINT, Fault::new(FaultKind::MisdirectedRead { by_bytes: -512 }));
    let last = host.device.image();
    assert_eq!(host.read(0, 512), vec![0; 512]);
    assert!(host.device.image().same_bytes(&last));
}

#[test]
fn a_stale_read_returns_what_was_there_before() {
    let stale = Fault::new(FaultKind::StaleRead).within(AT..AT + 4096).repeat(Repeat::Times(2));
    let (mut host, fault) = faulty(XPOINT, stale);
    host.write(0, &pattern(0, BYTES, 1));
    for _ in 0..2 {
        assert_eq!(host.read(AT, 4096), pattern(AT, 4096, 0));
        assert_eq!(host.read(AT + 4096, 4096), pattern(AT + 4096, 4096, 1));
    }
    assert_eq!(host.device.fired(fault), 2);
    check_content(&mut host, &pattern(0, BYTES, 1));
}

#[test]
fn a_bit_flips_at_rest() {
    for (bit, byte, mask) in [(0, 0, 1), (8 * 4095 + 7, 4095, 0x80)] {
        let flip = Fault::new(FaultKind::FlipAtRest { bit: Some(bit) }).within(AT..AT + 4096);
        let (mut host, fault) = faulty(XPOINT, flip);
        assert_eq!(host.device.fired(fault), 1, "it strikes at once");
        let mut flipped = pattern(AT, 4096, 0);
        flipped[byte] ^= mask;
        check_content(&mut host, &expected(&flipped));
    }
    let any = Fault::new(FaultKind::FlipAtRest { bit: None }).within(AT..AT + 4096);
    let (mut host, _) = faulty(XPOINT, any);
    let (held, was) = (host.read(0, BYTES), pattern(0, BYTES, 0));
    let differing: Vec<usize> = (0..BYTES).filter(|at| held[*at] != was[*at]).collect();
    assert!(matches!(differing[..], [at] if (8192..12288).contains(&at)), "{differing:?}");
    assert_eq!((held[differing[0]] ^ was[differing[0]]).count_ones(), 1);
}

#[test]
fn a_bit_flips_on_the_way() {
    let flip = Fault::new(FaultKind::FlipInFlight { bit: Some(8 * 100 + 3) });
    let flipped = |mut bytes: Vec<u8>| {
        bytes[100] ^= 8;
        bytes
    };
    let (mut host, _) = faulty(XPOINT, flip.clone().on(Operation::Read));
    assert_eq!(host.read(AT, 4096), flipped(pattern(AT, 4096, 0)), "in the reader's memory");
    check_content(&mut host, &expected(&[]));

    for toml in [XPOINT, DISK, NAND] {
        let (mut host, _) = faulty(toml, flip.clone().on(Operation::Write));
        let mut memory = pattern(AT, 4096, 1);
        host.request(Op::Write, AT, &mut memory).result.unwrap();
        assert_eq!(memory, pattern(AT, 4096, 1), "the writer's memory is as it was");
        check_content(&mut host, &expected(&flipped(memory)));
    }
}

#[test]
fn a_discard_leaves_zeros_old_bytes_or_garbage() {
    let (mut host, _) = faulty(XPOINT, Fault::new(FaultKind::LostWrite));
    host.discard(AT, 4096);
    check_content(&mut host, &expected(&[0; 4096]));

    let (mut host, _) = faulty(XPOINT, Fault::new(FaultKind::AfterDiscard { leaves: Discarded::Old }));
    host.discard(AT, 4096);
    check_content(&mut host, &expected(&[]));

    let (mut host, _) = faulty(XPOINT, Fault::new(FaultKind::AfterDiscard { leaves: Discarded::Garbage }));
    host.discard(AT, 4096);
    let garbage = host.read(AT, 4096);
    let zeros = garbage.iter().filter(|byte| **byte == 0).count();
    assert!(zeros < 64 && garbage != pattern(AT, 4096, 0), "{zeros} zeros");
    check_content(&mut host, &expected(&garbage));
}

#[test]
fn a_stall_delays_one_command_or_all_behind_it() {
    let span = Nanos(1_000_000);
    let stall = |whole_drive| Fault::new(FaultKind::Stall { span, whole_drive }).at(Trigger::Nth(2));
    let one_by_one = |fault: Fault| -> Vec<u64> {
        let (mut host, _) = faulty(XPOINT, fault);
        (0..3).map(|at| host.request(Op::Read, AT + at * 4096, &mut [0; 4096]).latency().0).collect()
    };
    let healthy = one_by_one(Fault::new(FaultKind::NoSpace));
    for whole_drive in [false, true] {
        assert_eq!(one_by_one(stall(whole_drive)), [healthy[0], healthy[1] + span.0, healthy[2]]);
    }

    let together = |fault: Fault| -> Vec<bool> {
        let (mut host, _) = faulty(XPOINT, fault);
        let mut memory = [[0; 4096]; 3];
        for (tag, memory) in (0..).zip(&mut memory) {
            host.submit(Op::Read, AT + tag * 4096, memory, tag);
        }
        let mut completions = host.reap(3);
        completions.sort_by_key(|completion| completion.tag);
        completions.iter().map(|completion| completion.latency() >= span).collect()
    };
    assert_eq!(together(stall(false)), [false, true, false]);
    assert_eq!(together(stall(true)), [false, true, true]);
}

#[test]
fn a_device_that_is_gone_answers_with_errors_and_keeps_its_bytes() {
    for toml in [XPOINT, DISK, NAND] {
        let (mut host, _) = faulty(toml, Fault::new(FaultKind::DeviceGone).on(Operation::Read));
        host.write(AT, &pattern(AT, 4096, 1));
        let mut memory = [0xee; 4096];
        assert_eq!(host.try_read(AT, &mut memory), Err(EIO), "in flight");
        assert_eq!(host.try_read(AT, &mut memory), Err(ENODEV));
        assert_eq!(host.try_write(AT, &memory), Err(ENODEV));
        assert_eq!(host.try_flush(), Err(ENODEV));
        assert!(!host.device.answers() && memory == [0xee; 4096]);
        host.device.power_on();
        check_content(&mut host, &expected(&pattern(AT, 4096, 1)));
    }
}

#[test]
fn faults_happen_when_they_should() {
    let errors = |fault: Fault| -> Vec<u64> {
        let (mut host, _) = faulty(XPOINT, fault);
        (0..10_u64).filter(|at| host.try_read(at * 4096, &mut [0; 4096]).is_err()).collect()
    };
    let error = || Fault::new(FaultKind::ReadError { done_bytes: 0 });
    assert_eq!(errors(error()), [0]);
    assert_eq!(errors(error().repeat(Repeat::Sticky)), (0..10).collect::<Vec<_>>());
    assert_eq!(errors(error().at(Trigger::Nth(4))), [3]);
    assert_eq!(errors(error().at(Trigger::Nth(4)).repeat(Repeat::Times(2))), [3, 4]);
    assert_eq!(errors(error().within(3 * 4096..5 * 4096).repeat(Repeat::Sticky)), [3, 4]);
    assert_eq!(errors(error().within(3 * 4096..5 * 4096).at(Trigger::Nth(2))), [4]);
    assert_eq!(errors(error().on(Operation::Write)), [0; 0]);
    let half = errors(error().at(Trigger::Probability(0.5)).repeat(Repeat::Sticky));
    assert!((1..10).contains(&half.len()), "{half:?}");
    assert_eq!(half, errors(error().at(Trigger::Probability(0.5)).repeat(Repeat::Sticky)));

    let (mut host, _) = faulty(XPOINT, Fault::new(FaultKind::LostWrite));
    let (events, time) = (host.device.events(), host.now().0);
    host.read(0, 4096);
    let (later, later_time) = (host.device.events(), host.now().0);
    // The third of ten equal reads begins after twice as many events and twice as much time.
    let third = Trigger::Event(events + 2 * (later - events));
    assert_eq!(errors(error().at(third)), [2]);
    assert_eq!(errors(error().at(Trigger::TimeNs(time + 2 * (later_time - time)))), [2]);
}

#[test]
fn two_faults_happen_to_two_commands() {
    let (mut host, first) = faulty(XPOINT, Fault::new(FaultKind::ReadError { done_bytes: 0 }));
    let second = host.device.inject(Fault::new(FaultKind::MisdirectedRead { by_bytes: 4096 }));
    assert_eq!(host.try_read(AT, &mut [0; 4096]), Err(EIO));
    assert_eq!((host.device.fired(first), host.device.fired(second)), (1, 0));
    assert_eq!(host.read(AT, 4096), pattern(AT + 4096, 4096, 0));
    assert_eq!((host.device.fired(first), host.device.fired(second)), (1, 1));
    assert_eq!(host.read(AT, 4096), pattern(AT, 4096, 0));

    host.device.inject(Fault::new(FaultKind::NoSpace).repeat(Repeat::Sticky));
    host.device.disarm_faults();
    host.write(AT, &pattern(AT, 4096, 3));
}

#[test]
fn faults_of_a_stripe_set_lie_where_the_device_says() {
    let mut set = config(XPOINT);
    (set.drives, set.stripe_unit_bytes) = (3, 8192);
    let at = 5 * 8192 + 4096;
    let error = "kind = 'read-error', offset_bytes = 45056, length_bytes = 512, repeat = 'sticky'";
    set.faults = vec![error.parse().unwrap()];
    let mut host = Host::of(&set, 1);
    host.write(0, &pattern(0, BYTES, 0));
    let failing: Vec<u64> =
        (0..16).filter(|page| host.try_read(page * 4096, &mut [0; 4096]).is_err()).collect();
    assert_eq!(failing, [at / 4096]);

    let flip = Fault::new(FaultKind::FlipAtRest { bit: Some(5) });
    host.device.inject(flip.within(at + 4096..at + 8192));
    let mut flipped = pattern(0, BYTES, 0);
    flipped[at as usize + 4096] ^= 32;
    let mut held = vec![0; BYTES];
    host.device.image().read(0, &mut held);
    assert!(held == flipped);
}

#[test]
fn an_armed_fault_that_does_not_happen_changes_nothing() {
    let digest = |fault: Option<Fault>| {
        let mut host = Host::new(DISK);
        fault.into_iter().for_each(|fault| {
            host.device.inject(fault);
        });
        for round in 0..50_u64 {
            host.write(round * 7919 % 4000 * 4096, &[round as u8; 4096]);
            host.read(round * 104_729 % 4000 * 4096, 4096);
        }
        host.flush();
        host.device.digest()
    };
    let healthy = digest(None);
    let never = Fault::new(FaultKind::ReadError { done_bytes: 0 }).repeat(Repeat::Sticky);
    assert_eq!(digest(Some(never.clone().at(Trigger::Nth(51)))), healthy);
    assert_eq!(digest(Some(never.at(Trigger::Probability(0.0)))), healthy);
    let rot = Fault::new(FaultKind::FlipAtRest { bit: None }).at(Trigger::Event(10));
    assert_eq!(digest(Some(rot)), healthy);
    let stall = FaultKind::Stall { span: Nanos(1), whole_drive: false };
    assert_ne!(digest(Some(Fault::new(stall))), healthy);
}
