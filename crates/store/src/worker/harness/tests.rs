use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use flashgrain_device::{Device, MemoryDevice};
use flashgrain_ssdsim::{SimConfig, SimDevice};

use super::*;
use crate::io_context::{Block, Role, now, sleep_until};
use crate::task::{Upkeep, overlap, park, waker, yield_now};

fn sim() -> Arc<SimDevice> {
    Arc::new(SimDevice::new(&SimConfig::named("905p").unwrap(), "sim:905p", 1).unwrap())
}

fn memory() -> Devices {
    Devices::new(Arc::new(MemoryDevice::new(1 << 20, 0).unwrap()), None)
}

fn read(devices: &Devices, role: Role, place: u64) {
    Block::new(512).unwrap().read(devices, role, place * 512).unwrap();
}

/// Random reads on data and log device by tasks of three workers: the time when each was done.
fn trace(schedule: Option<u64>) -> Vec<(u64, u64)> {
    let devices = Devices::new(sim(), Some(sim()));
    let mut harness = Harness::new(&devices, 3);
    schedule.into_iter().for_each(|seed| harness.set_schedule(seed));
    let log = Arc::new(Mutex::new(Vec::new()));
    for task in 0..30 {
        let (devices, log) = (devices.clone(), Arc::clone(&log));
        drop(harness.spawn(task % 3, move || {
            for round in 0..20 {
                let role = if (task + round) % 4 == 0 { Role::Log } else { Role::Data };
                read(&devices, role, (task * 7919 + round * 104_729) as u64 % 10_000);
                log.lock().unwrap().push((task as u64, now(&devices).0));
            }
        }));
    }
    harness.run_until_idle();
    assert_eq!(harness.unfinished(), 0);
    let log = log.lock().unwrap().clone();
    assert_eq!(log.len(), 600);
    log
}

#[test]
fn it_runs_the_same_every_time_on_one_clock() {
    let first = trace(None);
    assert!(first.is_sorted_by_key(|(_, time)| *time), "time runs backwards between workers");
    assert_eq!(first, trace(None));
}

#[test]
fn a_seed_makes_an_interleaving_of_its_own_the_same_every_time() {
    let traces: Vec<_> = (0..20).map(|seed| trace(Some(seed))).collect();
    for (seed, trace_of_seed) in (0..).zip(&traces) {
        assert!(trace_of_seed.is_sorted_by_key(|(_, time)| *time), "seed {seed}: time runs backwards");
        assert_eq!(*trace_of_seed, trace(Some(seed)), "seed {seed}");
    }
    let orders: std::collections::BTreeSet<Vec<u64>> =
        traces.iter().map(|trace| trace.iter().map(|(task, _)| *task).collect()).collect();
    assert_eq!(orders.len(), traces.len(), "all orders differ");
}

#[test]
fn everyone_gets_through_whatever_the_schedule() {
    for seed in 0..200 {
        let devices = memory();
        let mut harness = Harness::with_bounds(&devices, 3, Bounds { tasks_max: 4, depth: 2 }).unwrap();
        harness.set_schedule(seed);
        let executor = harness.executor().clone();
        let tasks: Vec<_> = (0..20_u64)
            .map(|task| {
                let (devices, executor) = (devices.clone(), executor.clone());
                harness.spawn(task as usize % 3, move || {
                    let helper = executor.run(move || (0..task).for_each(|_| yield_now()));
                    read(&devices, Role::Data, task);
                    (0..task).for_each(|_| overlap());
                    helper.join().unwrap();
                })
            })
            .collect();
        harness.run_until_idle();
        assert_eq!(harness.unfinished(), 0, "seed {seed}");
        tasks.into_iter().for_each(|task| task.join().unwrap());
    }
}

#[test]
fn every_completion_is_seen_at_its_own_time_by_whichever_worker() {
    // The second worker's read is the first on the drive; the first worker's, of a megabyte, takes far
    // longer.
    let devices = Devices::new(sim(), None);
    let mut harness = Harness::new(&devices, 2);
    let times = Arc::new(Mutex::new([0; 2]));
    for (worker, length) in [(0, 1 << 20), (1, 4096)] {
        let (devices, times) = (devices.clone(), Arc::clone(&times));
        drop(harness.spawn(worker, move || {
            (worker..1).for_each(|_| yield_now());
            let place = worker as u64 * (64 << 20);
            Block::new(length).unwrap().read(&devices, Role::Data, place).unwrap();
            times.lock().unwrap()[worker] = now(&devices).0;
        }));
    }
    harness.run_until_idle();
    let [large, small] = *times.lock().unwrap();
    assert!(small > 0 && small * 3 < large, "small {small} ns, large {large} ns");
}

#[test]
fn timers_let_virtual_time_pass_exactly() {
    let devices = Devices::new(sim(), None);
    let mut harness = Harness::new(&devices, 2);
    let other = {
        let devices = devices.clone();
        harness.spawn(1, move || {
            sleep_until(&devices, Nanos(7_000)).unwrap();
            now(&devices).0
        })
    };
    let slept = {
        let devices = devices.clone();
        harness.run(move || {
            sleep_until(&devices, Nanos(5_000_000)).unwrap();
            now(&devices).0
        })
    };
    assert_eq!((other.join().unwrap(), slept), (7_000, 5_000_000));
}

#[test]
fn a_panic_is_its_joiners_and_the_worker_goes_on() {
    let mut harness = Harness::new(&memory(), 1);
    let executor = harness.executor().clone();
    let text = harness.run(move || {
        let unlucky = executor.run(|| panic!("on purpose"));
        *unlucky.join().unwrap_err().downcast::<&str>().unwrap()
    });
    assert_eq!(text, "on purpose");
    assert_eq!(harness.run(|| 5), 5);
}

