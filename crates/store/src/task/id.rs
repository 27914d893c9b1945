//! The identity of a task.

/// A task of a scheduler: its slot, and a number that tells it from the slot's earlier tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId {
    pub(super) index: u32,
    pub(super) generation: u32,
}
