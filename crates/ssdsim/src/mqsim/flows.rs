//! Running flows side by side in one thread, so that they repeat exactly.

use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain_device::{Channel, ChannelOptions, Completion, Device, Nanos, Op, Request, thread_cpu};
use hdrhistogram::Histogram;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::SECTOR_BYTES;
use super::flow::Scenario;
use super::source::{Next, Source};
use crate::SimDevice;
use crate::error::Error;
use crate::statistics::latency_histogram;

/// Most requests in flight of flows whose requests come at times of their own; more wait before they are
/// submitted.
const OPEN_FLOW_REQUESTS_MAX: u32 = 65_536;

/// Completions between two looks at the interrupt.
const AT_ONCE: usize = 1024;

/// Results of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// By flow, in the order of the file.
    pub flows: Vec<FlowResult>,
    /// From the first request to the last completion, virtual.
    pub elapsed: Nanos,
    /// CPU time of the simulation.
    pub cpu: Nanos,
    /// Whether it was ended by the interrupt flag.
    pub interrupted: bool,
}

/// Results of a flow.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// Latencies of reads, nanoseconds.
    pub read_latency_ns: Histogram<u64>,
    /// Latencies of writes, nanoseconds.
    pub write_latency_ns: Histogram<u64>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Requests that the drive failed.
    pub failed: u64,
    /// Time from the start to its last completion.
    pub elapsed: Nanos,
}

impl FlowResult {
    fn new() -> Self {
        Self {
            read_latency_ns: latency_histogram(),
            write_latency_ns: latency_histogram(),
            bytes_read: 0,
            bytes_written: 0,
            failed: 0,
            elapsed: Nanos(0),
        }
    }

    /// Reads and writes.
    pub fn requests(&self) -> u64 {
        self.read_latency_ns.len() + self.write_latency_ns.len()
    }
}

/// A request in flight, and memory that the next one uses again.
#[derive(Debug, Default)]
struct FlowRequest {
    memory: Vec<u8>,
    flow: usize,
    length_bytes: u64,
    is_read: bool,
}

/// Runs the flows of `scenario` until all have ended or `interrupt` becomes true.
///
/// # Errors
/// [`Error::File`] and [`Error::Syntax`] for traces; [`Error::Device`] if the device refuses a request.
pub fn run(device: &SimDevice, scenario: &Scenario, interrupt: &AtomicBool) -> Result<ScenarioResult, Error> {
    let capacity = device.geometry().capacity_bytes / SECTOR_BYTES;
    let flows = scenario.flows.len().max(1) as u64;
    let sources = scenario
        .flows
        .iter()
        .zip(0..)
        .map(|(flow, index)| {
            let border = |index: u64| capacity * index / flows * SECTOR_BYTES;
            Source::new(flow, border(index)..border(index + 1))
        })
        .collect::<Result<Vec<Source>, Error>>()?;
    let closed: u32 = sources.iter().map(Source::depth).sum();
    let has_open = sources.iter().any(|source| source.depth() == 0);
    let depth = closed + if has_open { OPEN_FLOW_REQUESTS_MAX } else { 0 };
    let options = ChannelOptions { depth, arena: None, polled: false };
    let channel = device.open_channel(&options)?;
    let mut runner = Runner {
        results: sources.iter().map(|_| FlowResult::new()).collect(),
        start: channel.now(),
        channel,
        sources,
        slots: Vec::new(),
        free: Vec::new(),
        filler: Pcg64::seed_from_u64(0),
    };
    let cpu = thread_cpu();
    let interrupted = runner.run(interrupt)?;
    let elapsed = runner.results.iter().map(|result| result.elapsed).max().unwrap_or(Nanos(0));
    Ok(ScenarioResult { flows: runner.results, elapsed, cpu: thread_cpu().since(cpu), interrupted })
}

struct Runner {
    // Before the slots, so that it is dropped first: it waits for the requests that use their memory.
    channel: Box<dyn Channel>,
    sources: Vec<Source>,
    results: Vec<FlowResult>,
    slots: Vec<FlowRequest>,
    free: Vec<usize>,
    start: Nanos,
    filler: Pcg64,
}

