//! Stand-ins for the standard library's atomics, locks and threads. Within [`explore`] each access is a point
//! where another thread may go on, as shuttle decides from a seed; all threads are coroutines on one. Outside
//! of it they forward to the standard library. Their memory layout is that of the originals, so that memory
//! full of zeros is still memory full of atomics.
//!
//! All accesses are sequentially consistent here. Loom tries out weaker orderings, in `tests/loom`.

use std::cell::Cell;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};

pub(crate) mod prelude {
    pub(crate) use std::sync::{
        Arc, LockResult, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        TryLockError, TryLockResult, Weak,
    };

    pub(crate) use super::{Mutex, point};
}

std::thread_local! {
    /// Whether threads of [`explore`] run on this one.
    static EXPLORES: Cell<bool> = const { Cell::new(false) };
}

/// Whether the caller is a thread of [`explore`].
#[inline]
pub(crate) fn explores() -> bool {
    EXPLORES.get()
}

/// Another thread may go on here.
#[inline]
pub(crate) fn point() {
    if explores() && !std::thread::panicking() {
        // No more than a switch; unlike giving way, which some schedulers take for a wish to be last.
        shuttle::thread::sleep(std::time::Duration::ZERO);
    }
}

struct Exploring;

impl Drop for Exploring {
    fn drop(&mut self) {
        EXPLORES.set(false);
    }
}

/// Runs `model` under `schedules` schedules. Half of them are random, the others have a few changes of
/// priority at places that are drawn (probabilistic concurrency testing: Burckhardt et al., ASPLOS 2010). The
/// model makes threads by [`shuttle::thread::spawn`]. It panics as the model does, with the schedule; also if
/// all threads wait.
///
/// `FLASHGRAIN_SCHEDULES` multiplies the number, `FLASHGRAIN_SEED` chooses others.
pub(crate) fn explore(schedules: usize, model: impl Fn() + Send + Sync + Copy + 'static) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let schedules = schedules * number("FLASHGRAIN_SCHEDULES").unwrap_or(1) as usize;
    let seed = number("FLASHGRAIN_SEED").unwrap_or(1);
    eprintln!("{schedules} schedules from FLASHGRAIN_SEED={seed}");
    run(RandomScheduler::new_from_seed(seed, schedules.div_ceil(2)), model);
    run(PctScheduler::new_from_seed(seed, 3, schedules / 2), model);
}

fn run(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 256 << 10;
    config.silence_warnings = true;
    let _exploring = Exploring;
    shuttle::Runner::new(scheduler, config).run(move || {
        EXPLORES.set(true);
        model();
    });
}

/// See the module.
pub(crate) mod atomic {
    use std::ops::Deref;
    pub(crate) use std::sync::atomic::Ordering;
    use std::sync::atomic::{self as real};

    use super::point;

    pub(crate) fn fence(order: Ordering) {
        point();
        real::fence(order);
    }

    macro_rules! atomic {
        ($($name:ident: $value:ty,)*) => {
            $(#[derive(Debug, Default)]
            #[repr(transparent)]
            pub(crate) struct $name(real::$name);

            impl $name {
                #[inline]
                pub const fn new(value: $value) -> Self {
                    Self(real::$name::new(value))
                }
            }

            impl From<$value> for $name {
                fn from(value: $value) -> Self {
                    Self::new(value)
                }
            }

            /// Every access goes this way.
            impl Deref for $name {
                type Target = real::$name;

                #[inline]
                fn deref(&self) -> &real::$name {
                    point();
                    &self.0
                }
            })*
        };
    }

    atomic! {
        AtomicBool: bool,
        AtomicU8: u8,
        AtomicU32: u32,
        AtomicU64: u64,
        AtomicI64: i64,
        AtomicUsize: usize,
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    pub fn lock(&self) -> prelude::LockResult<prelude::MutexGuard<'_, T>> {
        if !explores() {
            return self.0.lock();
        }
        point();
        loop {
            match self.0.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(prelude::TryLockError::Poisoned(poisoned)) => return Err(poisoned),
                Err(prelude::TryLockError::WouldBlock) => thread::yield_now(),
            }
        }
    }

    pub fn try_lock(&self) -> prelude::TryLockResult<prelude::MutexGuard<'_, T>> {
        point();
        self.0.try_lock()
    }

    pub fn get_mut(&mut self) -> prelude::LockResult<&mut T> {
        self.0.get_mut()
    }
}

/// See the module.
pub(crate) mod hint {
    pub(crate) fn spin_loop() {
        match super::explores() {
            true => super::thread::yield_now(),
            false => std::hint::spin_loop(),
        }
    }
}

/// See the module.
pub(crate) mod thread {
    use super::explores;

    #[derive(Clone)]
    pub(crate) enum Thread {
        Real(std::thread::Thread),
        Explored(shuttle::thread::Thread),
    }

    impl Thread {
        pub fn unpark(&self) {
            match self {
                Self::Real(thread) => thread.unpark(),
                Self::Explored(thread) => thread.unpark(),
            }
        }
    }

    pub(crate) fn current() -> Thread {
        match explores() {
            true => Thread::Explored(shuttle::thread::current()),
            false => Thread::Real(std::thread::current()),
        }
    }

    /// Number of the calling thread in the model.
    pub(crate) fn number() -> Option<usize> {
        explores().then(|| shuttle::thread::current().id().into())
    }

    pub(crate) fn park() {
        match explores() {
            true => shuttle::thread::park(),
            false => std::thread::park(),
        }
    }

    pub(crate) fn yield_now() {
        match explores() {
            true => shuttle::thread::yield_now(),
            false => std::thread::yield_now(),
        }
    }
}

/// A value of each thread, whichever sort of thread it is.
pub(crate) struct Local<T: 'static> {
    pub real: std::thread::LocalKey<T>,
    pub explored: shuttle::thread::LocalKey<T>,
}

impl<T> Local<T> {
    pub fn with<R>(&'static self, act: impl FnOnce(&T) -> R) -> R {
        match explores() {
            true => self.explored.with(act),
            false => self.real.with(act),
        }
    }
}

/// As the standard library's.
macro_rules! per_thread {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $init:expr;)*) => {
        $($(#[$attribute])*
        static $name: $crate::sync::explored::Local<$type> = $crate::sync::explored::Local {
            real: {
                std::thread_local! { static REAL: $type = $init; }
                REAL
            },
            explored: shuttle::thread::LocalKey { init: || $init, _p: std::marker::PhantomData },
        };)*
    };
}
pub(crate) use per_thread;
