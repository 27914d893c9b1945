//! The plan of failing requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_device::Error;

/// `EIO`.
pub(super) const ERROR: i32 = 5;

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is answered with an error, and so are no others.
    Once,
    /// It and all later ones are.
    ForEver,
    /// It is not even taken.
    Refused,
    /// The request is taken and done, but the next poll or wait reports first that the queue as a whole has
    /// failed.
    Queue,
    /// The request is taken and done, but its completion only comes with a wait, and that wait reports first
    /// that the queue as a whole has failed. For threads: in virtual time, no wait is needed for requests
    /// that are done at once.
    Sleep,
    /// No request fails, but something inside of the store does.
    Inside,
}

impl Way {
    /// All of requests, in virtual time.
    pub const ALL: [Self; 4] = [Self::Once, Self::ForEver, Self::Refused, Self::Queue];

    /// For people: a request that ..
    pub fn what(self) -> &'static str {
        match self {
            Self::Once => "failed",
            Self::ForEver => "and all later ones failed",
            Self::Refused => "was refused",
            Self::Queue => "was done, and its queue failed",
            Self::Sleep => "was done, and its queue failed the waiters",
            Self::Inside => "was not to fail",
        }
    }
}

/// Counts the requests of all disks that have it, for channels and to grow among them, and says which fail.
#[derive(Debug)]
pub struct FailPlan {
    asked: AtomicU64,
    first: u64,
    way: Way,
}

impl FailPlan {
    /// The `nth` request fails, counted from 1.
    pub fn new(nth: u64, way: Way) -> Arc<Self> {
        Arc::new(Self { asked: AtomicU64::new(0), first: nth, way })
    }

    /// None fails.
    pub fn none() -> Arc<Self> {
        Self::new(u64::MAX, Way::Once)
    }

    /// No request fails, but something inside of the store does.
    pub fn inside() -> Arc<Self> {
        Self::new(u64::MAX, Way::Inside)
    }

    /// Requests so far.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// How the one fails.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Whether all requests are done in the end, so that no caller may notice the failure.
    pub fn is_harmless(&self) -> bool {
        match self.way {
            Way::Inside => false,
            Way::Queue | Way::Sleep => true,
            Way::Once | Way::ForEver | Way::Refused => self.asked() < self.first,
        }
    }

    /// How the request that comes now fails, if it does.
    pub(super) fn next(&self) -> Option<Way> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let fails = number == self.first || number > self.first && self.way == Way::ForEver;
        fails.then_some(self.way)
    }

    /// The same for calls that have no completion.
    pub(super) fn check(&self, doing: &str) -> Result<(), Error> {
        match self.next() {
            None | Some(Way::Queue | Way::Sleep | Way::Inside) => Ok(()),
            Some(_) => Err(refused(doing)),
        }
    }
}

pub(super) fn refused(doing: &str) -> Error {
    Error::Os { doing: doing.into(), source: std::io::Error::from_raw_os_error(ERROR) }
}
