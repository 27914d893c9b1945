//! Cooperative tasks with stacks of their own, and the scheduler of one worker (LeanStore's NVMe paper §3.2).
//!
//! A task runs until it parks, yields or ends; it never changes its thread. Whoever has a [`Waker`] of it may
//! wake it, from any thread. The same code runs on an ordinary thread, where parking blocks the thread.
//!
//! There are three classes. [`Class::Foreground`] tasks are what users asked for: a worker takes on a bounded
//! number at a time, the others wait without a stack. [`Class::Background`] tasks are the store's own:
//! foreground tasks may wait for them, so they always begin at once, and each round of a worker has a share
//! for either class, so that neither starves the other. [`Class::Subtask`] tasks begin at once, too, and then
//! take their turns with the foreground tasks that they are for.

mod core;
mod executor;
mod join;
mod mailbox;
mod park;
mod schedule;
mod scheduler;
mod stack;
mod unwaiting;

pub(crate) use self::core::TaskId;
pub(crate) use executor::{Executor, Upkeep, UpkeepCache};
pub use join::JoinHandle;
pub(crate) use mailbox::{Mailbox, WakeUp};
#[cfg(feature = "testing")]
pub(crate) use park::task_key;
pub(crate) use park::{Waker, current_task, go_on, in_task, overlap, park, waker, yield_now};
pub(crate) use schedule::Schedule;
pub(crate) use scheduler::Scheduler;
pub(crate) use unwaiting::Unwaiting;

/// Class of a task, by which tasks are admitted and share the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A user's.
    Foreground,
    /// The store's own.
    Background,
    /// Part of a foreground task's work, which probably waits for it.
    Subtask,
}

impl Class {
    /// The class whose queue tasks of this class use once they have begun.
    fn runs_as(self) -> Self {
        match self {
            Self::Subtask => Self::Foreground,
            other => other,
        }
    }

    /// The class by whose rules tasks of this class begin.
    fn begins_as(self) -> Self {
        match self {
            Self::Subtask => Self::Background,
            other => other,
        }
    }
}
