//! Turns: counting semaphores for tasks. With a turn, one task at a time changes the tables of a tree, and
//! flushes reserve memory for the pages that they change.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, PoisonError};
use crate::task::{Waker, park, waker};

/// A counting semaphore with `all` permits.
pub(crate) struct Turns {
    all: u64,
    free: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

/// A task's permits, until this is dropped.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    amount: u64,
}

impl Default for Turns {
    /// A single permit: one task at a time has it.
    fn default() -> Self {
        Self::of(1)
    }
}

impl Turns {
    pub fn of(all: u64) -> Self {
        Self { all, free: AtomicU64::new(all), waiting: Mutex::default() }
    }

    /// Takes all of it, if that is free.
    pub fn try_take(&self) -> Option<Turn<'_>> {
        self.try_take_share(self.all)
    }

    /// Takes all of it; parks until it is free.
    pub fn take(&self) -> Turn<'_> {
        self.take_share(self.all)
    }

    /// Takes `amount` permits, or all of them if they are fewer, if these are free.
    pub fn try_take_share(&self, amount: u64) -> Option<Turn<'_>> {
        let amount = amount.min(self.all);
        let rest = |free: u64| free.checked_sub(amount);
        let taken = self.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, rest);
        taken.is_ok().then(|| Turn { turns: self, amount })
    }

    /// The same; parks until it is free.
    pub fn take_share(&self, amount: u64) -> Turn<'_> {
        loop {
            if let Some(turn) = self.try_take_share(amount) {
                return turn;
            }
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waker());
            // It may have been given back before this task could be woken.
            if let Some(turn) = self.try_take_share(amount) {
                return turn;
            }
            park();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.free.fetch_add(self.amount, Ordering::SeqCst);
        let waiting = &self.turns.waiting;
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
    fn one_at_a_time_has_the_turn() {
        explore(2000, || {
            let shared = Arc::new((Turns::default(), AtomicU64::new(0)));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    spawn(move || {
                        let _turn = shared.0.take();
                        let before = shared.1.load(Ordering::Relaxed);
                        point();
                        shared.1.store(before + 1, Ordering::Relaxed);
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(shared.1.load(Ordering::Relaxed), 3);
            assert!(shared.0.try_take().is_some());
        });
    }

    #[test]
    fn tasks_have_no_more_at_a_time_than_there_is() {
        explore(2000, || {
            let shared = Arc::new((Turns::of(3), AtomicU64::new(0)));
            let threads: Vec<_> = [1, 2, 3, 4]
                .into_iter()
                .map(|amount: u64| {
                    let shared = Arc::clone(&shared);
                    spawn(move || {
                        let _turn = shared.0.take_share(amount);
                        let others = shared.1.fetch_add(amount.min(3), Ordering::Relaxed);
                        assert!(others + amount.min(3) <= 3);
                        point();
                        shared.1.fetch_sub(amount.min(3), Ordering::Relaxed);
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(shared.0.try_take().is_some());
        });
    }
}
