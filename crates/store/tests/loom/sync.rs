//! Loom's atomics where the store has the standard library's, some of whose orderings can be taken away.

use std::cell::Cell;

pub(crate) use loom::hint;
pub(crate) use std::sync::PoisonError;

/// Few, as every order is tried out.
pub(crate) const PLACES: usize = 2;

pub(crate) mod thread {
    pub(crate) use loom::thread::yield_now;

    /// All in one place.
    pub(crate) fn number() -> Option<usize> {
        Some(0)
    }
}

/// What is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Without {
    /// All loads acquire nothing.
    Acquire,
    /// All stores release nothing.
    Release,
    /// No fence does anything.
    Fence,
    /// What is to be in one order that all threads see is only acquired and released.
    OneOrder,
}

std::thread_local! {
    /// Loom's threads all run on the one that has the model.
    static WITHOUT: Cell<Option<Without>> = const { Cell::new(None) };
}

/// Runs `model` in every order, with up to `preemptions` of them.
pub(crate) fn explore(
    preemptions: usize,
    without: Option<Without>,
    model: impl Fn() + Sync + Send + 'static,
) {
    WITHOUT.set(without);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

fn is(without: Without) -> bool {
    WITHOUT.get() == Some(without)
}

pub(crate) mod atomic {
    pub(crate) use std::sync::atomic::Ordering;

    use super::{Without, is};

    pub(crate) fn fence(order: Ordering) {
        if !is(Without::Fence) {
            loom::sync::atomic::fence(order);
        }
    }

    /// Loom takes sequential consistency for acquiring and releasing. A fence on either side makes up for
    /// that.
    fn ordered<T>(order: Ordering, access: impl FnOnce(Ordering) -> T) -> T {
        let order = match order {
            Ordering::Acquire | Ordering::AcqRel if is(Without::Acquire) => Ordering::Relaxed,
            Ordering::Release | Ordering::AcqRel if is(Without::Release) => Ordering::Relaxed,
            order => order,
        };
        if order != Ordering::SeqCst || is(Without::OneOrder) {
            return access(order);
        }
        loom::sync::atomic::fence(Ordering::SeqCst);
        let result = access(Ordering::SeqCst);
        loom::sync::atomic::fence(Ordering::SeqCst);
        result
    }

    macro_rules! atomics {
        ($($name:ident: $value:ty,)*) => {
            $(#[derive(Debug, Default)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            impl $name {
                pub fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                pub fn load(&self, order: Ordering) -> $value {
                    ordered(order, |order| self.0.load(order))
                }

                pub fn store(&self, value: $value, order: Ordering) {
                    ordered(order, |order| self.0.store(value, order));
                }

                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    ordered(order, |order| self.0.swap(value, order))
                }

                pub fn compare_exchange(
                    &self,
                    old: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    ordered(success, |success| self.0.compare_exchange(old, new, success, failure))
                }
            })*
        };
    }

    macro_rules! counters {
        ($($name:ident: $value:ty,)*) => {
            atomics! { $($name: $value,)* }

            $(impl $name {
                pub fn fetch_add(&self, by: $value, order: Ordering) -> $value {
                    ordered(order, |order| self.0.fetch_add(by, order))
                }

                pub fn fetch_sub(&self, by: $value, order: Ordering) -> $value {
                    ordered(order, |order| self.0.fetch_sub(by, order))
                }
            })*
        };
    }

    atomics! { AtomicBool: bool, }
    counters! { AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize, }
}

/// Loom's, with a default.
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub fn lock(&self) -> std::sync::LockResult<loom::sync::MutexGuard<'_, T>> {
        self.0.lock()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self(loom::sync::Mutex::new(T::default()))
    }
}
