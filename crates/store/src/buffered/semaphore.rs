//! Counting semaphores for tasks. With one permit they are mutexes: one task at a time changes the tables of
//! a tree. With more, flushes reserve memory for the pages that they change.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, PoisonError};
use crate::task::{Waker, park, waker};

/// A counting semaphore with `all` permits.
pub(crate) struct Semaphore {
    all: u64,
    free: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

/// A task's permits, until this is dropped.
pub(crate) struct Permits<'a> {
    semaphore: &'a Semaphore,
    amount: u64,
}

impl Default for Semaphore {
    /// A single permit: one task at a time has it.
    fn default() -> Self {
        Self::of(1)
    }
}

impl Semaphore {
    pub fn of(all: u64) -> Self {
        Self { all, free: AtomicU64::new(all), waiting: Mutex::default() }
    }

    /// Takes all permits, if they are free.
    pub fn try_acquire_all(&self) -> Option<Permits<'_>> {
        self.try_acquire(self.all)
    }

    /// Takes all permits; parks until they are free.
    pub fn acquire_all(&self) -> Permits<'_> {
        self.acquire(self.all)
    }

    /// Takes `amount` permits, or all of them if they are fewer, if these are free.
    pub fn try_acquire(&self, amount: u64) -> Option<Permits<'_>> {
        let amount = amount.min(self.all);
        let rest = |free: u64| free.checked_sub(amount);
        let taken = self.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, rest);
        taken.is_ok().then(|| Permits { semaphore: self, amount })
    }

    /// The same; parks until they are free.
    pub fn acquire(&self, amount: u64) -> Permits<'_> {
        loop {
            if let Some(permits) = self.try_acquire(amount) {
                return permits;
            }
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waker());
            // It may have been given back before this task could be woken.
            if let Some(permits) = self.try_acquire(amount) {
                return permits;
            }
            park();
        }
    }
}

impl Drop for Permits<'_> {
    fn drop(&mut self) {
        self.semaphore.free.fetch_add(self.amount, Ordering::SeqCst);
        let waiting = &self.semaphore.waiting;
        let waiting = std::mem::take(&mut *waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use shuttle::thread::spawn;

    use super::*;
    use crate::sync::Arc;
    use crate::sync::atomic::AtomicU64;
    use crate::sync::explored::{explore, point};

    #[test]
    fn one_task_at_a_time_has_the_only_permit() {
        explore(2000, || {
            let shared = Arc::new((Semaphore::default(), AtomicU64::new(0)));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    spawn(move || {
                        let _permits = shared.0.acquire_all();
                        let before = shared.1.load(Ordering::Relaxed);
                        point();
                        shared.1.store(before + 1, Ordering::Relaxed);
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(shared.1.load(Ordering::Relaxed), 3);
            assert!(shared.0.try_acquire_all().is_some());
        });
    }

    #[test]
    fn tasks_have_no_more_at_a_time_than_there_is() {
        explore(2000, || {
            let shared = Arc::new((Semaphore::of(3), AtomicU64::new(0)));
            let threads: Vec<_> = [1, 2, 3, 4]
                .into_iter()
                .map(|amount: u64| {
                    let shared = Arc::clone(&shared);
                    spawn(move || {
                        let _permits = shared.0.acquire(amount);
                        let others = shared.1.fetch_add(amount.min(3), Ordering::Relaxed);
                        assert!(others + amount.min(3) <= 3);
                        point();
                        shared.1.fetch_sub(amount.min(3), Ordering::Relaxed);
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(shared.0.try_acquire_all().is_some());
        });
    }
}
