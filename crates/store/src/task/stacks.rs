//! Stacks of tasks that have ended, for those that begin.

use corosensei::stack::DefaultStack;

/// Bytes of a stack. Descents are iterative; the deepest path is a split through all levels with the pages' headers on the stack.
const STACK_BYTES: usize = 64 << 10;

/// Stacks that are kept.
const KEPT: usize = 4096;

/// See the module. A stack has a guard page below it: overrunning it ends the process instead of corrupting memory.
#[derive(Default)]
pub(super) struct Stacks {
    free: Vec<DefaultStack>,
}

impl Stacks {
    /// A stack for a new task.
    pub fn take(&mut self) -> std::io::Result<DefaultStack> {
        match self.free.pop() {
            Some(stack) => Ok(stack),
            None => DefaultStack::new(STACK_BYTES),
        }
    }

    /// The stack of a task that has ended.
    pub fn give_back(&mut self, stack: DefaultStack) {
        if self.free.len() < KEPT {
            self.free.push(stack);
        }
    }
}
