//! Blocks that a crash left after the log's end are never taken for a part of it, and a durable write makes
//! all before it durable.

use flashgrain_device::MemoryDevice;
use flashgrain_ssdsim::fault::{Fault, FaultKind, FlushLoss, Operation, PowerCut, Survivors, Trigger};

use super::*;
use crate::io_context::{Block, Role};

/// Place of the block that a record begins in.
fn place(record: Logged) -> u64 {
    RING_START + record.start.0 / BLOCK_BYTES * BLOCK_BYTES
}

fn block_of(devices: &Devices, record: Logged) -> Block {
    let mut block = Block::new(BLOCK_BYTES as usize).unwrap();
    block.read(devices, Role::Log, place(record)).unwrap();
    block
}

fn append(log: &Log, record: &[u8], durability: Durability) -> Logged {
    let logged = log.append(record).unwrap();
    log.wait(logged.end, durability).unwrap();
    logged
}

/// Three groups that were never acknowledged as durable; the second is lost. Then the log goes on with the
/// very same record.
#[test]
fn blocks_behind_a_torn_tail_are_gone_for_good() {
    let devices = Devices::new(Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap()), None);
    let (log, _) = open_on(&devices, &layout(), NEW).unwrap();
    let [_, second, third] =
        [b"first", b"secnd", b"third"].map(|record| append(&log, record, Durability::Buffered));
    let stale = block_of(&devices, third);
    let nothing = Block::new(BLOCK_BYTES as usize).unwrap();
    nothing.write(&devices, Role::Log, place(second)).unwrap();
    drop(log);

    let (log, seen) = open_on(&devices, &layout(), NEW).unwrap();
    assert!(seen.len() == 1 && log.recovered().torn);
    let again = append(&log, b"secnd", Durability::Sync);
    assert_eq!((again.start, again.timestamp), (second.start, second.timestamp));
    let tail = log.end();
    drop(log);
    let (log, seen) = open_on(&devices, &layout(), NEW).unwrap();
    assert!(seen.len() == 2 && !log.recovered().torn);
    drop(log);

    // A checkpoint whose replay starts where the third one was.
    let checkpoint = LogCheckpoint { tail, durable: tail, timestamp: again.timestamp, ..NEW };
    let (log, seen) = open_on(&devices, &layout(), checkpoint).unwrap();
    assert_eq!((seen, log.last()), (Vec::new(), again.timestamp));
    drop(log);

    // Should the drive not have erased it: it is chained to another block.
    stale.write(&devices, Role::Log, place(third)).unwrap();
    let (_, seen) = open_on(&devices, &layout(), NEW).unwrap();
    assert_eq!(seen.len(), 2);
}

/// The durable mark and the zeros over stale blocks must both be written and flushed: otherwise the opening
/// returns an error, and the log can be opened later.
#[test]
fn a_torn_tail_that_cannot_be_erased_is_not_opened() {
    let write =
        |nth| Fault::new(FaultKind::WriteError { done_bytes: 0 }).on(Operation::Write).at(Trigger::Nth(nth));
    let flush = |nth| {
        let dropped = FaultKind::FlushError { data: FlushLoss::Dropped };
        Fault::new(dropped).on(Operation::Flush).at(Trigger::Nth(nth))
    };
    for fault in [write(1), write(2), write(3), flush(1), flush(2), flush(3)] {
        let device = device(1);
        let (log, _) = open(&device, &layout(), NEW).unwrap();
        let [_, second, third] =
            [b"first", b"secnd", b"third"].map(|record| append(&log, record, Durability::Buffered));
        drop(log);
        let devices = Devices::new(Arc::clone(&device) as _, None);
        Block::new(BLOCK_BYTES as usize).unwrap().write(&devices, Role::Log, place(second)).unwrap();
        let was = block_of(&devices, third).bytes().to_vec();
        let injected = device.inject(fault);
        let refused = open(&device, &layout(), NEW).err().map(|error| error.kind());
        assert_eq!((refused, device.fired(injected)), (Some(crate::ErrorKind::Io), 1));
        device.disarm_faults();
        let (log, seen) = open(&device, &layout(), NEW).unwrap();
        assert_eq!((seen.len(), log.last()), (1, Timestamp(1)));
        assert!(block_of(&devices, third).bytes() != was, "it is gone for good");
    }
}

