//! Cooperative tasks with stacks of their own, and the scheduler of one worker (LeanStore's NVMe paper §3.2).
//!
//! A task runs until it parks, yields or ends; it never changes its thread. Whoever has a [`Waker`] of it may wake it, from any thread.
//! The same code runs on an ordinary thread, where parking blocks the thread.

mod crew;
mod home;
mod park;
mod scheduler;
mod stacks;

pub(crate) use crew::Crew;
pub(crate) use home::{Bell, Home};
pub(crate) use park::{Waker, in_task, park, waker, yield_now};
pub(crate) use scheduler::Scheduler;