#[test]
fn few_tasks_are_under_way_at_a_time_and_those_who_join_make_room() {
    let devices = memory();
    let mut harness = Harness::with_bounds(&devices, 1, Bounds { tasks_max: 3, depth: 8 }).unwrap();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for _ in 0..20 {
        let (executor, running, most) = (harness.executor().clone(), Arc::clone(&running), Arc::clone(&most));
        drop(harness.spawn(0, move || {
            most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            yield_now();
            running.fetch_sub(1, Ordering::Relaxed);
            // All of them wait for tasks that have not begun: they would never begin if the waiting kept
            // their places.
            executor.run(yield_now).join().unwrap();
        }));
    }
    harness.run_until_idle();
    assert_eq!((harness.unfinished(), most.load(Ordering::Relaxed)), (0, 3));
}

#[test]
fn background_work_begins_beside_any_number_of_users_tasks() {
    let mut harness = Harness::with_bounds(&memory(), 1, Bounds { tasks_max: 2, depth: 8 }).unwrap();
    let executor = harness.executor().clone();
    for _ in 0..10 {
        let executor = executor.clone();
        drop(harness.spawn(0, move || {
            let done = Arc::new(AtomicUsize::new(0));
            let (seen, waker) = (Arc::clone(&done), waker());
            executor.spawn(move || {
                done.store(1, Ordering::Relaxed);
                waker.wake();
            });
            while seen.load(Ordering::Relaxed) == 0 {
                park();
            }
        }));
    }
    harness.run_until_idle();
    assert_eq!(harness.unfinished(), 0);
}

#[test]
fn neither_class_starves_the_other() {
    let mut harness = Harness::new(&memory(), 1);
    let executor = harness.executor().clone();
    let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let end = Arc::new(AtomicUsize::new(0));
    for task in 0..400 {
        let class = task % 2;
        let (counts, end) = (Arc::clone(&counts), Arc::clone(&end));
        let endless = move || {
            while end.load(Ordering::Relaxed) == 0 {
                counts[class].fetch_add(1, Ordering::Relaxed);
                yield_now();
            }
        };
        if class == 0 {
            drop(executor.run(endless));
        } else {
            executor.spawn(endless);
        }
    }
    for _ in 0..16_000 {
        harness.turn();
    }
    end.store(1, Ordering::Relaxed);
    harness.run_until_idle();
    let [foreground, background] = [0, 1].map(|class: usize| counts[class].load(Ordering::Relaxed));
    assert!(foreground >= 60_000 && background >= 15_000, "{foreground} {background}");
}

struct Counter(AtomicUsize);

impl Upkeep for Counter {
    fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn upkeep_is_done_between_tasks_as_long_as_it_lives() {
    let mut harness = Harness::new(&memory(), 2);
    let (first, second) = (Arc::new(Counter(0.into())), Arc::new(Counter(0.into())));
    let mut counts = |upkeep: Option<&Arc<Counter>>| {
        if let Some(upkeep) = upkeep {
            harness.executor().add_upkeep(Arc::downgrade(upkeep) as _);
        }
        harness.run(|| (0..5).for_each(|_| yield_now()));
        [&first, &second].map(|upkeep| upkeep.0.load(Ordering::Relaxed))
    };
    assert_eq!(counts(Some(&first)), [6, 0]);
    assert_eq!(counts(Some(&second)), [12, 6]);
    assert_eq!(counts(None), [18, 12]);
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 1));
}

#[test]
fn processors_take_their_time_side_by_side() {
    for workers in [1, 4] {
        let devices = Devices::new(sim(), None);
        let mut harness = Harness::new(&devices, workers);
        harness.set_costs(CpuCosts { task_ns: 1_000, request_ns: 0, ..CpuCosts::NONE });
        for task in 0..400 {
            drop(harness.spawn(task % workers, || (0..9).for_each(|_| yield_now())));
        }
        harness.run_until_idle();
        // 400 tasks run ten times each.
        assert_eq!(now(&devices), Nanos(4_000_000 / workers as u64));
    }
}

#[test]
fn requests_cost_too_and_more_workers_go_further() {
    let span = |workers: usize| {
        let devices = Devices::new(sim(), None);
        let mut harness = Harness::new(&devices, workers);
        harness.set_costs(CpuCosts { task_ns: 5_000, request_ns: 20_000, ..CpuCosts::NONE });
        for task in 0..64 {
            let devices = devices.clone();
            drop(harness.spawn(task % workers, move || {
                (0..20).for_each(|round| read(&devices, Role::Data, task as u64 * 20 + round));
            }));
        }
        harness.run_until_idle();
        assert_eq!(harness.unfinished(), 0);
        now(&devices).0
    };
    let (one, four) = (span(1), span(4));
    // 1280 requests, each with a run of its task before it, and a last run of each task.
    let cpu = 1280 * 25_000 + 64 * 5_000;
    assert!((cpu..cpu + cpu / 20).contains(&one), "{one} ns for {cpu} ns of work");
    assert!((cpu / 4..cpu / 3).contains(&four), "{four} ns with four");
}

#[test]
fn a_full_queue_holds_tasks_up_and_loses_none() {
    let device = sim();
    let devices = Devices::new(Arc::clone(&device) as Arc<dyn Device>, None);
    let mut harness = Harness::with_bounds(&devices, 1, Bounds { tasks_max: 1000, depth: 4 }).unwrap();
    for task in 0..200 {
        let devices = devices.clone();
        drop(harness.spawn(0, move || {
            for round in 0..5 {
                read(&devices, Role::Data, task * 5 + round);
            }
        }));
    }
    harness.run_until_idle();
    assert_eq!(harness.unfinished(), 0);
    assert_eq!(device.statistics().counters.reads, 1000);
}
