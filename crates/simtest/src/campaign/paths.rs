//! The call paths that lead to a place.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use flashgrain::testing::Listener;

/// Calls that tell two ways apart, from the innermost on. The outermost callers do not matter.
const CALLS: usize = 40;

/// Occasions for something, by the way there. Counted from 1.
#[derive(Clone, Debug, Default)]
pub struct Paths(Rc<RefCell<OccasionCounts>>);

#[derive(Debug, Default)]
struct OccasionCounts {
    occasions: u64,
    /// The first occasion, and how many there were.
    by_path: HashMap<u64, (u64, u64)>,
}

impl Paths {
    /// Notes where every occasion is.
    pub fn listener(&self) -> Listener {
        let own = self.clone();
        Box::new(move || own.0.borrow_mut().note(own_path()))
    }

    /// The first occasion on each way there, those of ways that are gone least first.
    pub fn rarest(&self) -> Vec<u64> {
        let mut found: Vec<_> =
            self.0.borrow().by_path.values().map(|(first, times)| (*times, *first)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, first)| first).collect()
    }
}

impl OccasionCounts {
    fn note(&mut self, path: u64) {
        self.occasions += 1;
        self.by_path.entry(path).or_insert((self.occasions, 0)).1 += 1;
    }
}

/// The call path of the caller.
fn own_path() -> u64 {
    let (mut hasher, mut calls) = (DefaultHasher::new(), 0);
    backtrace::trace(|frame| {
        frame.ip().addr().hash(&mut hasher);
        calls += 1;
        calls < CALLS
    });
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn call(listener: &mut Listener) {
        listener();
    }

    #[inline(never)]
    fn call_deeper(listener: &mut Listener) {
        call(std::hint::black_box(listener));
        std::hint::black_box(());
    }

    #[test]
    fn each_way_is_taken_once_and_the_rarest_first() {
        let paths = Paths::default();
        let mut listener = paths.listener();
        let ways: Vec<fn(&mut Listener)> = vec![call, call, call, call_deeper, call];
        for way in std::hint::black_box(ways) {
            way(&mut listener);
        }
        assert_eq!(paths.rarest(), [4, 1]);
    }
}
