//! Logs that move while others append and wait.

use std::sync::atomic::AtomicBool;

use flashgrain_device::MemoryDevice;
use flashgrain_ssdsim::fault::{Fault, FaultKind, Operation};
use shuttle::thread::{spawn, yield_now};

use super::*;
use crate::io_context::broken::Broken;
use crate::sync::explored::explore;

/// A longer place, elsewhere.
const LONGER: LogExtent = LogExtent { start_bytes: 1 << 19, bytes: 64 * BLOCK_BYTES };

fn moved(layout: &Layout, place: LogExtent) -> Layout {
    Layout { log: place, ..layout.clone() }
}

/// Under many schedules of threads: everything that was appended is found in the last place.
#[test]
fn who_waits_while_the_log_moves_gets_what_was_waited_for() {
    explore(200, || {
        let devices = Devices::new(Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap()), None);
        let layout = layout_of(34 * BLOCK_BYTES);
        let (log, _) = open_on(&devices, &layout, NEW).unwrap();
        let threads: Vec<_> = (0..3_u8)
            .map(|thread| {
                let log = log.clone();
                spawn(move || {
                    for number in 0..3_u8 {
                        let logged = log.append(&[thread, number]).unwrap();
                        log.wait(logged.end, Durability::Sync).unwrap();
                    }
                })
            })
            .collect();
        for place in [LONGER, layout.log, LONGER] {
            let has_moved = log.move_to(place, |durable| {
                assert!(durable <= log.end());
                Ok(())
            });
            assert!(has_moved.unwrap() && log.place() == place);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(log);
        let (_, seen) = open_on(&devices, &moved(&layout, LONGER), NEW).unwrap();
        let mut records: Vec<_> = seen.into_iter().map(|(_, _, record)| record).collect();
        records.sort_unstable();
        let expected: Vec<_> =
            (0..3).flat_map(|thread| (0..3).map(move |number| vec![thread, number])).collect();
        assert_eq!(records, expected);
    });
}

/// Under many schedules of threads, into half of the room.
#[test]
fn appends_while_the_log_moves_have_the_room_of_the_shorter_place() {
    const SHORTER: LogExtent = LogExtent { start_bytes: 1 << 19, bytes: 34 * BLOCK_BYTES };
    explore(200, || {
        let devices = Devices::new(Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap()), None);
        let (log, _) = open_on(&devices, &layout_of(66 * BLOCK_BYTES), NEW).unwrap();
        let is_done = Arc::new(AtomicBool::new(false));
        let appender = spawn({
            let (log, is_done) = (log.clone(), Arc::clone(&is_done));
            move || {
                (0..50).for_each(|_| assert!(log.append(&[7; 400]).is_ok()));
                is_done.store(true, Ordering::Release);
            }
        });
        let has_moved = log.move_to(SHORTER, |_| {
            (0..200).for_each(|_| yield_now());
            Ok(())
        });
        let has_moved = has_moved.unwrap();
        assert!(log.fill() <= 1.0, "{} of the ring, moved: {has_moved}", log.fill());
        while !is_done.load(Ordering::Acquire) {
            log.wait(log.end(), Durability::Sync).unwrap();
            log.truncate(log.end());
            yield_now();
        }
        appender.join().unwrap();
    });
}

/// Over laps of rings of several lengths, with a tail that follows.
#[test]
fn records_come_back_wherever_the_log_was_moved() {
    // The ring of a log in a file is written to with zeros first.
    ["memory", "file"].into_iter().for_each(records_come_back_wherever_moved);
}

fn records_come_back_wherever_moved(kind: &'static str) {
    let mut random = Pcg64::seed_from_u64(3);
    let device = Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap());
    let devices = Devices::new(Broken::of_kind(device as _, kind), None);
    let places = [(0, 40), (64 << 10, 90), (256 << 10, 200), (512 << 10, 64)]
        .map(|(start_bytes, blocks)| LogExtent { start_bytes, bytes: blocks * BLOCK_BYTES });
    let mut layout = Layout { log: places[0], log_bytes_max: 1 << 19, ..layout() };
    let (mut log, _) = open_on(&devices, &layout, NEW).unwrap();
    let (mut kept, mut checkpoint, mut moves): (ReplayedRecords, _, _) = (Vec::new(), NEW, [0; 2]);
    for round in 0..4000_u64 {
        let record: Vec<u8> = (0..random.random_range(0..600)).map(|_| random.random()).collect();
        let logged = log.append(&record).unwrap();
        kept.push((logged.start, logged.timestamp, record));
        if log.fill() > 0.5 {
            log.wait(logged.end, Durability::Sync).unwrap();
            kept.drain(..random.random_range(kept.len() / 2..=kept.len()));
            checkpoint.tail = kept.first().map_or(log.end(), |record| record.0);
            checkpoint.timestamp = kept.first().map_or(logged.timestamp, |record| Timestamp(record.1.0 - 1));
            log.truncate(checkpoint.tail);
        }
        if random.random_range(0..40) == 0 {
            let place = places[random.random_range(0..places.len())];
            let has_moved = place != layout.log && log.move_to(place, |_| Ok(())).unwrap();
            moves[usize::from(has_moved)] += 1;
            if has_moved {
                layout.log = place;
            }
        }
        if random.random_range(0..50) == 0 {
            log.wait(log.end(), Durability::Sync).unwrap();
            drop(log);
            let (again, seen) = open_on(&devices, &layout, checkpoint).unwrap();
            assert_eq!(seen, kept, "after {round}");
            log = again;
        }
    }
    assert!(moves.iter().all(|count| *count > 10), "{moves:?}");
}

/// Otherwise only a copy of the misread block would be left.
#[test]
fn a_log_of_which_something_cannot_be_read_stays_where_it_is() {
    let device = volatile_device(1);
    let devices = Devices::new(Arc::clone(&device) as _, None);
    let (log, _) = open(&device, &layout(), NEW).unwrap();
    let place = LogExtent { start_bytes: 1 << 19, ..layout().log };
    let logged = log.append(b"first").unwrap();
    log.wait(logged.end, Durability::Sync).unwrap();
    for kind in [FaultKind::ReadError { done_bytes: 0 }, FaultKind::FlipInFlight { bit: Some(300) }] {
        let range = RING_START..RING_START + BLOCK_BYTES;
        device.inject(Fault { range, ..Fault::new(kind).on(Operation::Read) });
        let has_moved = log.move_to(place, |_| panic!("it stays where it is"));
        assert!(!has_moved.unwrap() && log.place() == layout().log);
    }
    assert!(log.move_to(place, |_| Ok(())).unwrap());
    let logged = log.append(b"second").unwrap();
    log.wait(logged.end, Durability::Sync).unwrap();
    drop(log);
    let (_, seen) = open_on(&devices, &moved(&layout(), place), NEW).unwrap();
    let records: Vec<_> = seen.iter().map(|(_, _, record)| record.as_slice()).collect();
    assert_eq!(records, [&b"first"[..], b"second"]);
}
