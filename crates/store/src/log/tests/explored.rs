//! The hand-over of the right to write, under many schedules of threads.

use flashgrain_device::MemoryDevice;
use shuttle::thread::spawn;

use super::*;
use crate::sync::explored::explore;

/// A waiting committer is woken by the one that wrote its record, or becomes the one that writes;
/// acknowledged records can be read back.
#[test]
fn every_committer_gets_what_it_waits_for_and_finds_it_again() {
    explore(200, || {
        let device = Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap());
        let devices = Devices::new(device, None);
        let (log, _) = open_on(&devices, &layout(), NEW).unwrap();
        let threads: Vec<_> = (0..4_u8)
            .map(|thread| {
                let log = log.clone();
                spawn(move || {
                    for round in 0..2 {
                        let logged = log.append(&[thread * 2 + round; 200]).unwrap();
                        let durability = match (thread + round) % 3 {
                            0 => Durability::Buffered,
                            _ => Durability::Sync,
                        };
                        log.wait(logged.end, durability).unwrap();
                        if durability == Durability::Sync {
                            assert!(log.durable() >= logged.end);
                        }
                        if thread == 3 {
                            log.settle().unwrap();
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        log.wait(log.end(), Durability::Sync).unwrap();
        drop(log);
        let (log, seen) = open_on(&devices, &layout(), NEW).unwrap();
        assert!(!log.recovered().torn);
        let timestamps: Vec<u64> = seen.iter().map(|record| record.1.0).collect();
        assert_eq!(timestamps, (1..=8).collect::<Vec<_>>());
        let mut records: Vec<u8> = seen.iter().map(|record| record.2[0]).collect();
        records.sort_unstable();
        assert_eq!(records, (0..8).collect::<Vec<_>>());
    });
}

/// Commits wait for those that were announced before them.
#[test]
fn commits_are_announced_in_the_order_of_the_log() {
    explore(200, || {
        let devices = Devices::new(Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap()), None);
        let (log, _) = open_on(&devices, &layout(), NEW).unwrap();
        let announced = Arc::new(crate::sync::Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (log, announced) = (log.clone(), Arc::clone(&announced));
                spawn(move || {
                    for _ in 0..2 {
                        let note = |logged: Logged| announced.lock().unwrap().push(logged.timestamp.0);
                        log.append_noting(b"record", note).unwrap();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*announced.lock().unwrap(), (1..=6).collect::<Vec<_>>());
    });
}

/// The durable mark must not cover records that others have written by then, and not flushed: the log asserts
/// that.
#[test]
fn the_durable_mark_covers_nothing_that_may_be_lost() {
    explore(100, || {
        let devices = Devices::new(Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap()), None);
        let (log, _) = open_on(&devices, &layout(), NEW).unwrap();
        let writing = log.clone();
        let writer = spawn(move || {
            for _ in 0..3 {
                let logged = writing.append(b"written").unwrap();
                writing.wait(logged.end, Durability::Buffered).unwrap();
            }
        });
        for _ in 0..3 {
            log.append(b"settled").unwrap();
            log.settle().unwrap();
        }
        writer.join().unwrap();
    });
}

/// One truncates the ring, which is full again and again, while others wait for room in it.
#[test]
fn who_waits_for_room_in_the_ring_gets_it() {
    explore(200, || {
        let devices = Devices::new(Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap()), None);
        let layout = layout_of(18 * BLOCK_BYTES);
        let (log, _) = open_on(&devices, &layout, NEW).unwrap();
        let record = vec![7; log.record_limit_bytes() as usize];
        let truncating = log.clone();
        log.when_long(move || {
            // As a checkpoint does, but at once: everything is applied.
            let end = truncating.end();
            truncating.truncate(end);
        });
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (log, record) = (log.clone(), record.clone());
                spawn(move || {
                    for _ in 0..6 {
                        let logged = log.append(&record).unwrap();
                        log.wait(logged.end, Durability::Sync).unwrap();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(log.last(), Timestamp(18));
    });
}
