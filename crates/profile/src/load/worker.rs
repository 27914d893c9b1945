//! Driver thread: runs its streams over its channel.
//!
//! A closed loop goes through three phases, and each request belongs to the phase that it was asked in:
//!
//! 1. *Warm-up*, at least as many requests as there are streams: the first ones were asked at the same time,
//!    and wait less for each other.
//! 2. *Counted*. A stream's time runs from its first request of this phase to the end of its last one, so
//!    that it holds whole requests and nothing else. Bytes per stream time, times the streams, is the rate:
//!    by Wald's identity it has no bias even if a stream counts one request, whereas a window of wall time
//!    cuts requests off at both ends and says too much if many end together.
//! 3. *Cool-down*: the streams go on asking until the last counted request is done, so that it is served
//!    under the same load as the others.
//!
//! If a run is too short for that, all of it counts as fixed work, ramp and tail included: this never exceeds
//! the drive's rate.

use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain_device::{Channel, ChannelOptions, Completion, Device, Nanos, Op, Request, thread_cpu};

use super::memory::Scratch;
use super::request_source::RequestSource;
use super::tally::Tally;
use super::{Load, Measured, Stop, Sync};
use crate::Error;

/// How long an open-loop worker with nothing to do sleeps before it looks at the interrupt flag.
const NAP: Nanos = Nanos(50_000_000);

/// The most completions that are answered with new requests before these are handed to the device. Taking all
/// that are ready makes driver and device take turns: at depth 32 on a virtual disk that cost 15 % of the
/// throughput, while one at a time costs a quarter more CPU for system calls.
const ANSWERED_AT_ONCE: usize = 4;

/// A stream's outstanding request.
#[derive(Clone, Copy, Default)]
struct Stream {
    offset_bytes: u64,
    is_read: bool,
    /// Start of the latency, if it is not the submission.
    since: Option<Nanos>,
    /// The write is done, its flush is outstanding.
    flushing: bool,
    /// When it was asked.
    phase: Phase,
}

/// From a stream's first counted request to the end of its last one.
#[derive(Clone, Copy, Default)]
struct Span {
    from: Option<Nanos>,
    to: Nanos,
}

/// A worker's share of the load's bounds.
struct Bounds {
    until: Option<Nanos>,
    span: Option<Nanos>,
    bytes: u64,
    bytes_written: u64,
    requests: u64,
}

impl Bounds {
    fn new(stop: &Stop, workers: u32, start: Nanos) -> Self {
        let share = |total: Option<u64>| total.map_or(u64::MAX, |total| (total / u64::from(workers)).max(1));
        let span = stop.after_s.map(Nanos::from_seconds);
        Self {
            until: span.map(|span| start + span),
            span,
            bytes: share(stop.after_bytes),
            bytes_written: share(stop.after_bytes_written),
            requests: share(stop.after_requests),
        }
    }
}

/// Bytes and requests that have been asked of the channel so far.
#[derive(Default)]
struct Asked {
    bytes: u64,
    bytes_written: u64,
    requests: u64,
}

/// Part of a run.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    WarmUp,
    Counted,
    CoolDown,
}

