//! Locks of keys, held from a commit's validation until it is applied.
//!
//! A key's lock is one of a fixed number of stripes. Stripes are taken in ascending order, so there are no
//! deadlocks. A caller that has to wait parks. The holder may be waiting for a page to be read, but never for
//! a device's flush.

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, PoisonError};

use super::commit_table::KeyHash;
use crate::task::{Waker, park, waker};

/// Stripes; a power of two. With 64 commits under way, one commit in about a hundred shares a stripe with
/// another by accident.
const STRIPES: usize = 1 << 13;

/// Lists of waiters; a power of two.
const LISTS: usize = 64;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and callers may be waiting.
const AWAITED: u32 = 2;

/// See the module.
pub(crate) struct Locks {
    stripes: Box<[AtomicU32]>,
    lists: Box<[Mutex<List>]>,
}

#[derive(Default)]
struct List {
    next_ticket: u64,
    waiting: Vec<Waiting>,
}

struct Waiting {
    stripe: Stripe,
    ticket: u64,
    waker: Waker,
}

/// The lock of a key, and of some others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stripe(u32);

/// Stripes that are held until this is dropped.
pub(crate) struct Held<'a> {
    locks: &'a Locks,
    stripes: Stripes,
}

enum Stripes {
    One(Stripe),
    Many(Vec<Stripe>),
    Keys,
    All,
}

impl Stripe {
    /// The lock of the collector of old versions, which also removes the tombstones that led to them. No key
    /// has it.
    pub const COLLECTING: Self = Self(STRIPES as u32);

    /// The one of a key.
    pub fn of(key: KeyHash) -> Self {
        Self(key.first_bits(STRIPES.trailing_zeros()))
    }
}

#[cfg(test)]
impl Stripe {
    /// One of them.
    pub fn nth(number: u32) -> Self {
        Self(number)
    }
}

impl Locks {
    pub fn new() -> Self {
        Self {
            stripes: (0..=STRIPES).map(|_| AtomicU32::new(FREE)).collect(),
            lists: (0..LISTS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Takes one; parks while others have it.
    pub fn lock(&self, stripe: Stripe) -> Held<'_> {
        self.take(stripe);
        Held { locks: self, stripes: Stripes::One(stripe) }
    }

    /// Takes all of these.
    pub fn lock_many(&self, mut stripes: Vec<Stripe>) -> Held<'_> {
        stripes.sort_unstable();
        stripes.dedup();
        if stripes.len() > 1 && planted!(OnlyFirstKeyLocked) {
            stripes.truncate(1);
        }
        stripes.iter().for_each(|stripe| self.take(*stripe));
        Held { locks: self, stripes: Stripes::Many(stripes) }
    }

    /// Takes the locks of all keys.
    pub fn lock_keys(&self) -> Held<'_> {
        (0..STRIPES as u32).for_each(|stripe| self.take(Stripe(stripe)));
        Held { locks: self, stripes: Stripes::Keys }
    }

    /// Takes all locks.
    pub fn lock_all(&self) -> Held<'_> {
        (0..=STRIPES as u32).for_each(|stripe| self.take(Stripe(stripe)));
        Held { locks: self, stripes: Stripes::All }
    }

    fn state(&self, stripe: Stripe) -> &AtomicU32 {
        &self.stripes[stripe.0 as usize]
    }

    fn list(&self, stripe: Stripe) -> &Mutex<List> {
        &self.lists[stripe.0 as usize % LISTS]
    }

    fn take(&self, stripe: Stripe) {
        let state = self.state(stripe);
        if state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.take_or_wait(stripe);
        }
    }

    #[cold]
    fn take_or_wait(&self, stripe: Stripe) {
        let mut own = None;
        loop {
            let mut list = self.list(stripe).lock().unwrap_or_else(PoisonError::into_inner);
            // After a spurious wake-up the earlier entry is still in the list, and must not be woken in place
            // of another one.
            if let Some(ticket) = own {
                list.waiting.retain(|waiting| waiting.ticket != ticket);
            }
            if self.state(stripe).swap(AWAITED, Ordering::Acquire) == FREE {
                return;
            }
            list.next_ticket += 1;
            own = Some(list.next_ticket);
            let ticket = list.next_ticket;
            list.waiting.push(Waiting { stripe, ticket, waker: waker() });
            drop(list);
            park();
        }
    }

    fn give_back(&self, stripe: Stripe) {
        if self.state(stripe).swap(FREE, Ordering::Release) == AWAITED {
            let mut list = self.list(stripe).lock().unwrap_or_else(PoisonError::into_inner);
            let first = list.waiting.iter().position(|waiting| waiting.stripe == stripe);
            let first = first.map(|index| list.waiting.remove(index));
            drop(list);
            if let Some(first) = first {
                first.waker.wake();
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        match &self.stripes {
            Stripes::One(stripe) => self.locks.give_back(*stripe),
            Stripes::Many(stripes) => stripes.iter().for_each(|stripe| self.locks.give_back(*stripe)),
            Stripes::Keys => (0..STRIPES as u32).for_each(|stripe| self.locks.give_back(Stripe(stripe))),
            Stripes::All => (0..=STRIPES as u32).for_each(|stripe| self.locks.give_back(Stripe(stripe))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::index::TreeId;

    /// Threads that take overlapping sets: none is in a set that another one has, and all get through.
    #[test]
    fn whoever_has_a_lock_has_it_alone() {
        let locks = Locks::new();
        let holders: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let (locks, holders) = (&locks, &holders);
                scope.spawn(move || {
                    for round in 0..3000_usize {
                        let wanted = [(thread + round) % 4, (thread * round) % 4];
                        let _held = match round % 16 {
                            0 => locks.lock_all(),
                            _ => locks.lock_many(wanted.map(|stripe| Stripe(stripe as u32)).to_vec()),
                        };
                        for stripe in wanted {
                            holders[stripe].store(thread as u64, Ordering::Relaxed);
                        }
                        std::thread::yield_now();
                        for stripe in wanted {
                            assert_eq!(holders[stripe].load(Ordering::Relaxed), thread as u64);
                        }
                    }
                });
            }
        });
    }

    /// One of the two changes the counter that the other one looks at twice.
    #[test]
    fn who_has_all_locks_keeps_out_who_gives_old_versions_up() {
        let (locks, given_up) = (Locks::new(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let collector = scope.spawn(|| {
                for _ in 0..3000 {
                    let _held = locks.lock(Stripe::COLLECTING);
                    given_up.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                    given_up.fetch_add(1, Ordering::Relaxed);
                }
            });
            while !collector.is_finished() {
                let _held = locks.lock_all();
                let before = given_up.load(Ordering::Relaxed);
                std::thread::yield_now();
                assert_eq!((before % 2, given_up.load(Ordering::Relaxed)), (0, before));
            }
        });
    }

    #[test]
    fn stripes_are_even() {
        let mut counts = vec![0; STRIPES];
        for number in 0..16 * STRIPES as u64 {
            counts[Stripe::of(KeyHash::of(TreeId(1), &number.to_be_bytes())).0 as usize] += 1;
        }
        let most = counts.iter().max().unwrap();
        assert!(*most < 48, "{most} where 16 are even");
    }
}
