//! Single flight: one caller does the work of all. Callers that bring more of it leave it to the one that is
//! active.

use crate::sync::atomic::{AtomicBool, Ordering};

/// Whether a caller is active.
#[derive(Default)]
pub(super) struct SingleFlight(AtomicBool);

/// Ends the active caller's work on every path, panics included: closing the store waits for that.
struct Active<'a>(&'a AtomicBool);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl SingleFlight {
    /// Makes the caller the active one unless another is active. If this returns `true`, the caller has to
    /// [finish](SingleFlight::finish). To be called when work is pending.
    pub fn begin(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }

    pub fn is_under_way(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Handles one item after another until none are left, or one fails. `next` only peeks: its result may be
    /// used only by the active caller.
    pub fn finish<T, E>(&self, next: impl Fn() -> Option<T>, act: impl Fn(T) -> Result<(), E>) {
        loop {
            let active = Active(&self.0);
            match next().map(&act) {
                Some(Ok(())) => std::mem::forget(active),
                Some(Err(_)) => return,
                None => {
                    drop(active);
                    // An item that came between `next` and the store was left to this caller.
                    if next().is_none() || !self.begin() {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use shuttle::thread::spawn;

    use super::*;
    use crate::sync::Mutex;
    use crate::sync::explored::{explore, point};

    /// Closing the store would wait for ever.
    #[test]
    fn a_panic_ends_the_work() {
        let single_flight = SingleFlight::default();
        assert!(single_flight.begin());
        let finish = || single_flight.finish(|| Some(()), |()| -> Result<(), ()> { panic!("planned") });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(finish)).is_err());
        assert!(!single_flight.is_under_way());
    }

    /// Two callers that swept dropped trees at the same time could sweep the same one twice.
    #[test]
    fn regression_everything_is_done_once_and_by_one_at_a_time() {
        explore(10_000, || {
            let shared =
                Arc::new((SingleFlight::default(), Mutex::new(BTreeSet::new()), AtomicBool::new(false)));
            let threads: Vec<_> = (0..2)
                .map(|number| {
                    let shared = Arc::clone(&shared);
                    spawn(move || {
                        let (single_flight, due, busy) = &*shared;
                        for round in 0..4 {
                            assert!(due.lock().unwrap().insert((number, round)));
                            if !single_flight.begin() {
                                continue;
                            }
                            single_flight.finish(
                                || due.lock().unwrap().first().copied(),
                                |what| {
                                    assert!(!busy.swap(true, Ordering::SeqCst), "two are at it");
                                    point();
                                    assert!(due.lock().unwrap().remove(&what), "it was done before");
                                    busy.store(false, Ordering::SeqCst);
                                    Ok::<(), ()>(())
                                },
                            );
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(shared.1.lock().unwrap().is_empty(), "nobody was at it");
        });
    }
}
