//! What threads share: the standard library's. In unit tests a [schedule](explored) can decide after which
//! access which of them goes on.

#[cfg(test)]
pub(crate) mod explored;

#[cfg(test)]
pub(crate) use explored::{atomic, hint, per_thread, prelude::*, thread};
/// Threads beyond this number share what others have for themselves.
pub(crate) const PLACES: usize = 64;

/// Another thread may go on here.
#[cfg(not(test))]
#[inline]
pub(crate) fn point() {}

#[cfg(not(test))]
pub(crate) use std::{hint, sync::*, thread, thread_local as per_thread};
