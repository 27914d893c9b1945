//! Recorded requests once more, on whatever device: at their recorded times, or as fast as they go.

use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain_device::{Channel, ChannelOptions, Completion, Device, Nanos, Op, Request};
use hdrhistogram::Histogram;

use super::memory::Scratch;
use crate::Error;

/// How long the replay waits for the time of the next request before it looks at the interrupt flag.
const LOOK: Nanos = Nanos(50_000_000);

/// A request of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// When it was issued, since the first one.
    pub at: Nanos,
    /// The operation.
    pub op: Op,
    /// Where it begins on the device.
    pub offset_bytes: u64,
    /// How long it is.
    pub length_bytes: u32,
}

/// When requests are issued.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Open loop: at their times, divided by `speed`. Latency counts from then on, so that late requests
    /// cannot make a slow device look fast.
    AsRecorded {
        /// How many times as fast as recorded.
        speed: f64,
    },
    /// Closed loop: in order, each as soon as there is room. A flush waits for all before it.
    AsFastAsItGoes,
}

/// A replay.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    /// In the order of their times.
    pub requests: &'a [Recorded],
    /// When they are issued.
    pub pace: Pace,
    /// The most requests in flight.
    pub depth: u32,
    /// Seed of the bytes that are written.
    pub seed: u64,
}

/// Results of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// From the first request to the last completion.
    pub elapsed: Nanos,
    /// Latencies of reads, writes and flushes, in nanoseconds.
    pub latency_ns: [Histogram<u64>; 3],
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// Requests that were issued late, because as many as may were in flight.
    pub late: u64,
    /// Whether it was ended by the interrupt flag.
    pub interrupted: bool,
}

/// A request in flight.
#[derive(Clone, Copy)]
struct InFlight {
    request: Recorded,
    since: Nanos,
}

struct Run {
    channel: Box<dyn Channel>,
    scratch: Scratch,
    slots: Vec<Option<InFlight>>,
    free: Vec<usize>,
    completions: Vec<Completion>,
    replayed: Replayed,
}

/// Issues recorded requests to a device.
///
/// # Errors
/// [`Error::Device`] if the device refuses or fails a request.
pub fn replay(device: &dyn Device, replay: &Replay<'_>, interrupt: &AtomicBool) -> Result<Replayed, Error> {
    let longest =
        replay.requests.iter().map(|request| u64::from(request.length_bytes)).max().unwrap_or(1).max(1);
    let scratch = Scratch::new(longest, replay.depth, true, replay.seed)?;
    let options = ChannelOptions { depth: replay.depth, arena: Some(scratch.arena()), polled: false };
    let depth = replay.depth as usize;
    let mut run = Run {
        channel: device.open_channel(&options)?,
        scratch,
        slots: vec![None; depth],
        free: (0..depth).collect(),
        completions: Vec::with_capacity(depth),
        replayed: Replayed {
            elapsed: Nanos::default(),
            latency_ns: std::array::from_fn(|_| super::tally::histogram()),
            bytes: [0; 2],
            late: 0,
            interrupted: false,
        },
    };
    let start = run.channel.now();
    for request in replay.requests {
        if interrupt.load(Ordering::Relaxed) {
            run.replayed.interrupted = true;
            break;
        }
        let since = match replay.pace {
            Pace::AsRecorded { speed } => {
                let due = start + Nanos((request.at.0 as f64 / speed) as u64);
                run.wait_until(due, interrupt)?;
                if interrupt.load(Ordering::Relaxed) {
                    run.replayed.interrupted = true;
                    break;
                }
                Some(due)
            }
            Pace::AsFastAsItGoes => {
                if request.op == Op::Flush {
                    run.drain()?;
                }
                None
            }
        };
        run.issue(*request, since)?;
        if replay.pace == Pace::AsFastAsItGoes && request.op == Op::Flush {
            run.drain()?;
        }
    }
    run.drain()?;
    run.replayed.elapsed = run.channel.now().since(start);
    Ok(run.replayed)
}

