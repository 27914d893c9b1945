//! How long threads had to wait for a processor: the scheduler's counts, and the time that a hypervisor gave
//! to others.

use std::fs;

use crate::Nanos;

/// Times of one thread by the scheduler's account, since the thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Time on a processor.
    pub ran: Nanos,
    /// Time ready to run while others did: the run delay.
    pub waited: Nanos,
}

impl ThreadTimes {
    /// Of the calling thread; `None` where the kernel does not count (`CONFIG_SCHED_INFO`).
    pub fn of_this_thread() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
    }

    /// Three numbers: nanoseconds run, nanoseconds waited, time slices.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map(|number| number.parse().ok().map(Nanos));
        Some(Self { ran: numbers.next()??, waited: numbers.next()?? })
    }

    /// Adds those of another thread, or of another time.
    pub fn add(&mut self, other: Self) {
        self.ran += other.ran;
        self.waited += other.waited;
    }

    /// The times from `earlier` to now.
    pub fn since(self, earlier: Self) -> Self {
        Self { ran: self.ran.since(earlier.ran), waited: self.waited.since(earlier.waited) }
    }
}

/// Time of all processors since the machine began, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTicks {
    all: u64,
    stolen: u64,
}

impl ProcessorTicks {
    /// Now; `None` if the system does not say.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The line `cpu`: user, nice, system, idle, iowait, irq, softirq, steal; guests' time after it is part
    /// of user's.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().take(8).map_while(|tick| tick.parse().ok()).collect();
        let all = ticks.iter().fold(0_u64, |sum, tick| sum.saturating_add(*tick));
        Some(Self { all, stolen: *ticks.get(7)? })
    }

    /// Share of the time since `earlier` that the hypervisor gave to others; `None` if no tick has passed.
    pub fn stolen_share_since(self, earlier: Self) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|ticks| *ticks > 0)?;
        Some(self.stolen.saturating_sub(earlier.stolen) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_prints_is_read() {
        let times = ThreadTimes::parse("1500000 250000 42\n");
        assert_eq!(times, Some(ThreadTimes { ran: Nanos(1_500_000), waited: Nanos(250_000) }));
        let ticks = ProcessorTicks::parse("cpu  10 1 5 60 4 0 0 20 3 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
        assert_eq!(ticks, Some(ProcessorTicks { all: 100, stolen: 20 }));
    }

    #[test]
    fn nonsense_is_no_answer() {
        for text in ["", "12", "a b c"] {
            assert_eq!(ThreadTimes::parse(text), None);
        }
        for text in ["", "cpu0 1 2 3", "cpu  1 2 3", "cpu  x"] {
            assert_eq!(ProcessorTicks::parse(text), None);
        }
    }

    #[test]
    fn shares_are_of_the_time_between() {
        let ticks = |all, stolen| ProcessorTicks { all, stolen };
        assert_eq!(ticks(300, 60).stolen_share_since(ticks(100, 10)), Some(0.25));
        assert_eq!(ticks(100, 10).stolen_share_since(ticks(100, 10)), None);
        assert_eq!(ticks(90, 10).stolen_share_since(ticks(100, 10)), None);
    }

    #[test]
    fn a_thread_that_works_has_run() {
        let Some(before) = ThreadTimes::of_this_thread() else { return };
        let begun = crate::thread_cpu();
        // Several of the kernel's ticks, at which it brings its counts up to date.
        while crate::thread_cpu().since(begun).seconds() < 0.03 {}
        let after = ThreadTimes::of_this_thread().unwrap();
        assert!(after.since(before).ran > Nanos(0));
    }
}
