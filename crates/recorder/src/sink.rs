//! Where the sources write to: one trace, which several threads share.

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::{Mutex, PoisonError};

use flashgrain_trace::{Loss, Losses, Names, Request, TraceWriter};

/// A trace that is being written.
pub struct Sink(Mutex<Inside>);

pub struct Inside {
    writer: TraceWriter<BufWriter<File>>,
    pub names: Names,
    losses: Losses,
    error: Option<io::Error>,
}

/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;

impl Sink {
    pub fn new(file: File) -> io::Result<Self> {
        let writer = TraceWriter::new(BufWriter::with_capacity(BUFFER_BYTES, file))?;
        let inside = Inside { writer, names: Names::default(), losses: Losses::default(), error: None };
        Ok(Self(Mutex::new(inside)))
    }

    /// Does something with the trace while no other source does.
    pub fn with<T>(&self, work: impl FnOnce(&mut Inside) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the trace. An error is the first that has occurred.
    pub fn finish(self) -> io::Result<Losses> {
        let inside = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = inside.error {
            return Err(error);
        }
        inside.writer.finish(&inside.losses)?;
        Ok(inside.losses)
    }
}

impl Inside {
    /// Writes a request, with names of this trace. An error is kept until the end: sources go on, so that no
    /// program waits for them.
    pub fn request(&mut self, request: &Request) {
        if self.error.is_none() {
            self.error = self.writer.request(request, &self.names).err();
        }
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.writer.requests()
    }

    pub fn note(&mut self, text: &str) {
        if self.error.is_none() {
            self.error = self.writer.note(text).err();
        }
    }

    pub fn lose(&mut self, loss: Loss, count: u64) {
        self.losses.add(loss, count);
    }

    pub fn lose_all(&mut self, losses: &Losses) {
        self.losses.add_all(losses);
    }

    /// Hands everything on to the file: from now on it outlives this process.
    pub fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.writer.flush().err();
        }
    }

    /// Whether the trace cannot be written any more.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }
}
