//! A drive that records its requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_device::{
    Channel, ChannelOptions, Completion, Device, Error, Geometry, Identity, Nanos, Op, Request, Simulation,
};

use super::tape::{Event, Tape, Write};

/// Another device, and a tape of the requests that change it.
pub struct Recorder {
    device: Arc<dyn Device>,
    geometry: Geometry,
    capacity_bytes: AtomicU64,
    tape: Tape,
    numbers: Arc<AtomicU64>,
}

impl Recorder {
    /// Records on `tape` the requests to `device`, which has only the first `capacity_bytes` until it grows.
    pub fn new(device: Arc<dyn Device>, capacity_bytes: u64, tape: Tape) -> Self {
        let geometry = Geometry { capacity_bytes, ..device.geometry().clone() };
        let capacity_bytes = AtomicU64::new(capacity_bytes);
        Self { device, geometry, capacity_bytes, tape, numbers: Arc::default() }
    }
}

impl Device for Recorder {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn identity(&self) -> &Identity {
        self.device.identity()
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        Ok(Box::new(RecordingChannel {
            channel: self.device.open_channel(options)?,
            tape: self.tape.clone(),
            numbers: Arc::clone(&self.numbers),
            asked: HashMap::new(),
        }))
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed)
    }

    fn grow(&self, capacity_bytes: u64) -> Result<(), Error> {
        if capacity_bytes > self.device.capacity_bytes() {
            let source = std::io::ErrorKind::StorageFull.into();
            return Err(Error::Os { doing: "make the drive larger".into(), source });
        }
        if self.capacity_bytes.fetch_max(capacity_bytes, Ordering::Relaxed) < capacity_bytes {
            self.tape.note(Event::Grown(capacity_bytes));
        }
        Ok(())
    }

    fn shrinks(&self) -> bool {
        true
    }

    fn shrink(&self, capacity_bytes: u64) -> Result<(), Error> {
        if self.capacity_bytes.fetch_min(capacity_bytes, Ordering::Relaxed) > capacity_bytes {
            self.tape.note(Event::Shrunk(capacity_bytes));
        }
        Ok(())
    }

    fn simulation(&self) -> Option<&dyn Simulation> {
        self.device.simulation()
    }
}

struct RecordingChannel {
    channel: Box<dyn Channel>,
    tape: Tape,
    numbers: Arc<AtomicU64>,
    /// By tag: the number of the request on the tape. Tags are unique among the requests in flight.
    asked: HashMap<u64, u64>,
}

impl RecordingChannel {
    fn note_answers(&mut self, answers: &[Completion]) {
        for answer in answers {
            if let Some(number) = self.asked.remove(&answer.tag) {
                self.tape.note(Event::Answered { number, done: answer.result.is_ok() });
            }
        }
    }
}

impl Channel for RecordingChannel {
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error> {
        // SAFETY: passed on from the caller.
        unsafe { self.channel.submit(request) }?;
        if request.op == Op::Read {
            return Ok(());
        }
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.asked.insert(request.tag, number);
        let length = request.length_bytes as usize;
        let bytes: Arc<[u8]> = match request.op {
            Op::Flush => {
                self.tape.note(Event::Flush(number));
                return Ok(());
            }
            Op::Discard => vec![0; length].into(),
            // SAFETY: the caller keeps the memory valid and unchanged until the write is answered, and it was
            // only just submitted.
            _ => unsafe { std::slice::from_raw_parts(request.memory, length) }.into(),
        };
        self.tape.note(Event::Written(
            number,
            Write { offset_bytes: request.offset_bytes, bytes, op: request.op },
        ));
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error> {
        let before = completions.len();
        let count = self.channel.poll(completions)?;
        self.note_answers(&completions[before..]);
        Ok(count)
    }

    fn wait(
        &mut self,
        at_least: usize,
        until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error> {
        let before = completions.len();
        let count = self.channel.wait(at_least, until, completions)?;
        self.note_answers(&completions[before..]);
        Ok(count)
    }

    fn now(&self) -> Nanos {
        self.channel.now()
    }

    fn in_flight(&self) -> usize {
        self.channel.in_flight()
    }

    fn depth(&self) -> usize {
        self.channel.depth()
    }
}
