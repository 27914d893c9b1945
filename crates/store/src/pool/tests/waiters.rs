//! Queues of waiters; `tests/loom` has them in every order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flashgrain_device::MemoryDevice;
use shuttle::thread::spawn;

use crate::io_context::Devices;
use crate::pool::waiters::{Waiters, changed};
use crate::sync::Mutex;
use crate::sync::explored::explore;
use crate::task::{park, yield_now};
use crate::worker::Harness;

const KEY: u64 = 7;

/// A waiter that has its resource before it parks, or waits for something else first, leaves no place in the
/// queue.
#[test]
fn regression_a_place_that_was_left_takes_nobody_s_wake_up() {
    let devices = Devices::new(Arc::new(MemoryDevice::new(1 << 16, 1 << 16).unwrap()), None);
    let mut harness = Harness::new(&devices, 1);
    let (waiters, has_come) = (Arc::new(Waiters::default()), Arc::new(AtomicBool::new(false)));
    let (queue, come) = (Arc::clone(&waiters), Arc::clone(&has_come));
    let goes = harness.spawn(0, move || {
        drop(queue.enter(KEY));
        // Woken in vain, if at all.
        while !come.load(Ordering::SeqCst) {
            yield_now();
        }
    });
    let (queue, come) = (Arc::clone(&waiters), Arc::clone(&has_come));
    let stays = harness.spawn(0, move || {
        let _place = queue.enter(KEY);
        come.store(true, Ordering::SeqCst);
        park();
    });
    while !goes.is_finished() {
        assert!(harness.turn());
    }
    waiters.wake_one(KEY);
    harness.run_until_idle();
    assert!(stays.is_finished(), "it was not woken");
}

/// As waiters for frames do: each may find one before it parks, and may wait for something else in between.
#[test]
fn whoever_waits_for_one_of_a_few_gets_it() {
    explore(400, || {
        let shared = Arc::new((Waiters::default(), Mutex::new(1_u32), AtomicU64::new(0)));
        let take = |free: &Mutex<u32>| {
            let mut free = free.lock().unwrap();
            *free = free.checked_sub(1)?;
            Some(())
        };
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let shared = Arc::clone(&shared);
                spawn(move || {
                    let (waiters, free, taken) = &*shared;
                    for _ in 0..2 {
                        let mut place = None;
                        while take(free).is_none() {
                            if place.is_none() {
                                place = Some(waiters.enter(KEY));
                                continue;
                            }
                            park();
                            place = None;
                        }
                        drop(place);
                        taken.fetch_add(1, Ordering::Relaxed);
                        *free.lock().unwrap() += 1;
                        changed();
                        waiters.wake_one(KEY);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(shared.2.load(Ordering::Relaxed), 8);
    });
}
