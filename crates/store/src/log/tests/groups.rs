//! Group commit: the number of committers that share a write, the one that writes, and the effects of
//! failures.

use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_device::{MemoryDevice, Nanos};
use flashgrain_ssdsim::fault::{Fault, FaultKind, FlushLoss, Operation, Repeat, Trigger};

use super::*;
use crate::ErrorKind;
use crate::io_context::broken::Broken;
use crate::io_context::now;
use crate::worker::Harness;

/// The time that `committers` tasks of two workers take for `each` durable commits, and the groups written.
fn commits(committers: usize, each: usize) -> (Nanos, LogStats) {
    let devices = Devices::new(volatile_device(1) as _, None);
    let mut harness = Harness::new(&devices, 2);
    let layout = Layout { log_block_bytes: 4096, ..layout_of(4 << 20) };
    let (executor, poison) = (harness.executor().clone(), Poison::default());
    let log = Log::open(&layout, devices.clone(), executor, poison, NEW, &mut |_, _, _| Ok(())).unwrap();
    let began = now(&devices);
    let handles: Vec<_> = (0..committers)
        .map(|committer| {
            let log = log.clone();
            harness.spawn(committer % 2, move || {
                for _ in 0..each {
                    let logged = log.append(&[7; 150]).unwrap();
                    log.wait(logged.end, Durability::Sync).unwrap();
                    log.truncate(log.durable());
                }
            })
        })
        .collect();
    while handles.iter().any(|handle| !handle.is_finished()) {
        assert!(harness.turn(), "somebody waits for ever");
    }
    (now(&devices).since(began), log.stats())
}

#[test]
fn sixty_four_committers_share_their_writes() {
    let (alone, one) = commits(1, 50);
    let (together, many) = commits(64, 50);
    assert_eq!((one.records, one.groups), (50, 50));
    assert_eq!(many.records, 64 * 50);
    // A committer alone waits for the background writer at most; of many, those that do not write wait for
    // the one that does.
    assert!(one.queue_longest <= 1, "{one:?}");
    let waiting = many.queued.0 as f64 / together.0 as f64;
    assert!((20.0..=64.0).contains(&waiting), "{waiting}: {many:?}");
    assert!((32..=64).contains(&many.queue_longest), "{many:?}");
    // Simulated time: the same on every machine.
    let speedup = 64.0 * alone.0 as f64 / together.0 as f64;
    assert!(speedup > 20.0, "{speedup}: {} groups", many.groups);
}

