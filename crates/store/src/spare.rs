//! Memory that calls of a thread use one after another.

use std::cell::Cell;

thread_local! {
    /// Memory for three nested calls; deeper ones take new memory.
    static SPARE: Cell<[Vec<u8>; 3]> = const { Cell::new([Vec::new(), Vec::new(), Vec::new()]) };
}

/// The most memory that is kept for the next call.
pub(crate) const SPARE_BYTES_MAX: usize = 64 << 10;

/// Runs `act` with empty memory, which the next call on this thread uses again.
pub(crate) fn with_memory<T>(act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let [mut memory, second, third] = SPARE.take();
    SPARE.set([second, third, Vec::new()]);
    memory.clear();
    let result = act(&mut memory);
    if memory.capacity() <= SPARE_BYTES_MAX {
        let [first, second, _] = SPARE.take();
        SPARE.set([memory, first, second]);
    }
    result
}