impl Run {
    /// Takes completions until `due`, or until an end is wanted.
    fn wait_until(&mut self, due: Nanos, interrupt: &AtomicBool) -> Result<(), Error> {
        loop {
            let now = self.channel.now();
            if now >= due || interrupt.load(Ordering::Relaxed) {
                return Ok(());
            }
            let until = due.min(now + LOOK);
            // More completions than there can be: only the time ends the wait.
            let at_least = self.completions.capacity() + 1;
            self.channel.wait(at_least, Some(until), &mut self.completions)?;
            self.take()?;
        }
    }

    fn issue(&mut self, request: Recorded, since: Option<Nanos>) -> Result<(), Error> {
        if self.free.is_empty() && since.is_some() {
            self.replayed.late += 1;
        }
        while self.free.is_empty() {
            self.channel.wait(1, None, &mut self.completions)?;
            self.take()?;
        }
        let Some(slot) = self.free.pop() else { return Ok(()) };
        let since = since.unwrap_or_else(|| self.channel.now());
        let memory = if request.op.moves_data() { self.scratch.of(slot) } else { std::ptr::null_mut() };
        let submitted = Request {
            op: request.op,
            offset_bytes: request.offset_bytes,
            length_bytes: request.length_bytes,
            memory,
            tag: slot as u64,
        };
        // SAFETY: scratch memory is as long as the longest request, outlives the channel, and no code reads
        // or writes it.
        unsafe { self.channel.submit(submitted) }?;
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(InFlight { request, since });
        }
        self.channel.poll(&mut self.completions)?;
        self.take()
    }

    fn drain(&mut self) -> Result<(), Error> {
        while self.channel.in_flight() > 0 {
            self.channel.wait(1, None, &mut self.completions)?;
            self.take()?;
        }
        Ok(())
    }

    /// Counts the completions that have come.
    fn take(&mut self) -> Result<(), Error> {
        for completion in self.completions.drain(..) {
            let slot = completion.tag as usize;
            let Some(done) = self.slots.get_mut(slot).and_then(Option::take) else { continue };
            self.free.push(slot);
            let Recorded { op, offset_bytes, length_bytes, .. } = done.request;
            completion.result.map_err(|errno| Error::request(op, offset_bytes, errno))?;
            let kind = match op {
                Op::Read => 0,
                Op::Flush => 2,
                _ => 1,
            };
            let latency = completion.completed.since(done.since).0;
            if let Some(histogram) = self.replayed.latency_ns.get_mut(kind) {
                histogram.saturating_record(latency);
            }
            if let Some(bytes) = self.replayed.bytes.get_mut(kind).filter(|_| op.moves_data()) {
                *bytes += u64::from(length_bytes);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use flashgrain_device::{FileDevice, OpenOptions};

    use super::*;

    #[test]
    fn an_interrupt_between_requests_issues_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().to_path_buf()];
        let device = FileDevice::scratch(&paths, 1 << 20, &OpenOptions::default()).unwrap();
        let read = |at| Recorded { at, op: Op::Read, offset_bytes: 0, length_bytes: 4096 };
        let requests = [read(Nanos(0)), read(Nanos(3_600_000_000_000))];
        let replay = Replay { requests: &requests, pace: Pace::AsRecorded { speed: 1.0 }, depth: 4, seed: 1 };
        let interrupt = AtomicBool::new(false);
        let replayed = thread::scope(|scope| {
            scope.spawn(|| {
                thread::park_timeout(std::time::Duration::from_millis(50));
                interrupt.store(true, Ordering::Relaxed);
            });
            super::replay(&device, &replay, &interrupt).unwrap()
        });
        assert!(replayed.interrupted);
        let [reads, ..] = &replayed.latency_ns;
        assert!(reads.len() <= 1, "{} reads were counted", reads.len());
    }
}