impl Runner {
    /// Returns whether it was interrupted.
    fn run(&mut self, interrupt: &AtomicBool) -> Result<bool, Error> {
        let mut completions = Vec::with_capacity(AT_ONCE);
        for flow in 0..self.sources.len() {
            let depth = self.sources.get(flow).map_or(0, Source::depth);
            for _ in 0..depth {
                self.submit_if(flow, Next::Done)?;
            }
        }
        loop {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(true);
            }
            self.submit_arrived()?;
            let arrival = self.next_arrival();
            if self.channel.in_flight() == 0 && arrival.is_none() {
                return Ok(false);
            }
            completions.clear();
            let until = arrival.map(|at_ns| Nanos(self.start.0 + at_ns));
            self.channel.wait(1, until, &mut completions)?;
            for completion in &completions {
                self.complete(completion)?;
            }
        }
    }

    fn now_ns(&self) -> u64 {
        self.channel.now().since(self.start).0
    }

    /// The earliest arrival to come; none while the queue is full.
    fn next_arrival(&self) -> Option<u64> {
        if self.channel.in_flight() >= self.channel.depth() {
            return None;
        }
        let now_ns = self.now_ns();
        let at = |source: &Source| match source.next(now_ns) {
            Next::At(at_ns) => Some(at_ns),
            Next::Done | Next::Never => None,
        };
        self.sources.iter().filter_map(at).min()
    }

    fn submit_arrived(&mut self) -> Result<(), Error> {
        let now_ns = self.now_ns();
        for flow in 0..self.sources.len() {
            while let Some(Next::At(at_ns)) = self.sources.get(flow).map(|source| source.next(now_ns))
                && at_ns <= now_ns
                && self.channel.in_flight() < self.channel.depth()
            {
                self.submit(flow)?;
            }
        }
        Ok(())
    }

    /// Submits the flow's next request if that is due for this reason.
    fn submit_if(&mut self, flow: usize, reason: Next) -> Result<(), Error> {
        let now_ns = self.now_ns();
        if self.sources.get(flow).is_some_and(|source| source.next(now_ns) == reason) {
            self.submit(flow)?;
        }
        Ok(())
    }

    fn submit(&mut self, flow: usize) -> Result<(), Error> {
        let Some(source) = self.sources.get_mut(flow) else { return Ok(()) };
        let wanted = source.take();
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(FlowRequest::default());
            self.slots.len() - 1
        });
        let Some(slot) = self.slots.get_mut(index) else { return Ok(()) };
        let before = slot.memory.len();
        if before < wanted.length_bytes as usize {
            slot.memory.resize(wanted.length_bytes as usize, 0);
            self.filler.fill_bytes(slot.memory.get_mut(before..).unwrap_or_default());
        }
        (slot.flow, slot.length_bytes, slot.is_read) = (flow, wanted.length_bytes, wanted.is_read);
        let request = Request {
            op: if wanted.is_read { Op::Read } else { Op::Write },
            offset_bytes: wanted.offset_bytes,
            length_bytes: wanted.length_bytes as u32,
            memory: slot.memory.as_mut_ptr(),
            tag: index as u64,
        };
        // SAFETY: the memory is as long as the request, belongs to this slot alone, and is neither touched
        // nor moved (growing `slots` moves the slot, not the memory that it points to) until the completion
        // frees the slot; the channel is dropped before the slots.
        unsafe { self.channel.submit(request) }?;
        Ok(())
    }

    fn complete(&mut self, completion: &Completion) -> Result<(), Error> {
        let index = completion.tag as usize;
        let Some(slot) = self.slots.get(index) else { return Ok(()) };
        let flow = slot.flow;
        if let Some(result) = self.results.get_mut(flow) {
            result.elapsed = completion.completed.since(self.start);
            let (latency, bytes) = match slot.is_read {
                true => (&mut result.read_latency_ns, &mut result.bytes_read),
                false => (&mut result.write_latency_ns, &mut result.bytes_written),
            };
            match completion.result {
                Ok(()) => {
                    latency.saturating_record(completion.latency().0);
                    *bytes += slot.length_bytes;
                }
                Err(_) => result.failed += 1,
            }
        }
        self.free.push(index);
        self.submit_if(flow, Next::Done)
    }
}