/// A write that is durable by itself does not make those before it durable.
#[test]
fn buffered_groups_are_durable_when_a_later_one_is() {
    for sync_method in [SyncMethod::Dsync, SyncMethod::LinkedFlush, SyncMethod::Fdatasync] {
        let layout = Layout { sync_method, ..layout() };
        let config = SimConfig::from_toml(include_str!("disk.toml"), "disk.toml").unwrap();
        let device = Arc::new(SimDevice::new(&config, "sim:disk", 1).unwrap());
        let (log, _) = open(&device, &layout, NEW).unwrap();
        for _ in 0..5 {
            append(&log, b"buffered", Durability::Buffered);
        }
        append(&log, b"durable", Durability::Sync);
        let cut = PowerCut { survivors: Survivors::None, ..PowerCut::default() };
        device.power_cut(&cut);
        device.power_on();
        drop(log);
        let (_, seen) = open(&device, &layout, NEW).unwrap();
        assert_eq!(seen.len(), 6, "{sync_method:?}");
    }
}

/// The writes of a killed process stay in the drive's cache. The next process's writes are durable by
/// themselves, and would be the only ones left after a power cut.
#[test]
fn regression_what_a_killed_process_has_written_is_durable_before_more_is() {
    // As many as need no flush of their own.
    const GROUPS: usize = (RING_BYTES / 8 / BLOCK_BYTES) as usize;
    let config = SimConfig::from_toml(include_str!("disk.toml"), "disk.toml").unwrap();
    let device = Arc::new(SimDevice::new(&config, "sim:disk", 1).unwrap());
    let (log, _) = open(&device, &layout(), NEW).unwrap();
    for _ in 0..GROUPS {
        append(&log, b"buffered", Durability::Buffered);
    }
    drop(log);
    let (log, seen) = open(&device, &layout(), NEW).unwrap();
    assert_eq!(seen.len(), GROUPS);
    append(&log, b"durable", Durability::Sync);
    drop(log);
    device.power_cut(&PowerCut { survivors: Survivors::None, ..PowerCut::default() });
    device.power_on();
    assert_eq!(open(&device, &layout(), NEW).unwrap().1.len(), GROUPS + 1);
}

/// A store is closed with its log ending within a block or at its end, used again, and not closed.
#[test]
fn a_log_that_was_closed_goes_on() {
    for length in [10, BLOCK_BYTES as usize - 48 - 4] {
        let devices = Devices::new(Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap()), None);
        let (log, _) = open_on(&devices, &layout(), NEW).unwrap();
        let last = append(&log, &vec![7; length], Durability::Sync);
        log.settle().unwrap();
        drop(log);
        let checkpoint =
            LogCheckpoint { tail: last.end, durable: last.end, timestamp: last.timestamp, ..NEW };
        let (log, seen) = open_on(&devices, &layout(), LogCheckpoint { closed: true, ..checkpoint }).unwrap();
        assert_eq!(seen, []);
        let first = append(&log, b"first", Durability::Sync);
        let second = append(&log, b"second", Durability::Sync);
        drop(log);
        let (_, seen) = open_on(&devices, &layout(), checkpoint).unwrap();
        let expected = [(first, b"first".to_vec()), (second, b"second".to_vec())];
        assert_eq!(seen, expected.map(|(logged, record)| (logged.start, logged.timestamp, record)));
        assert_eq!(first.timestamp.0, last.timestamp.0 + 1);
    }
}

/// The places of a file's ring are filled with zeros before they are used, but none that is in use.
#[test]
fn nothing_of_a_log_in_a_file_is_prepared_twice() {
    use flashgrain_device::{FileDevice, OpenOptions};

    let folder = std::env::current_dir().unwrap();
    let file = FileDevice::scratch(&[folder], 8 << 20, &OpenOptions::default()).unwrap();
    let devices = Devices::new(Arc::new(file), None);
    let layout = Layout { log_block_bytes: 4096, ..layout_of(4 << 20) };
    for opening in 0..4 {
        let (log, seen) = open_on(&devices, &layout, NEW).unwrap();
        let found: Vec<_> = seen.iter().map(|(_, _, record)| record[0]).collect();
        assert_eq!(found, (0..opening).collect::<Vec<u8>>());
        let logged = log.append(&[opening; 5000]).unwrap();
        log.wait(logged.end, Durability::Sync).unwrap();
    }
}
