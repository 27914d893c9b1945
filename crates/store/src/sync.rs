//! Atomics, locks and threads of the standard library. In unit tests stand-ins replace them, under which a
//! [schedule](explored) decides after each access which thread goes on.

#[cfg(test)]
pub(crate) mod explored;

#[cfg(test)]
pub(crate) use explored::{atomic, hint, per_thread, prelude::*, thread};
/// Threads beyond this number share places; each of the others has its own.
pub(crate) const PLACES: usize = 64;

/// Another thread may be scheduled here.
#[cfg(not(test))]
#[inline]
pub(crate) fn point() {}

#[cfg(not(test))]
pub(crate) use std::{hint, sync::*, thread, thread_local as per_thread};
