//! Cooperative tasks with stacks of their own, and the scheduler of one worker (LeanStore's NVMe paper §3.2).
//!
//! The life of a task:
//!
//! 1. *Sent*: any thread puts a job into the mailbox of a worker.
//! 2. *Queued*: the worker's scheduler takes the job out. A foreground job waits, without a stack, while as
//!    many tasks are alive as the worker takes on; other jobs begin at once.
//! 3. *Begun*: the task gets a slot and a stack. It never changes its thread.
//! 4. *Running*, until it parks, yields or ends. A [`Waker`] makes a parked task ready again, from any
//!    thread.
//! 5. *Ended*: its [`JoinHandle`] has the result; slot and stack are used again.
//!
//! The same code runs on an ordinary thread, where parking blocks the thread.
//!
//! There are three classes. [`Class::Foreground`] tasks are the users'. [`Class::Background`] tasks are the
//! store's own: foreground tasks may wait for them, so they always begin at once, and each round of a worker
//! has a share for either class, so that neither starves the other. [`Class::Subtask`] tasks begin at once,
//! too, and then take turns with the foreground tasks that they work for.
//!
//! Synchronization: slots, stacks and queues of a scheduler are used by its own thread only. Other threads
//! reach its mailbox only.

mod core;
mod executor;
mod id;
mod join;
mod mailbox;
mod park;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod progress;
mod schedule;
mod scheduler;
mod stack;
mod unwaiting;

pub(crate) use self::id::TaskId;
pub(crate) use executor::{Executor, Upkeep, UpkeepCache};
pub use join::JoinHandle;
pub(crate) use mailbox::{Mailbox, WakeUp};
#[cfg(feature = "testing")]
pub(crate) use park::task_key;
pub(crate) use park::{Waker, current_task, go_on, in_task, overlap, park, waker, yield_now};
pub(crate) use schedule::Schedule;
pub(crate) use scheduler::Scheduler;
pub(crate) use unwaiting::Unwaiting;

/// Class of a task: it determines when tasks are admitted, and how they share the processor.
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

    /// The class whose rules decide when tasks of this class begin.
    fn begins_as(self) -> Self {
        match self {
            Self::Subtask => Self::Background,
            other => other,
        }
    }
}
