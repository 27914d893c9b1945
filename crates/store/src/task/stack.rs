//! Stacks of tasks.

use std::io;

use corosensei::stack::{DefaultStack, Stack, StackPointer};

/// Bytes of a stack, of which the system gives only the pages that are used. The store itself needs a few KiB; a user's task may call anything. Below each
/// stack is a guard page: overrunning it ends the process instead of corrupting memory.
const STACK_BYTES: usize = 256 << 10;

/// Places at which stacks begin, so that the innermost calls of tasks that take turns do not compete for the same sets of the processor's first cache.
const COLOURS: usize = 8;

/// The processor's page by the colours.
const COLOUR_BYTES: usize = 4096 / COLOURS;

/// See the module.
pub(super) struct TaskStack {
    memory: DefaultStack,
    base: StackPointer,
}

impl TaskStack {
    /// The `number`-th stack of a scheduler.
    ///
    /// # Errors
    /// The system's, if it gives no memory.
    pub fn new(number: usize) -> io::Result<Self> {
        let memory = DefaultStack::new(STACK_BYTES)?;
        let begin = memory.base().get() - number % COLOURS * COLOUR_BYTES;
        let base = StackPointer::new(begin).unwrap_or(memory.base());
        Ok(Self { memory, base })
    }
}

// SAFETY: the part of a stack with a guard page from its limit up to less than a page below its base; the bases of both are aligned to 512 bytes at least.
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
