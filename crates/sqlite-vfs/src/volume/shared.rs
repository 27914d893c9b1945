//! The shared state of connections to a database: locks, and the memory with the index of its log.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::FileId;
use super::locks::{Level, Locks};

/// Locks of the shared memory.
pub(crate) const MEMORY_LOCKS: usize = 8;

/// All databases of a volume that are open. One that was removed shares nothing with a new one of its name.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<BTreeMap<FileId, Weak<SharedMemory>>>);

/// Of one database; the connections own it.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    locks: Locks,
    /// Words, as SQLite writes to them without this program's knowledge.
    regions: Vec<Box<[AtomicU64]>>,
    /// Of each lock how many share it; −1 if one has it for itself.
    slots: [i32; MEMORY_LOCKS],
    /// Connections that use the memory.
    users: u32,
}

impl Shared {
    /// The state that all connections to this database share.
    pub fn open(&self, file: FileId) -> Arc<SharedMemory> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, one| one.strong_count() > 0);
        if let Some(one) = all.get(&file).and_then(Weak::upgrade) {
            return one;
        }
        let one = Arc::new(SharedMemory::default());
        all.insert(file, Arc::downgrade(&one));
        one
    }
}

impl SharedMemory {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Locks::raise`].
    pub fn raise(&self, own: Level, wanted: Level) -> (Level, bool) {
        self.state().locks.raise(own, wanted)
    }

    /// As [`Locks::lower`].
    pub fn lower(&self, own: Level, to: Level) -> Level {
        self.state().locks.lower(own, to)
    }

    /// Whether some connection is going to write.
    pub fn is_reserved(&self) -> bool {
        self.state().locks.is_reserved()
    }

    /// One more connection uses the memory.
    pub fn attach(&self) {
        self.state().users += 1;
    }

    /// A connection uses the memory no more; the last one clears it.
    pub fn detach(&self) {
        let mut state = self.state();
        state.users -= 1;
        if state.users == 0 {
            state.regions.clear();
        }
    }

    /// The memory of a region, which stays where it is as long as a connection uses it; none if it is not
    /// there and not to be made.
    pub fn region(&self, number: usize, bytes: usize, making: bool) -> Option<*mut u8> {
        let mut state = self.state();
        while making && state.regions.len() <= number {
            state.regions.push((0..bytes.div_ceil(size_of::<u64>())).map(|_| AtomicU64::new(0)).collect());
        }
        // A pointer to an atomic may be written through.
        state.regions.get(number)?.first().map(|word| word.as_ptr().cast())
    }

    /// Takes locks from `first` on, for itself or shared; all or none.
    pub fn take(&self, first: usize, count: usize, alone: bool) -> bool {
        let mut state = self.state();
        let Some(slots) = state.slots.get_mut(first..first + count) else { return false };
        let is_free = |slot: &i32| if alone { *slot == 0 } else { *slot >= 0 };
        if !slots.iter().all(is_free) {
            return false;
        }
        slots.iter_mut().for_each(|slot| if alone { *slot = -1 } else { *slot += 1 });
        true
    }

    /// Gives a lock back.
    pub fn give(&self, number: usize, alone: bool) {
        if let Some(slot) = self.state().slots.get_mut(number) {
            *slot = if alone { 0 } else { *slot - 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_there_until_the_last_has_gone() {
        let shared = Shared::default();
        let (one, other) = (shared.open(FileId::NONE), shared.open(FileId::NONE));
        one.attach();
        other.attach();
        assert_eq!(one.region(0, 32 << 10, false), None);
        let region = one.region(0, 32 << 10, true).unwrap();
        assert_eq!(other.region(0, 32 << 10, false), Some(region));
        one.detach();
        assert_eq!(other.region(0, 32 << 10, false), Some(region));
        other.detach();
        assert_eq!(other.region(0, 32 << 10, false), None);
    }

    #[test]
    fn locks_are_taken_all_or_none() {
        let memory = SharedMemory::default();
        assert!(memory.take(3, 1, false) && memory.take(3, 1, false));
        assert!(!memory.take(2, 3, true));
        assert!(memory.take(2, 1, true), "it was not kept");
        assert!(!memory.take(2, 1, false));
        memory.give(3, false);
        memory.give(3, false);
        memory.give(2, true);
        assert!(memory.take(0, MEMORY_LOCKS, true));
        assert!(!memory.take(7, 2, true), "there are no more");
    }
}
