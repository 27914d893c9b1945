//! Points where a task of a simulated store may lose its processor, as a thread may anywhere.
//!
//! All tasks of a simulated store run on one thread and switch only where they wait. Between two such places
//! the steps of one task are never between those of another, although threads of several workers are.
//! `preempt!()` stands where other workers' steps would matter: between a look and the step that relies on
//! it, between the parts of a commit, between two reads of memory that is confirmed afterwards. It must not
//! stand in a section, which debug assertions watch.

use std::cell::Cell;
use std::marker::PhantomData;

use flashgrain_device::Nanos;

use crate::worker::spend;

/// One preemption in this number is long, in stores whose processors cost something.
const LONG_ONE_IN: u64 = 8;

/// Virtual time of the longest preemption: some milliseconds; one less than a power of two.
const LONG_NS_MAX: u64 = (1 << 22) - 1;

thread_local! {
    static PLAN: Cell<Option<Schedule>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct Schedule {
    /// Xorshift; never zero.
    random: u64,
    one_in: u32,
}

/// From now on, until the result is dropped, tasks of the calling thread lose their processor at one in
/// `one_in` points, drawn from `seed`.
pub fn preempt(seed: u64, one_in: u32) -> Preempted {
    PLAN.set(Some(Schedule { random: seed | 1, one_in: one_in.max(1) }));
    Preempted { _of_this_thread: PhantomData }
}

/// A point.
pub(crate) fn point() {
    let Some(mut plan) = PLAN.get() else { return };
    plan.random ^= plan.random << 13;
    plan.random ^= plan.random >> 7;
    plan.random ^= plan.random << 17;
    PLAN.set(Some(plan));
    if (plan.random >> 32).is_multiple_of(plan.one_in.into()) && crate::task::in_task() {
        if plan.random.is_multiple_of(LONG_ONE_IN) {
            // Others may get far meanwhile.
            spend(Nanos(plan.random >> 8 & LONG_NS_MAX));
        }
        crate::task::yield_now();
    }
}

/// Tasks lose their processor now and then, as long as this lives.
#[must_use = "nothing is preempted when this is dropped"]
#[derive(Debug)]
pub struct Preempted {
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for Preempted {
    fn drop(&mut self) {
        PLAN.set(None);
    }
}
