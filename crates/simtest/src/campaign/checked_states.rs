//! Crash states that were already tested.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

/// By their prints, which are random numbers already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("prints are numbers");
    }

    fn write_u64(&mut self, print: u64) {
        self.0 = print;
    }
}

const PARTS: usize = 64;

/// The prints of all states so far, for any number of threads. Two states that differ share a print once in
/// 2^64: of 10^8 states, one in three hundred runs is taken for another.
pub struct CheckedStates {
    parts: [Mutex<HashSet<u64, BuildHasherDefault<AsIs>>>; PARTS],
}

impl Default for CheckedStates {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl CheckedStates {
    /// Whether it is new.
    pub fn insert(&self, print: u64) -> bool {
        let part = &self.parts[(print >> 58) as usize % PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner).insert(print)
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        let counts =
            self.parts.iter().map(|part| part.lock().unwrap_or_else(PoisonError::into_inner).len() as u64);
        counts.sum()
    }
}
