//! Block requests, out of the kernel's trace events.
//!
//! 1. Each processor has a ring buffer of its own. Events of all processors are put in order by their times;
//!    events that are younger than the round of reading wait for the next one.
//! 2. An event is decoded by the layout that the kernel tells ([`event`]).
//! 3. Requests are written in the order of their issue, with the time until their completion. A request whose
//!    completion does not come holds up the others only until [`WAITING_MAX`] wait.

mod event;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain_device::{Nanos, clock};
use flashgrain_trace::{Address, Layer, Loss, NameId, Operation, Request};

use crate::Error;
use crate::drives::Drive;
use crate::sink::{Inside, Sink};
use crate::tracefs::{Instance, Rings};
use event::{Event, Layouts, Said};

const EVENTS: [&str; 2] = ["block/block_rq_issue", "block/block_rq_complete"];

/// The most requests that wait for their completion or for that of one before them.
const WAITING_MAX: usize = 100_000;

/// How long the recorder sleeps between two rounds of reading.
const NAP: Nanos = Nanos(20_000_000);

/// How far the clocks of processors may be apart.
const SKEW: Nanos = Nanos(1_000_000);

const SECTOR_BYTES: u64 = 512;

/// The kernel's events of block requests, being recorded.
pub struct Blocks {
    rings: Rings,
    instance: Instance,
    layouts: Layouts,
    /// Events that were read and not taken, with their times.
    held: Vec<(u64, Said)>,
    waiting: Waiting,
}

/// Requests in the order of their issue.
#[derive(Default)]
struct Waiting {
    queue: VecDeque<(Key, Request, bool)>,
    /// The number of the first one of the queue, counted from the begin of the recording.
    first: u64,
    /// The number of the request under way at a place.
    under_way: HashMap<Key, u64>,
    names: HashMap<Drive, NameId>,
    /// The begin of the recording, which its times are relative to.
    begin: Nanos,
}

type Key = (Drive, u64, Operation);

/// The place of a request while it is under way. Of flushes a drive has one at a time, whose sector changes.
fn key(event: &Event) -> Key {
    let sector = if event.operation == Operation::Flush { 0 } else { event.sector };
    (event.drive, sector, event.operation)
}

/// How many reads and writes have been completed, by drive.
pub type Completed = HashMap<Drive, [u64; 2]>;

impl Blocks {
    /// Begins to record the requests of a drive, or of all.
    pub fn begin(drive: Option<Drive>) -> Result<Self, Error> {
        Self::opened(drive).map_err(|problem| Error::Blocks { problem })
    }

    fn opened(drive: Option<Drive>) -> Result<Self, String> {
        let instance = Instance::new("blocks")?;
        let filter = drive.map(|drive| format!("dev == {}", drive.kernel_number()));
        for event in EVENTS {
            instance.enable(event, filter.as_deref())?;
        }
        let [issue, complete] = EVENTS.map(|event| instance.format(event));
        let layouts = Layouts::of(&issue?, &complete?)
            .ok_or("this kernel's events of block requests have other fields than those that are known")?;
        let rings = Rings::of(&instance)?;
        Ok(Self { rings, instance, layouts, held: Vec::new(), waiting: Waiting::default() })
    }

    /// Writes events to `sink` until `is_over`, and then all that were recorded before.
    pub fn run(mut self, sink: &Sink, begin: Nanos, is_over: &AtomicBool) -> Result<Completed, Error> {
        self.waiting.begin = begin;
        let mut completed = Completed::new();
        loop {
            let is_last = is_over.load(Ordering::Relaxed);
            if is_last {
                self.instance.stop().map_err(|problem| Error::Blocks { problem })?;
            }
            let now = clock::now();
            let losses = self.rings.read(if is_last { u64::MAX } else { now.0 }, |time, event| {
                self.held.extend(self.layouts.said(event).map(|said| (time, said)));
            })?;
            self.held.sort_by_key(|(time, _)| *time);
            let old = if is_last {
                self.held.len()
            } else {
                let until = now.0.saturating_sub(SKEW.0);
                self.held.partition_point(|(time, _)| *time < until)
            };
            sink.with(|inside| {
                inside.lose(Loss::Overrun, losses);
                for (time_ns, said) in self.held.drain(..old) {
                    self.waiting.take(time_ns, said, inside, &mut completed);
                }
                self.waiting.write_finished(inside);
                if is_last {
                    self.waiting.write_all(inside);
                }
            });
            if is_last {
                return Ok(completed);
            }
            clock::sleep_until(now + NAP);
        }
    }
}

impl Waiting {
    fn take(&mut self, time_ns: u64, said: Said, sink: &mut Inside, completed: &mut Completed) {
        match said {
            Said::Issue(event) => self.issue(time_ns, event, sink),
            Said::Complete(event) => self.complete(time_ns, event, completed),
        }
    }

    fn issue(&mut self, time_ns: u64, event: Event, sink: &mut Inside) {
        let Event { drive, operation, sector, sectors, .. } = event;
        let key = key(&event);
        if self.under_way.contains_key(&key) {
            // It was handed back to the queue and is issued again.
            return;
        }
        let name = *self.names.entry(drive).or_insert_with(|| sink.names.id(&drive.to_string()));
        let is_flush = operation == Operation::Flush;
        let offset = if is_flush { 0 } else { sector.saturating_mul(SECTOR_BYTES) };
        let request = Request {
            time_ns: time_ns.saturating_sub(self.begin.0),
            layer: Layer::Drive,
            operation,
            on_device: Some(Address { name, offset_bytes: offset }),
            in_file: None,
            length_bytes: sectors.saturating_mul(SECTOR_BYTES),
            process: Some(event.process),
            latency_ns: None,
        };
        self.under_way.insert(key, self.first + self.queue.len() as u64);
        self.queue.push_back((key, request, false));
    }

    fn complete(&mut self, time_ns: u64, event: Event, completed: &mut Completed) {
        let counts = completed.entry(event.drive).or_default();
        match event.operation {
            Operation::Read => counts[0] += 1,
            Operation::Write => counts[1] += 1,
            Operation::Flush | Operation::Discard => {}
        }
        let Some(number) = self.under_way.remove(&key(&event)) else {
            return;
        };
        let index = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        if let Some((_, request, is_done)) = self.queue.get_mut(index) {
            let issued_ns = self.begin.0.saturating_add(request.time_ns);
            request.latency_ns = Some(time_ns.saturating_sub(issued_ns));
            *is_done = true;
        }
    }

    fn write_finished(&mut self, sink: &mut Inside) {
        while self.queue.front().is_some_and(|(.., is_done)| *is_done) || self.queue.len() > WAITING_MAX {
            self.write_first(sink);
        }
    }

    fn write_all(&mut self, sink: &mut Inside) {
        while !self.queue.is_empty() {
            self.write_first(sink);
        }
    }

    fn write_first(&mut self, sink: &mut Inside) {
        let Some((key, request, is_done)) = self.queue.pop_front() else { return };
        if !is_done {
            self.under_way.remove(&key);
            sink.lose(Loss::Incomplete, 1);
        }
        self.first += 1;
        sink.request(&request);
    }
}
