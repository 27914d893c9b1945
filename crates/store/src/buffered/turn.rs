//! Turns: one task at a time changes which tables a tree has, and may wait meanwhile.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, PoisonError};
use crate::task::{Waker, park, waker};

/// See the module.
#[derive(Default)]
pub(crate) struct Turns {
    is_taken: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

/// The right to change, until this is dropped.
pub(crate) struct Turn<'a>(&'a Turns);

impl Turns {
    /// Takes the turn, if nobody has it.
    pub fn try_take(&self) -> Option<Turn<'_>> {
        (!self.is_taken.swap(true, Ordering::SeqCst)).then(|| Turn(self))
    }

    /// Takes the turn; parks until nobody has it.
    pub fn take(&self) -> Turn<'_> {
        loop {
            if let Some(turn) = self.try_take() {
                return turn;
            }
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waker());
            // It may have been given back before there was somebody to wake.
            if let Some(turn) = self.try_take() {
                return turn;
            }
            park();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner));
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
}
