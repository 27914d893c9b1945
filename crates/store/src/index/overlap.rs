//! Operations on many keys whose page faults overlap.

use std::collections::VecDeque;
use std::task::Poll;

use crate::Error;

/// Keys of one caller whose nodes are loaded at the same time: enough to keep most drives busy.
const BROUGHT_AT_A_TIME: usize = 64;

/// Whether a function may wait for pages that are not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    Wait,
    NotWait,
}

/// Calls `act` with every item and its position. If `act` would have to wait, it starts loading the pages
/// that it needs and returns `false`; it is called for that item again later, and may wait then.
///
/// # Errors
/// The first of `act`.
pub(crate) fn each_brought<'a, T>(
    items: &'a [T],
    mut act: impl FnMut(usize, &'a T, May) -> Result<bool, Error>,
) -> Result<(), Error> {
    if let [only] = items {
        return act(0, only, May::Wait).map(drop);
    }
    let mut next = items.iter().enumerate();
    let mut missed = VecDeque::new();
    loop {
        while missed.len() < BROUGHT_AT_A_TIME
            && let Some((place, item)) = next.next()
        {
            if !act(place, item, May::NotWait)? {
                missed.push_back((place, item));
            }
        }
        let Some((place, item)) = missed.pop_front() else { return Ok(()) };
        act(place, item, May::Wait)?;
    }
}

/// Calls `look`, which may wait, until it is ready.
///
/// # Errors
/// Those of `look`.
#[inline]
pub(crate) fn waiting<T>(mut look: impl FnMut(May) -> Result<Poll<T>, Error>) -> Result<T, Error> {
    loop {
        if let Poll::Ready(found) = look(May::Wait)? {
            return Ok(found);
        }
    }
}