#[test]
fn ordinary_threads_share_writes_too() {
    let devices = Devices::new(Arc::new(MemoryDevice::new(64 << 20, 64 << 20).unwrap()), None);
    let layout = layout_of(32 << 20);
    let (log, _) = open_on(&devices, &layout, NEW).unwrap();
    let newest = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let logged = log.append(&[3; 100]).unwrap();
                    log.wait(logged.end, Durability::Sync).unwrap();
                    assert!(log.durable() >= logged.end);
                    newest.fetch_max(logged.timestamp.0, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(newest.into_inner(), 8 * 500);
    let stats = log.stats();
    assert_eq!(stats.records, 8 * 500);
    let (_, seen) = open_on(&devices, &layout, NEW).unwrap();
    assert_eq!(seen.len(), 8 * 500);
}

#[test]
fn a_failed_write_or_flush_ends_all_promises() {
    for (kind, operation) in [
        (FaultKind::WriteError { done_bytes: 0 }, Operation::Write),
        (FaultKind::FlushError { data: flashgrain_ssdsim::fault::FlushLoss::Dropped }, Operation::Flush),
    ] {
        let device = volatile_device(2);
        let devices = Devices::new(Arc::clone(&device) as _, None);
        let mut harness = Harness::new(&devices, 2);
        let layout = Layout { sync_method: SyncMethod::Fdatasync, ..layout() };
        let (executor, poison) = (harness.executor().clone(), Poison::default());
        let log = Log::open(&layout, devices.clone(), executor, poison, NEW, &mut |_, _, _| Ok(())).unwrap();
        let third = Fault { at: Trigger::Nth(3), repeat: Repeat::Once, ..Fault::new(kind.clone()) };
        device.inject(third.on(operation));
        let handles: Vec<_> = (0..10)
            .map(|committer| {
                let log = log.clone();
                harness.spawn(committer % 2, move || {
                    (0..20).try_for_each(|_| {
                        let logged = log.append(&[1; 600])?;
                        log.wait(logged.end, Durability::Sync)
                    })
                })
            })
            .collect();
        harness.run_until_idle();
        assert_eq!(harness.unfinished(), 0, "{kind:?}: nobody failed");
        let results: Vec<_> = handles.into_iter().map(|handle| handle.join().unwrap().unwrap_err()).collect();
        let first = results.iter().filter(|error| matches!(error, Error::Io { .. })).count();
        let rest = results.iter().filter(|error| matches!(error, Error::Poisoned { .. })).count();
        assert_eq!((first, rest), (1, 9), "{kind:?}");
        assert!(matches!(log.append(b"x"), Err(Error::Poisoned { .. })));
    }
}

/// From now on all such operations fail.
fn inject(device: &SimDevice, kind: FaultKind, operation: Operation) {
    device.inject(Fault::new(kind).on(operation).repeat(Repeat::Sticky));
}

fn kinds<T>(log: &Log, tried: Result<T, Error>) -> [Option<ErrorKind>; 2] {
    [tried.err(), log.append(b"x").err()].map(|error| error.map(|error| error.kind()))
}

/// No commit asks for durability, but without a flush recovery would look for the log's end in vain: too many
/// bytes are not durable.
#[test]
fn a_flush_that_the_window_needs_may_fail() {
    let device = volatile_device(1);
    let (log, _) = open(&device, &layout(), NEW).unwrap();
    inject(&device, FaultKind::FlushError { data: FlushLoss::Dropped }, Operation::Flush);
    let write = || {
        let logged = log.append(&[7; 400])?;
        log.wait(logged.end, Durability::Buffered)
    };
    let window = RING_BYTES / 8 / BLOCK_BYTES;
    assert!((0..window).all(|_| write().is_ok()), "they fit into the window");
    assert_eq!(kinds(&log, write()), [Some(ErrorKind::Io), Some(ErrorKind::Poisoned)]);
    assert_eq!(log.durable(), Lsn(0));
}

/// A caller that appends to a full group writes it first.
#[test]
fn a_full_group_that_cannot_be_written_takes_no_more() {
    let device = device(1);
    let layout = Layout { log_block_bytes: 4096, ..layout_of(64 << 20) };
    let (log, _) = open(&device, &layout, NEW).unwrap();
    inject(&device, FaultKind::WriteError { done_bytes: 0 }, Operation::Write);
    let record = vec![7; GROUP_BYTES_MAX / 2 + 1];
    log.append(&record).unwrap();
    assert_eq!(kinds(&log, log.append(&record)), [Some(ErrorKind::Io), Some(ErrorKind::Poisoned)]);
    assert_eq!(log.last(), Timestamp(1));
}

/// The ring of a log in a file is written to with zeros first.
#[test]
fn a_ring_that_cannot_be_prepared_takes_no_commits() {
    let device = device(1);
    let devices = Devices::new(Broken::of_kind(Arc::clone(&device) as _, "file"), None);
    let (log, _) = open_on(&devices, &layout(), NEW).unwrap();
    inject(&device, FaultKind::WriteError { done_bytes: 0 }, Operation::Write);
    let logged = log.append(b"first").unwrap();
    let waited = log.wait(logged.end, Durability::Sync);
    assert_eq!(kinds(&log, waited), [Some(ErrorKind::Io), Some(ErrorKind::Poisoned)]);
    assert_eq!(log.stats().groups, 0);
}

/// The ring is full, and no commit goes on before a checkpoint makes room.
#[test]
fn whoever_finds_the_ring_full_waits_for_a_checkpoint() {
    let devices = Devices::new(device(3) as _, None);
    let mut harness = Harness::new(&devices, 1);
    let (executor, poison) = (harness.executor().clone(), Poison::default());
    let log =
        Log::open(&layout(), devices.clone(), executor.clone(), poison, NEW, &mut |_, _, _| Ok(())).unwrap();
    let checkpoints = Arc::new(AtomicU64::new(0));
    let (own, count) = (log.clone(), Arc::clone(&checkpoints));
    log.when_long(move || {
        let (own, count) = (own.clone(), Arc::clone(&count));
        executor.spawn(move || {
            count.fetch_add(1, Ordering::Relaxed);
            own.wait(own.end(), Durability::Sync).unwrap();
            own.truncate(own.durable());
        });
    });
    let own = log.clone();
    harness.run(move || {
        for _ in 0..2000 {
            own.append(&[9; 400]).unwrap();
        }
    });
    assert!(checkpoints.load(Ordering::Relaxed) > 5);
    assert_eq!(log.last(), Timestamp(2000));
}

/// No commit asks for durability, and yet the memory stays bounded and the log is written.
#[test]
fn what_nobody_waits_for_is_written_behind() {
    let devices = Devices::new(device(4) as _, None);
    let mut harness = Harness::new(&devices, 2);
    let layout = Layout { log_block_bytes: 4096, ..layout_of(64 << 20) };
    let (executor, poison) = (harness.executor().clone(), Poison::default());
    let log = Log::open(&layout, devices.clone(), executor, poison, NEW, &mut |_, _, _| Ok(())).unwrap();
    let own = log.clone();
    harness.run(move || {
        for number in 0..20_000 {
            own.append(&[4; 1000]).unwrap();
            if number % 8 == 0 {
                crate::task::yield_now();
            }
        }
    });
    let unwritten = log.end().0 - log.shared.written.load(Ordering::Relaxed);
    let unwritten_max = 2 * GROUP_BYTES_MAX as u64;
    assert!(unwritten < unwritten_max, "{unwritten}");
    let not_durable = log.end().0 - log.durable().0;
    assert!(not_durable < log.shared.state().ring.window_bytes() + unwritten_max, "{not_durable}");
    harness.run_until_idle();
    assert!(log.durable() == log.end() && !log.is_unsettled());
}

/// Prints rates of durable commits on the disk of the working directory:
/// `cargo test --release -p flashgrain log::tests::groups::rates -- --ignored --nocapture`.
#[test]
#[ignore = "measures: takes seconds, and says nothing on a busy machine"]
fn rates() {
    use flashgrain_device::{FileDevice, Op, OpenOptions};

    use crate::io_context::{Role, write};

    const SPAN: Nanos = Nanos(2_000_000_000);
    for sync_method in [SyncMethod::Dsync, SyncMethod::LinkedFlush, SyncMethod::Fdatasync] {
        let folder = std::env::current_dir().unwrap();
        let file = FileDevice::scratch(&[folder], 256 << 20, &OpenOptions::default()).unwrap();
        let devices = Devices::new(Arc::new(file), None);
        let layout = Layout { log_block_bytes: 4096, sync_method, ..layout_of(128 << 20) };
        let zeros = crate::io_context::Block::new(1 << 20).unwrap();
        for place in 0..130_u64 {
            zeros.write(&devices, Role::Log, place << 20).unwrap();
        }
        // Each run's log is another store's.
        let runs = AtomicU64::new(1);
        let mut block = flashgrain_device::Arena::new(4096).unwrap();
        block.bytes_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 7) as u8);
        let raw = || {
            let (began, mut count) = (now(&devices), 0_u64);
            while now(&devices).since(began) < SPAN {
                let op = if sync_method == SyncMethod::Dsync { Op::WriteDsync } else { Op::WriteThenFlush };
                let place = 4096 + count % 10_000 * 4096;
                let memory = block.as_ptr();
                // SAFETY: the arena is that long and lives until the call returns, and is not used otherwise.
                unsafe { write(&devices, Role::Log, op, place, memory, 4096) }.unwrap();
                count += 1;
            }
            count as f64 / 2.0
        };
        let commits = |threads: usize| {
            let checkpoint = LogCheckpoint { store: runs.fetch_add(1, Ordering::Relaxed), ..NEW };
            let (log, _) = open_on(&devices, &layout, checkpoint).unwrap();
            let count = AtomicU64::new(0);
            let began = now(&devices);
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        while now(&devices).since(began) < SPAN {
                            let logged = log.append(&[7; 150]).unwrap();
                            log.wait(logged.end, Durability::Sync).unwrap();
                            log.truncate(log.durable());
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
            count.into_inner() as f64 / 2.0
        };
        let tasks = |tasks: usize| {
            let mut harness = Harness::new(&devices, 1);
            let executor = harness.executor().clone();
            let log =
                Log::open(&layout, devices.clone(), executor, Poison::default(), NEW, &mut |_, _, _| Ok(()));
            let (log, count) = (log.unwrap(), Arc::new(AtomicU64::new(0)));
            let began = now(&devices);
            let handles: Vec<_> = (0..tasks)
                .map(|_| {
                    let (log, count, devices) = (log.clone(), Arc::clone(&count), devices.clone());
                    harness.spawn(0, move || {
                        while now(&devices).since(began) < SPAN {
                            let logged = log.append(&[7; 150]).unwrap();
                            log.wait(logged.end, Durability::Sync).unwrap();
                            log.truncate(log.durable());
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            while handles.iter().any(|handle| !handle.is_finished()) {
                assert!(harness.turn());
            }
            count.load(Ordering::Relaxed) as f64 / 2.0
        };
        // In turn, as the disk's rate wanders.
        let [mut raws, mut ones] = [0.0, 0.0];
        for _ in 0..3 {
            raws += raw() / 3.0;
            ones += commits(1) / 3.0;
        }
        let (many, mut task) = (commits(64), 0.0);
        (0..3).for_each(|_| task += tasks(1) / 3.0);
        let many_tasks = tasks(64);
        println!(
            "{sync_method:?}: raw durable writes {raws:.0}/s, one committer {ones:.0}/s ({:.2}), 64 threads {many:.0}/s ({:.1}), one task {task:.0}/s, 64 tasks {many_tasks:.0}/s ({:.1})",
            ones / raws,
            many / ones,
            many_tasks / task
        );
    }
}
