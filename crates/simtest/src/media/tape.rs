//! Events on a drive, in order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashgrain_device::Op;

/// A write or a discard, as it was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// First byte.
    pub offset_bytes: u64,
    /// Content of the range afterwards; zeros for a discard.
    pub bytes: Arc<[u8]>,
    /// [`Op::Write`], [`Op::WriteDsync`], [`Op::WriteThenFlush`] or [`Op::Discard`].
    pub op: Op,
}

/// One thing that happened. Requests are numbered in the order of their submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A write or discard was handed to the drive.
    Written(u64, Write),
    /// A flush was.
    Flush(u64),
    /// The drive answered a write, discard or flush.
    Answered {
        /// Number of the request.
        number: u64,
        /// Whether it was done.
        done: bool,
    },
    /// The drive was made so large, which is not durable before a flush.
    Grown(u64),
    /// The drive was made so short, which is not durable before a flush either.
    Shrunk(u64),
    /// The store was made: from now on it can be opened.
    Created,
    /// A commit got its number.
    Given(u64),
    /// Everything up to this commit was acknowledged as durable.
    Acknowledged(u64),
}

/// The events so far. A clone is the same tape.
#[derive(Clone, Debug, Default)]
pub struct Tape(Arc<Mutex<Vec<Event>>>);

impl Tape {
    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event.
    pub fn note(&self, event: Event) {
        self.events().push(event);
    }

    /// How much is on it.
    pub fn length(&self) -> usize {
        self.events().len()
    }

    /// Takes all events off the tape.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events())
    }
}
