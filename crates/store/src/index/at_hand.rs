//! Doing something for many keys while what is not in memory is being loaded for all of them.

use std::collections::VecDeque;
use std::task::Poll;

use crate::Error;

/// Keys whose nodes are loaded at a time for one caller: enough for most drives to be busy.
const BROUGHT_AT_A_TIME: usize = 64;

/// Whether something may wait for what is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    Wait,
    NotWait,
}

/// Has `act` do something for every item, whose place it gets, too. If that cannot be done without waiting,
/// `act` has what it takes loaded and says `false`, and is asked again later, when it may wait.
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

/// What `look` finds if it may wait.
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
