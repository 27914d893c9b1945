//! One thread that makes commits durable for all groups of a store.
//!
//! Life of a request: its commit is in the store's log, in memory → it is queued → the thread takes all
//! that are queued, and has the log flushed once → each is told. Requests that are queued meanwhile wait
//! for the next flush, so that there are never more than two flushes between a request and its answer,
//! however many groups there are.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

type Flush = dyn Fn() -> Result<(), flashgrain::Error> + Send;
type Told = Box<dyn FnOnce(Result<(), io::Error>) + Send>;

/// The thread, and its queue. Dropped, it answers all that is queued and ends.
pub struct Flusher {
    /// There until the drop.
    queue: Option<Sender<Told>>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// Starts the thread; `flush` makes durable whatever is committed.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn start(flush: Box<Flush>) -> Result<Self, io::Error> {
        let (queue, requests) = channel();
        let thread =
            thread::Builder::new().name("raft-flusher".into()).spawn(move || run(&requests, &flush))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Calls `told` once all that is committed now is durable, or with the reason why it is not.
    pub fn when_durable(&self, told: impl FnOnce(Result<(), io::Error>) + Send + 'static) {
        let told: Told = Box::new(told);
        let refused = match &self.queue {
            Some(queue) => queue.send(told).err().map(|refused| refused.0),
            None => Some(told),
        };
        if let Some(told) = refused {
            told(Err(io::Error::other("the thread that flushes the log has ended")));
        }
    }
}

fn run(requests: &Receiver<Told>, flush: &Flush) {
    while let Ok(first) = requests.recv() {
        let waiting: Vec<Told> = std::iter::once(first).chain(requests.try_iter()).collect();
        let flushed = flush().map_err(Arc::new);
        for told in waiting {
            told(flushed.clone().map_err(io::Error::other));
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was printed; what was queued has been dropped with the queue.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flush that begins only when it is allowed to, and says that it has begun.
    fn gated() -> (Flusher, Receiver<()>, Sender<()>) {
        let (begun, begins) = channel();
        let (go, gate) = channel();
        let flush = move || {
            begun.send(()).unwrap();
            gate.recv().unwrap();
            Ok(())
        };
        (Flusher::start(Box::new(flush)).unwrap(), begins, go)
    }

    #[test]
    fn requests_during_a_flush_share_the_next_one() {
        let (flusher, begins, go) = gated();
        let (told, answers) = channel();
        let request = |number: usize| {
            let told = told.clone();
            flusher.when_durable(move |result| told.send((number, result.is_ok())).unwrap());
        };
        request(0);
        begins.recv().unwrap();
        (1..100).for_each(request);
        go.send(()).unwrap();
        assert_eq!(answers.recv().unwrap(), (0, true));
        begins.recv().unwrap();
        assert!(answers.try_recv().is_err(), "none of them is durable before the second flush ends");
        go.send(()).unwrap();
        let rest: Vec<_> = (1..100).map(|_| answers.recv().unwrap()).collect();
        assert_eq!(rest, (1..100).map(|number| (number, true)).collect::<Vec<_>>());
        drop(flusher);
        assert!(begins.try_recv().is_err(), "two flushes for a hundred requests");
    }

    #[test]
    fn a_failed_flush_is_told_to_all() {
        let flusher = Flusher::start(Box::new(|| Err(flashgrain::Error::Closed))).unwrap();
        let (told, answers) = channel();
        flusher.when_durable(move |result| told.send(result.unwrap_err().to_string()).unwrap());
        assert_eq!(answers.recv().unwrap(), flashgrain::Error::Closed.to_string());
    }
}
