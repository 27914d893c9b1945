//! Damage at rest: a lost acknowledged record gives an error, and is never silently missing.

use flashgrain_device::MemoryDevice;
use flashgrain_ssdsim::fault::{Fault, FaultKind, Operation, Trigger};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;
use crate::io_context::{Block, Role};
use crate::task::JoinHandle;
use crate::worker::Harness;

/// A log of durable groups of one to five records, and the records.
fn written(settled: bool) -> (Devices, Vec<u8>, ReplayedRecords) {
    let devices = Devices::new(Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap()), None);
    let (log, _) = open_on(&devices, &layout(), NEW).unwrap();
    let mut random = Pcg64::seed_from_u64(5);
    let mut kept = Vec::new();
    for _ in 0..12 {
        for _ in 0..random.random_range(1..6) {
            let length = [0, 20, 300, 464, 900][random.random_range(0..5)];
            let record: Vec<u8> = (0..length).map(|_| random.random()).collect();
            let logged = log.append(&record).unwrap();
            kept.push((logged.start, logged.timestamp, record));
        }
        log.wait(log.end(), Durability::Sync).unwrap();
    }
    if settled {
        log.settle().unwrap();
        assert!(!log.is_unsettled());
    }
    let length = log.end().0 as usize;
    let mut image = Block::new(length).unwrap();
    image.read(&devices, Role::Log, RING_START).unwrap();
    (devices.clone(), image.bytes().to_vec(), kept)
}

/// Opens the log with other bytes in place of its own.
fn open_with(devices: &Devices, bytes: &[u8]) -> Result<ReplayedRecords, Error> {
    let mut image = Block::new(bytes.len()).unwrap();
    image.bytes().copy_from_slice(bytes);
    image.write(devices, Role::Log, RING_START).unwrap();
    open_on(devices, &layout(), NEW).map(|(_, seen)| seen)
}

fn used_bytes(block: &[u8]) -> usize {
    u32::from_le_bytes(block[40..44].try_into().unwrap()) as usize
}

#[test]
fn a_flipped_bit_in_what_is_durable_is_corruption() {
    let (devices, image, kept) = written(true);
    let block_bytes = BLOCK_BYTES as usize;
    assert_eq!(open_with(&devices, &image).unwrap(), kept);
    let mut random = Pcg64::seed_from_u64(6);
    let mut found = 0;
    for byte in (0..image.len()).step_by(3) {
        let mut damaged = image.clone();
        damaged[byte] ^= 1 << random.random_range(0..8);
        let result = open_with(&devices, &damaged);
        let matters = byte % block_bytes < used_bytes(&image[byte / block_bytes * block_bytes..]);
        if matters {
            let error = result.unwrap_err();
            let Error::Corrupt { offset_bytes, .. } = &error else { panic!("byte {byte}: {error}") };
            let block = RING_START + (byte / block_bytes * block_bytes) as u64;
            assert_eq!(*offset_bytes, block, "byte {byte}");
            found += 1;
        } else {
            assert_eq!(result.unwrap(), kept, "byte {byte}");
        }
    }
    assert!(found > 1000);
}

#[test]
fn lost_and_misplaced_blocks_are_corruption() {
    let (devices, image, kept) = written(true);
    let block_bytes = BLOCK_BYTES as usize;
    let blocks = image.len() / block_bytes;
    for block in 0..blocks {
        for other in [None, Some((block + 1) % blocks), Some((block + 7) % blocks)] {
            let mut damaged = image.clone();
            let bytes = other.map_or(vec![0; block_bytes], |other| {
                image[other * block_bytes..(other + 1) * block_bytes].to_vec()
            });
            damaged[block * block_bytes..(block + 1) * block_bytes].copy_from_slice(&bytes);
            let error = open_with(&devices, &damaged).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{block} {other:?}: {error}");
        }
    }
    // All but the beginning.
    let mut damaged = image.clone();
    damaged[3 * block_bytes..].fill(0);
    assert!(matches!(open_with(&devices, &damaged), Err(Error::Corrupt { .. })));
    assert_eq!(open_with(&devices, &image).unwrap(), kept);
}