pub(super) struct Worker<'a> {
    load: &'a Load,
    scratch: Scratch,
    channel: Box<dyn Channel>,
    source: RequestSource<'a>,
    streams: Vec<Stream>,
    spans: Vec<Span>,
    counted_in_flight: usize,
    counted_asked: u64,
    request_bytes: u32,
    write_op: Op,
    asked: Asked,
    tallies: [Tally; 3],
    phase: Phase,
    error: Option<Error>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(device: &dyn Device, load: &'a Load, index: u32) -> Result<Self, Error> {
        let total = load.workload.concurrency as u32;
        let (each, extra) = (total / load.workers, total % load.workers);
        let (first, count) = (index * each + index.min(extra), each + u32::from(index < extra));
        let writes = load.workload.read_share < 1.0;
        let scratch = Scratch::new(load.workload.request_bytes as u64, count, writes, load.seed)?;
        let options = ChannelOptions { depth: count, arena: Some(scratch.arena()), polled: load.polled };
        let channel = device.open_channel(&options)?;
        let align = u64::from(device.geometry().offset_align_bytes);
        Ok(Self {
            load,
            scratch,
            channel,
            source: RequestSource::new(load, align, first, count, total),
            streams: vec![Stream::default(); count as usize],
            spans: vec![Span::default(); count as usize],
            counted_in_flight: 0,
            counted_asked: 0,
            request_bytes: load.workload.request_bytes as u32,
            write_op: match load.sync {
                Sync::None | Sync::WriteThenFdatasync => Op::Write,
                Sync::Dsync => Op::WriteDsync,
                Sync::LinkedFlush => Op::WriteThenFlush,
            },
            asked: Asked::default(),
            tallies: std::array::from_fn(|_| Tally::new(load.workload.read_share)),
            phase: Phase::WarmUp,
            error: None,
        })
    }

    pub(super) fn run(mut self, interrupt: &AtomicBool) -> Result<Measured, Error> {
        let start = self.channel.now();
        let bounds = Bounds::new(&self.load.stop, self.load.workers, start);
        self.tallies[Phase::WarmUp as usize].begin(start, thread_cpu());
        if self.load.warmup_share <= 0.0 {
            self.enter(Phase::Counted);
        }
        let interrupted = match self.load.rate_per_s {
            None => self.closed_loop(&bounds, interrupt)?,
            Some(rate) => self.open_loop(&bounds, rate / f64::from(self.load.workers), interrupt)?,
        };
        self.drain()?;
        if let Some(error) = self.error {
            return Err(error);
        }
        let [warm_up, counted, cool_down] = self.tallies;
        let streams = self.streams.len() as u64;
        let written = [&warm_up, &counted, &cool_down].map(|tally| tally.bytes_written).iter().sum();
        let others = warm_up.requests + cool_down.requests;
        // An open loop's requests arrive at a rate of their own; requests under way at its end say nothing
        // about that rate.
        let is_open = self.load.rate_per_s.is_some();
        let is_too_short = match is_open {
            true => counted.requests < 2 * streams,
            false => self.load.warmup_share <= 0.0 || counted.requests < streams.div_ceil(2),
        };
        if is_too_short && others > 0 {
            return Ok(warm_up.and(counted).and(cool_down).measured(streams, written, interrupted));
        }
        let elapsed = if is_open || others == 0 { counted.elapsed() } else { mean_span(&self.spans) };
        Ok(Measured { elapsed, ..counted.measured(streams, written, interrupted) })
    }

    /// Each stream's next request follows its last at once. It returns whether it was interrupted.
    fn closed_loop(&mut self, bounds: &Bounds, interrupt: &AtomicBool) -> Result<bool, Error> {
        let mut completions = Vec::with_capacity(ANSWERED_AT_ONCE);
        let all_streams = self.streams.len() as u64;
        let mut going =
            (0..self.streams.len()).all(|stream| self.may_ask(bounds) && self.ask(stream, None).is_ok());
        while going {
            self.channel.wait(1, None, &mut completions)?;
            let now = completions.last().map_or_else(|| self.channel.now(), |last| last.completed);
            if interrupt.load(Ordering::Relaxed) {
                self.take_all(&mut completions)?;
                return Ok(true);
            }
            for completion in completions.drain(..) {
                let stream = completion.tag as usize;
                if self.take(completion)? {
                    going = going && self.error.is_none() && self.may_ask(bounds);
                    if going {
                        self.ask(stream, None)?;
                    }
                }
            }
            self.pass_warm_up(bounds, now);
            // A run that has passed its warm-up in time counts a request of each stream at least; the
            // cool-down takes as many.
            let is_late = bounds.until.is_some_and(|until| now >= until);
            let is_enough = self.phase != Phase::Counted || self.counted_asked >= all_streams;
            let is_over = is_late && is_enough || !self.has_remaining(bounds, all_streams);
            if is_over && self.phase != Phase::CoolDown {
                self.enter(Phase::CoolDown);
            }
            // Fixed work is done to its end.
            going = going && !(self.phase == Phase::CoolDown && is_late && self.counted_in_flight == 0);
        }
        Ok(false)
    }

    /// Requests arrive at times of their own; those that find all streams busy wait, and their latency counts
    /// the wait.
    fn open_loop(&mut self, bounds: &Bounds, rate_per_s: f64, interrupt: &AtomicBool) -> Result<bool, Error> {
        let mut completions = Vec::with_capacity(self.streams.len());
        let mut idle: Vec<usize> = (0..self.streams.len()).rev().collect();
        let mut arrival = self.channel.now();
        loop {
            let now = self.channel.now();
            self.pass_warm_up(bounds, now);
            if interrupt.load(Ordering::Relaxed) {
                return Ok(true);
            }
            if self.error.is_some() || !self.may_ask(bounds) || bounds.until.is_some_and(|until| now >= until)
            {
                return Ok(false);
            }
            while arrival <= now && self.may_ask(bounds) {
                let Some(stream) = idle.pop() else { break };
                self.ask(stream, Some(arrival))?;
                arrival += Nanos::from_seconds(self.source.exponential(1.0 / rate_per_s));
            }
            let wake = if idle.is_empty() { now + NAP } else { arrival.min(now + NAP) };
            self.channel.wait(1, Some(wake), &mut completions)?;
            for completion in completions.drain(..) {
                let stream = completion.tag as usize;
                if self.take(completion)? {
                    idle.push(stream);
                }
            }
        }
    }

    /// Waits for the outstanding requests.
    fn drain(&mut self) -> Result<(), Error> {
        if self.phase != Phase::CoolDown {
            self.enter(Phase::CoolDown);
        }
        let mut completions = Vec::with_capacity(self.streams.len());
        while self.channel.in_flight() > 0 {
            self.channel.wait(1, None, &mut completions)?;
            self.take_all(&mut completions)?;
        }
        let last = &mut self.tallies[Phase::CoolDown as usize];
        last.end(thread_cpu());
        Ok(())
    }

    fn take_all(&mut self, completions: &mut Vec<Completion>) -> Result<(), Error> {
        for completion in completions.drain(..) {
            self.take(completion)?;
        }
        Ok(())
    }

    fn may_ask(&self, bounds: &Bounds) -> bool {
        self.asked.requests == 0 || self.has_remaining(bounds, 1)
    }

    /// Whether `requests` more requests keep within the bounds.
    fn has_remaining(&self, bounds: &Bounds, requests: u64) -> bool {
        let (next, asked) = (requests * u64::from(self.request_bytes), &self.asked);
        let writes = self.load.workload.read_share < 1.0;
        asked.requests.saturating_add(requests) <= bounds.requests
            && asked.bytes.saturating_add(next) <= bounds.bytes
            && (!writes || asked.bytes_written.saturating_add(next) <= bounds.bytes_written)
    }

    /// Submits the next request of a stream.
    #[inline]
    fn ask(&mut self, stream: usize, since: Option<Nanos>) -> Result<(), Error> {
        let place = self.source.next(stream);
        let length = u64::from(self.request_bytes);
        self.asked.requests += 1;
        self.asked.bytes += length;
        self.asked.bytes_written += if place.is_read { 0 } else { length };
        self.counted_in_flight += usize::from(self.phase == Phase::Counted);
        self.counted_asked += u64::from(self.phase == Phase::Counted);
        self.streams[stream] = Stream {
            offset_bytes: place.offset_bytes,
            is_read: place.is_read,
            since,
            flushing: false,
            phase: self.phase,
        };
        self.submit(if place.is_read { Op::Read } else { self.write_op }, stream)
    }

    #[inline]
    fn submit(&mut self, op: Op, stream: usize) -> Result<(), Error> {
        let request = Request {
            op,
            offset_bytes: self.streams[stream].offset_bytes,
            length_bytes: self.request_bytes,
            memory: self.scratch.of(stream),
            tag: stream as u64,
        };
        // SAFETY: a slot of the scratch memory is as long as a request, the scratch memory outlives the
        // channel's requests (`drain`, and the channel's drop), and only the device accesses it, so that
        // requests may share slots.
        Ok(unsafe { self.channel.submit(request) }?)
    }

    /// Takes a completion; `true` if the stream is free for its next request.
    #[inline]
    fn take(&mut self, completion: Completion) -> Result<bool, Error> {
        let index = completion.tag as usize;
        let stream = &mut self.streams[index];
        let op = if stream.is_read { Op::Read } else { self.write_op };
        if let Err(errno) = completion.result {
            let op = if stream.flushing { Op::Flush } else { op };
            self.error.get_or_insert_with(|| Error::request(op, stream.offset_bytes, errno));
            return Ok(true);
        }
        let since = *stream.since.get_or_insert(completion.submitted);
        if self.load.sync == Sync::WriteThenFdatasync && !stream.is_read && !stream.flushing {
            stream.flushing = true;
            self.submit(Op::Flush, index)?;
            return Ok(false);
        }
        let (is_read, asked_in) = (stream.is_read, stream.phase);
        // A request of an open loop belongs to the phase in which it ends: a late one must not be counted as
        // if it were none.
        let phase = if self.load.rate_per_s.is_some() { self.phase } else { asked_in };
        if asked_in == Phase::Counted {
            self.counted_in_flight -= 1;
            let span = &mut self.spans[index];
            (span.from, span.to) = (span.from.or(Some(since)), completion.completed);
        }
        self.tallies[phase as usize].count(is_read, self.request_bytes, since, completion.completed);
        Ok(true)
    }

    /// Whether a closed loop's requests are mostly those that were asked all at once.
    fn is_in_first_round(&self) -> bool {
        let done = self.tallies[Phase::WarmUp as usize].requests;
        self.load.rate_per_s.is_none() && self.load.warmup_share > 0.0 && done < self.streams.len() as u64
    }

    fn pass_warm_up(&mut self, bounds: &Bounds, now: Nanos) {
        if self.phase != Phase::WarmUp || self.is_in_first_round() {
            return;
        }
        let warm_up = &self.tallies[Phase::WarmUp as usize];
        let bytes = warm_up.bytes_read + warm_up.bytes_written;
        let of = |done: u64, bound: u64| done as f64 / bound as f64;
        let in_time = bounds.span.map_or(0.0, |span| now.since(warm_up.start()).seconds() / span.seconds());
        let done = in_time
            .max(of(bytes, bounds.bytes))
            .max(of(warm_up.bytes_written, bounds.bytes_written))
            .max(of(warm_up.requests, bounds.requests));
        if done >= self.load.warmup_share {
            self.enter(Phase::Counted);
        }
    }

    fn enter(&mut self, phase: Phase) {
        let cpu = thread_cpu();
        let last = &mut self.tallies[self.phase as usize];
        last.end(cpu);
        let from = last.last();
        self.tallies[phase as usize].begin(from, cpu);
        self.phase = phase;
    }
}

/// Mean time over all streams; those that counted nothing have none, as they have no bytes.
fn mean_span(spans: &[Span]) -> Nanos {
    let sum: u64 = spans.iter().filter_map(|span| Some(span.to.since(span.from?).0)).sum();
    Nanos(sum / spans.len().max(1) as u64)
}
