//! The order in which ready tasks run: first come, first served, or drawn from a seed.

use std::cell::Cell;
use std::collections::VecDeque;

use crate::hash::mix;

/// See the module. The same seed makes the same choices.
#[derive(Default)]
pub(crate) struct Schedule {
    /// Of the generator; `None` is first come, first served.
    state: Cell<Option<u64>>,
}

impl Schedule {
    /// Choices that are drawn from `seed`; those of another `stream` do not go along with them.
    pub fn seeded(seed: u64, stream: u64) -> Self {
        Self { state: Cell::new(Some(mix(seed.wrapping_add(mix(stream))))) }
    }

    /// Chooses as `other` from now on.
    pub fn set(&self, other: &Self) {
        self.state.set(other.state.get());
    }

    /// Whether choices are drawn.
    #[inline]
    pub fn is_random(&self) -> bool {
        self.state.get().is_some()
    }

    /// A number below `bound`, which is not zero; always zero if nothing is drawn.
    #[inline]
    pub fn draw(&self, bound: usize) -> usize {
        let Some(state) = self.state.get() else { return 0 };
        // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
        let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.state.set(Some(state));
        (mix(state) % bound as u64) as usize
    }

    /// Takes the next out of a queue.
    #[inline]
    pub fn take_from<T>(&self, queue: &mut VecDeque<T>) -> Option<T> {
        if !self.is_random() || queue.is_empty() {
            return queue.pop_front();
        }
        queue.remove(self.draw(queue.len()))
    }

    /// Puts `items` into the order of the schedule.
    pub fn order<T>(&self, items: &mut [T]) {
        if self.is_random() {
            (1..items.len()).rev().for_each(|last| items.swap(last, self.draw(last + 1)));
        }
    }
}