/// The one undetectable case: no later block or mark records yet that the last group was durable.
#[test]
fn only_the_last_group_before_an_idle_spell_can_be_taken_for_torn() {
    let (devices, image, kept) = written(false);
    let block_bytes = BLOCK_BYTES as usize;
    let durable_of = |block: &[u8]| u64::from_le_bytes(block[24..32].try_into().unwrap());
    let last = image.chunks(block_bytes).next_back().unwrap();
    let last_group = durable_of(last) as usize / block_bytes;
    for block in 0..image.len() / block_bytes {
        let mut damaged = image.clone();
        damaged[block * block_bytes + 10] ^= 1;
        match open_with(&devices, &damaged) {
            Err(Error::Corrupt { .. }) => assert!(block < last_group, "{block}"),
            Ok(seen) => {
                assert!(block >= last_group, "{block} is silently missing");
                let group = Lsn(last_group as u64 * BLOCK_BYTES);
                let before = kept.iter().filter(|(start, _, _)| *start < group).count();
                assert!(seen.len() >= before && seen[..] == kept[..seen.len()]);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn blocks_of_another_store_are_strangers() {
    let (devices, image, kept) = written(true);
    assert_eq!(open_with(&devices, &image).unwrap(), kept);
    let (log, seen) = open_on(&devices, &layout(), LogCheckpoint { store: NEW.store + 1, ..NEW }).unwrap();
    assert_eq!((seen, log.end()), (Vec::new(), Lsn(0)));
}

#[test]
fn what_the_checkpoint_knows_to_be_durable_is_missed() {
    let (devices, image, kept) = written(false);
    let damaged = vec![0; image.len()];
    assert_eq!(open_with(&devices, &damaged).unwrap(), []);
    let checkpoint = LogCheckpoint { durable: kept[3].0, ..NEW };
    assert!(matches!(open_on(&devices, &layout(), checkpoint), Err(Error::Corrupt { .. })));
}

#[test]
fn a_timestamp_beyond_all_others_is_corruption() {
    let (devices, image, kept) = written(false);
    for (timestamp, is_possible) in [(1, true), (Timestamp::MAX.0 + 1, false), (u64::MAX, false)] {
        let mut block = image[..BLOCK_BYTES as usize].to_vec();
        let (header, _) = block::open(&block, NEW.store, Lsn(0)).unwrap();
        block::seal(&mut block, &block::Header { timestamp, ..header });
        // Alone, as the next block is chained to the original one.
        match open_with(&devices, &[block, vec![0; image.len() - BLOCK_BYTES as usize]].concat()) {
            Ok(seen) => assert!(is_possible && seen[..] == kept[..seen.len()]),
            Err(Error::Corrupt { got, .. }) => {
                assert!(!is_possible && got.contains("under a right checksum"), "{got}")
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// All durable blocks lay in the range that was misread, also those that record the durability of others.
#[test]
fn regression_a_misread_log_is_not_taken_for_a_short_one() {
    let device = device(3);
    let (log, _) = open(&device, &layout(), NEW).unwrap();
    for round in 0..20_u8 {
        log.append(&[round; 300]).unwrap();
        log.wait(log.end(), Durability::Sync).unwrap();
    }
    drop(log);
    // No durable mark has anything to say yet.
    let image = device.image();
    let (mut noticed, mut by_second_looks) = (0, 0);
    for kind in [
        FaultKind::MisdirectedRead { by_bytes: 1 << 20 },
        FaultKind::MisdirectedRead { by_bytes: 4096 },
        FaultKind::ReadError { done_bytes: 512 },
    ] {
        for nth in 1..7 {
            device.restore(&image).unwrap();
            device.inject(Fault::new(kind.clone()).on(Operation::Read).at(Trigger::Nth(nth)));
            match open(&device, &layout(), NEW) {
                Ok((_, seen)) => assert_eq!(seen.len(), 20, "{kind:?} at read {nth}"),
                Err(Error::Corrupt { what, .. }) => {
                    noticed += 1;
                    by_second_looks += u32::from(what.contains("a second look"));
                }
                Err(Error::Io { .. }) => noticed += 1,
                Err(error) => panic!("{error}"),
            }
            device.disarm_faults();
            assert_eq!(open(&device, &layout(), NEW).unwrap().1.len(), 20);
        }
    }
    assert!(noticed >= 3 && by_second_looks > 0, "{noticed} {by_second_looks}");
}

/// The record had no successor that recorded its durability when it shared a write with the one that does so
/// for others.
#[test]
fn regression_a_record_that_comes_while_the_log_is_settled_is_settled_like_others() {
    let devices = Devices::new(device(4) as _, None);
    let mut harness = Harness::new(&devices, 1);
    let (executor, poison) = (harness.executor().clone(), Poison::default());
    let log = Log::open(&layout(), devices.clone(), executor, poison, NEW, &mut |_, _, _| Ok(())).unwrap();
    let commit = |log: Log| move || log.wait(log.append(&[1; 100]).unwrap().end, Durability::Sync).unwrap();
    let commits = [(); 3].map(|()| harness.spawn(0, commit(log.clone())));
    while !commits.iter().all(JoinHandle::is_finished) {
        assert!(harness.turn());
    }
    assert_eq!(log.stats().groups, 2, "two shared a write, so the next writer waits for companions, too");
    let (settling, appending) = (log.clone(), log.clone());
    let settled = harness.spawn(0, move || settling.settle().unwrap());
    let appended = harness.spawn(0, move || appending.append(&[2; 100]).unwrap());
    while harness.turn() {}
    settled.join().unwrap();
    let last = appended.join().unwrap();
    assert!(!log.is_unsettled());
    let place = RING_START + last.start.0 / BLOCK_BYTES * BLOCK_BYTES;
    Block::new(BLOCK_BYTES as usize).unwrap().write(&devices, Role::Log, place).unwrap();
    assert!(matches!(open_on(&devices, &layout(), NEW), Err(Error::Corrupt { .. })));
}

/// For each place in the log that it may hit, and each length.
#[test]
fn regression_one_misdirected_write_cannot_take_the_last_group_away_together_with_its_durable_mark() {
    let (devices, _, kept) = written(true);
    let mut log = Block::new((LOG.end - LOG.start) as usize).unwrap();
    log.read(&devices, Role::Log, LOG.start).unwrap();
    let mut corrupt = 0;
    for blocks in [1, 2, 8, 32, 200] {
        let stray = Block::new(blocks * BLOCK_BYTES as usize).unwrap();
        for place in (LOG.start..=LOG.end - blocks as u64 * BLOCK_BYTES).step_by(BLOCK_BYTES as usize) {
            log.write(&devices, Role::Log, LOG.start).unwrap();
            stray.write(&devices, Role::Log, place).unwrap();
            match open_on(&devices, &layout(), NEW) {
                Ok((_, seen)) => assert!(seen == kept, "{blocks} blocks at {place}: {} records", seen.len()),
                Err(Error::Corrupt { .. }) => corrupt += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(corrupt > 100, "{corrupt}");
}

/// It failed for another reason within the moment after which the log would have been settled.
#[test]
fn regression_the_last_group_of_a_store_that_fails_has_a_durable_mark() {
    let devices = Devices::new(device(6) as _, None);
    let mut harness = Harness::new(&devices, 1);
    let (executor, poison) = (harness.executor().clone(), Poison::default());
    let log =
        Log::open(&layout(), devices.clone(), executor, poison.clone(), NEW, &mut |_, _, _| Ok(())).unwrap();
    harness.run(move || {
        log.wait(log.append(&[1; 100]).unwrap().end, Durability::Sync).unwrap();
        poison.note("a superblock that could not be written".to_owned());
    });
    harness.run_until_idle();
    assert_eq!(open_on(&devices, &layout(), NEW).unwrap().1.len(), 1);
    Block::new(BLOCK_BYTES as usize).unwrap().write(&devices, Role::Log, RING_START).unwrap();
    assert!(matches!(open_on(&devices, &layout(), NEW), Err(Error::Corrupt { .. })));
}

#[test]
fn a_durable_mark_that_cannot_be_read_is_none_for_an_empty_log() {
    let device = device(5);
    let (log, _) = open(&device, &layout(), NEW).unwrap();
    log.append(b"record").unwrap();
    log.settle().unwrap();
    drop(log);
    let copies = [LOG.start, LOG.end - BLOCK_BYTES];
    let unreadable =
        |at: u64| Fault::new(FaultKind::ReadError { done_bytes: 0 }).within(at..at + BLOCK_BYTES);
    let refused = |copies: &[u64]| {
        copies.iter().for_each(|at| _ = device.inject(unreadable(*at)));
        let found = open(&device, &layout(), NEW).map(|(_, seen)| seen.len());
        device.disarm_faults();
        found.map_err(|error| error.kind())
    };
    assert_eq!(copies.map(|at| refused(&[at])), [Ok(1); 2]);
    assert_eq!(refused(&copies), Err(crate::ErrorKind::Io));
    assert_eq!(refused(&[]), Ok(1));
}
