//! A device in memory that records what reaches it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use flashgrain_device::{
    Channel, ChannelOptions, Completion, Device, Error, Geometry, Identity, Nanos, Op, Request,
};

use crate::tape::Event;

/// Bytes and the tape.
#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    tape: Vec<Event>,
}

/// See the module.
pub struct Recorded {
    geometry: Geometry,
    identity: Identity,
    state: Arc<Mutex<State>>,
}

impl Recorded {
    /// A device with these bytes, striped over so many members.
    pub fn new(bytes: Vec<u8>, members: u32) -> Arc<Self> {
        let geometry = Geometry {
            capacity_bytes: bytes.len() as u64,
            offset_align_bytes: 512,
            memory_align_bytes: 1,
            preferred_max_transfer_bytes: 1 << 20,
            direct: true,
            writable: true,
            members,
            stripe_unit_bytes: (members > 1).then_some(64 << 10),
        };
        let identity = Identity { target: "recorded".into(), kind: "memory".into(), ..Identity::default() };
        Arc::new(Self { geometry, identity, state: Arc::new(Mutex::new(State { bytes, tape: Vec::new() })) })
    }

    /// Forgets the tape, and gives the bytes as they are.
    pub fn rewind(&self) -> Vec<u8> {
        let mut state = self.state.lock().unwrap();
        state.tape.clear();
        state.bytes.clone()
    }

    /// What was recorded so far.
    pub fn tape(&self) -> Vec<Event> {
        self.state.lock().unwrap().tape.clone()
    }

    /// Notes something of the program's.
    pub fn note(&self, event: Event) {
        self.state.lock().unwrap().tape.push(event);
    }
}

impl Device for Recorded {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        let depth = options.depth as usize;
        Ok(Box::new(RecordingChannel { state: Arc::clone(&self.state), answers: VecDeque::new(), depth }))
    }
}

struct RecordingChannel {
    state: Arc<Mutex<State>>,
    answers: VecDeque<Completion>,
    depth: usize,
}

impl Channel for RecordingChannel {
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap();
        let (at, length) = (request.offset_bytes as usize, request.length_bytes as usize);
        match request.op {
            Op::Read => {
                // SAFETY: as the caller promises.
                let memory = unsafe { std::slice::from_raw_parts_mut(request.memory, length) };
                memory.copy_from_slice(&state.bytes[at..at + length]);
            }
            Op::Write => {
                // SAFETY: as the caller promises.
                let memory = unsafe { std::slice::from_raw_parts(request.memory, length) };
                state.bytes[at..at + length].copy_from_slice(memory);
                state.tape.push(Event::Write(0, request.offset_bytes, memory.to_vec()));
            }
            Op::Flush => state.tape.push(Event::Sync(0)),
            other => panic!("volumes send no {other:?}"),
        }
        self.answers.push_back(Completion {
            tag: request.tag,
            result: Ok(()),
            submitted: Nanos(0),
            completed: Nanos(0),
        });
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error> {
        let count = self.answers.len();
        completions.extend(self.answers.drain(..));
        Ok(count)
    }

    fn wait(
        &mut self,
        _at_least: usize,
        _until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error> {
        self.poll(completions)
    }

    fn now(&self) -> Nanos {
        Nanos(0)
    }

    fn in_flight(&self) -> usize {
        self.answers.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
