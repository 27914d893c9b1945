//! Stacks of tasks.

use std::cell::RefCell;
use std::io;
use std::mem::ManuallyDrop;

use corosensei::stack::{DefaultStack, Stack, StackPointer};

/// Bytes of a stack. The system backs only the pages that are used. The store itself needs a few KiB; a
/// user's task may call anything. Below each stack is a guard page: overrunning it ends the process instead
/// of corrupting memory.
const STACK_BYTES: usize = 256 << 10;

/// Number of offsets where stacks begin, so that the innermost calls of tasks that take turns do not compete
/// for the same sets of the processor's first cache.
const COLOURS: usize = 8;

/// The processor's page by the colours.
const COLOUR_BYTES: usize = 4096 / COLOURS;

/// Stacks of ended schedulers that a thread keeps, so that a program that opens store after store need not
/// ask the kernel for each.
const SPARES_MAX: usize = 32;

thread_local! {
    static SPARE: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// See the module.
pub(super) struct TaskStack {
    memory: ManuallyDrop<DefaultStack>,
    base: StackPointer,
}

impl TaskStack {
    /// The `number`-th stack of a scheduler.
    ///
    /// # Errors
    /// The system's, if it gives no memory.
    pub fn new(number: usize) -> io::Result<Self> {
        let used = SPARE.with_borrow_mut(Vec::pop);
        let memory = used.map_or_else(|| DefaultStack::new(STACK_BYTES), Ok)?;
        let begin = memory.base().get() - number % COLOURS * COLOUR_BYTES;
        let base = StackPointer::new(begin).unwrap_or(memory.base());
        Ok(Self { memory: ManuallyDrop::new(memory), base })
    }
}

impl Drop for TaskStack {
    fn drop(&mut self) {
        // SAFETY: no task uses it any more, and only this takes it out.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        // A thread that ends keeps none.
        let _kept = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARES_MAX {
                spare.push(memory);
            }
        });
    }
}

// SAFETY: the part of a stack with a guard page from its limit up to less than a page below its base; the
// bases of both are aligned to 512 bytes at least.
unsafe impl Stack for TaskStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.base
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.memory.limit()
    }
}
