//! Mistakes that an engineer could make, planted one at a time to prove that the campaigns find them.
//!
//! Each is made at one place of the store (`planted!(Name)` there), or at two where a second line of defence would hide it, and only where it matters: a store with a bug works, until what the
//! bug leaves out is needed. A bug is planted for the calling thread alone, so that tests run side by side; it takes effect in stores whose workers run on that thread
//! ([`Simulated`](crate::Simulated)).

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    static STRIKES: Cell<u64> = const { Cell::new(0) };
}

/// What should find a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finder {
    /// Recovery from what a power cut leaves, crashes in a row included.
    Crash,
    /// Requests that fail.
    Errors,
    /// Bits that flip, and writes and reads that go astray.
    Decay,
    /// Comparison with a model while nothing goes wrong at all: what transactions, snapshots and scans see, and what is there after a close.
    Model,
    /// Histories of concurrent transactions.
    Isolation,
}

macro_rules! bugs {
    ($($(#[doc = $what:literal])+ $bug:ident: $name:literal, $finder:ident;)*) => {
        /// See the module. What is wrong, and what a user would lose by it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Bug {
            $($(#[doc = $what])+ $bug,)*
        }

        impl Bug {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$bug),*];

            /// A name for reports and command lines.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)*
                }
            }

            /// What is wrong, and what a user would lose by it.
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$bug => concat!($($what),+).trim_ascii(),)*
                }
            }

            /// What should find it.
            pub fn finder(self) -> Finder {
                match self {
                    $(Self::$bug => Finder::$finder,)*
                }
            }
        }
    };
}

bugs! {
    /// The log's flush is skipped: commits are acknowledged that a power cut takes away.
    LogSkipsFlush: "log-skips-flush", Crash;
    /// A commit counts as durable when it is written: a power cut takes acknowledged commits away.
    LogAcknowledgesWritten: "log-acknowledges-written", Crash;
    /// Transactions are committed without looking whether somebody was faster: updates get lost.
    CommitSkipsValidation: "commit-skips-validation", Isolation;
    /// A commit can be seen before it is applied: a snapshot changes under who reads it.
    VisibleBeforeApplied: "visible-before-applied", Isolation;
}

impl Bug {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|bug| bug.name() == name)
    }

    /// Plants it on the calling thread, in the place of any other, until what is returned is dropped.
    pub fn plant(self) -> Planted {
        STRIKES.set(0);
        Planted { before: PLANTED.replace(Some(self)), _of_this_thread: PhantomData }
    }

    /// Whether it is planted, which is counted.
    pub(crate) fn strikes(self) -> bool {
        let strikes = PLANTED.get() == Some(self);
        if strikes {
            STRIKES.set(STRIKES.get() + 1);
        }
        strikes
    }
}

/// A bug that is planted, as long as this lives.
#[must_use = "the bug is gone when this is dropped"]
#[derive(Debug)]
pub struct Planted {
    before: Option<Bug>,
    _of_this_thread: PhantomData<*const ()>,
}

impl Planted {
    /// How often it has taken effect so far.
    pub fn strikes(&self) -> u64 {
        STRIKES.get()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_bug_is_planted_on_one_thread_for_a_while() {
        let [one, other] = [Bug::LogSkipsFlush, Bug::LogAcknowledgesWritten];
        assert!(!one.strikes());
        let planted = one.plant();
        assert!(one.strikes() && !other.strikes() && planted.strikes() == 1);
        assert!(!std::thread::spawn(move || one.strikes()).join().unwrap());
        drop(planted);
        assert!(!one.strikes());
    }

    #[test]
    fn names_are_different_and_lead_back() {
        let names: HashSet<_> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        assert_eq!(names.len(), Bug::ALL.len());
        assert!(Bug::ALL.iter().all(|bug| Bug::named(bug.name()) == Some(*bug) && bug.what().len() > 20));
        assert_eq!(Bug::named("none"), None);
    }
}
