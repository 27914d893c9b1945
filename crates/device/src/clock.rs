//! Time as a channel tells it: nanoseconds since an arbitrary start.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point on a channel's clock, or a span between two, in nanoseconds.
///
/// On a real drive the clock is `CLOCK_MONOTONIC`; on a simulated one it is virtual time. Points from
/// channels of the same device compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// `seconds` as nanoseconds, saturating; negative becomes zero.
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds * 1e9) as u64)
    }

    /// The time in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// From `earlier` to this point; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

impl From<Duration> for Nanos {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

impl Nanos {
    pub(crate) fn to_timespec(self) -> libc::timespec {
        libc::timespec {
            tv_sec: (self.0 / 1_000_000_000) as libc::time_t,
            tv_nsec: (self.0 % 1_000_000_000) as libc::c_long,
        }
    }
}

/// The clock of real devices: `CLOCK_MONOTONIC`. Code that may run on a simulated device asks the device
/// instead.
pub fn now() -> Nanos {
    read(libc::CLOCK_MONOTONIC)
}

/// Sleeps until the clock of [`now`] shows `until`, or a signal arrives.
pub fn sleep_until(until: Nanos) {
    let time = until.to_timespec();
    // SAFETY: the kernel reads one timespec; no remainder is asked for with an absolute time.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}

/// CPU time, user and system, that the calling thread has used.
pub fn thread_cpu() -> Nanos {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time, user and system, that all threads of this process have used.
pub fn process_cpu() -> Nanos {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Seconds since 1970 in UTC, for the record of when something was measured; nothing is decided by it.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the calendar")]
pub fn calendar_seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |span| span.as_secs())
}

/// Time since 1970 in UTC, to tell times that other programs print from those of [`now`].
pub fn calendar() -> Nanos {
    read(libc::CLOCK_REALTIME)
}
