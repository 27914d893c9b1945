//! The channel of real devices: everything about requests that does not depend on how they reach the kernel.
//!
//! Invariants:
//! - A request holds one slot from `submit` until its completion is reaped; a part holds one part number from
//!   staging until its last result. Both come from tables allocated with the queue.
//! - A slot is in `to_stage` if and only if `staged < total`.
//! - A request finishes when none of its parts is in flight, so that its memory is free again, and all of it
//!   is done or a part has failed. Short transfers, `EINTR` and `EAGAIN` are continued here and never seen
//!   outside.
//! - A flush that failed is reported, never repeated as if it had not happened.

use std::collections::VecDeque;

use crate::alarm::{self, Alarm};
use crate::backend::{Backend, Part, PartOp};
use crate::live_geometry::LiveGeometry;
use crate::stripe::StripeSet;
use crate::{Channel, ChannelWaker, Completion, Error, Nanos, Op, Request, clock};

/// Part numbers beyond the requests' own, for requests that are cut into several.
const SPARE_PARTS: u32 = 64;

/// A part that makes no progress this often in a row fails.
const FRUITLESS_TRIES_MAX: u16 = 1_000;

/// The part of a request that is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its bytes; `staged`, `done` and `total` count bytes.
    Bytes,
    /// Its flush; they count members.
    Flush,
}

/// A request in flight.
#[derive(Clone, Copy)]
struct RequestInFlight {
    request: Request,
    submitted: Nanos,
    completed: Nanos,
    phase: Phase,
    /// Already cut into parts.
    staged: u32,
    done: u32,
    total: u32,
    parts_in_flight: u32,
    /// A flush linked to the write has succeeded.
    flushed: bool,
    /// First error among the parts; 0 if none.
    errno: i32,
}

impl RequestInFlight {
    fn new(request: Request, submitted: Nanos, members: u32) -> Self {
        let (phase, total) = if request.op == Op::Flush {
            (Phase::Flush, members)
        } else {
            (Phase::Bytes, request.length_bytes)
        };
        Self {
            request,
            submitted,
            completed: submitted,
            phase,
            staged: 0,
            done: 0,
            total,
            parts_in_flight: 0,
            flushed: false,
            errno: 0,
        }
    }

    fn fail(&mut self, errno: i32) {
        if self.errno == 0 {
            self.errno = errno;
        }
    }
}

/// A part in flight: its request, and the rest of its range.
#[derive(Clone, Copy)]
struct PartInFlight {
    slot: u32,
    part: Part,
    fruitless_tries: u16,
}

/// A queue of requests over a backend.
pub(crate) struct RequestQueue<B: Backend> {
    backend: B,
    stripes: StripeSet,
    geometry: LiveGeometry,
    slots: Box<[RequestInFlight]>,
    free_slots: Vec<u32>,
    parts: Box<[PartInFlight]>,
    free_parts: Vec<u32>,
    /// Slots with something left to cut into parts, oldest first.
    to_stage: VecDeque<u32>,
    /// Parts to be pushed again: continued after a short transfer, or refused for the moment.
    to_repush: VecDeque<u32>,
    /// Slots that are finished and wait to be handed to the caller.
    finished: VecDeque<u32>,
    /// Ends waits; made by the first call of [`Channel::waker`].
    alarm: Option<Alarm>,
    /// Time of the first submission since the backend was last entered: one clock reading serves the batch.
    batch_time: Option<Nanos>,
}

impl<B: Backend> RequestQueue<B> {
    /// Parts that a queue of `depth` requests may have in flight: the size that its backend must be made for.
    pub(crate) fn parts_max(depth: u32, stripes: StripeSet) -> u32 {
        // A linked flush takes a part of its own.
        depth * 2 + if stripes.members() > 1 || B::CUTS { SPARE_PARTS } else { 0 }
    }

    pub(crate) fn new(backend: B, depth: u32, stripes: StripeSet, geometry: LiveGeometry) -> Self {
        let parts_max = Self::parts_max(depth, stripes);
        let nothing =
            Request { op: Op::Flush, offset_bytes: 0, length_bytes: 0, memory: std::ptr::null_mut(), tag: 0 };
        let empty = PartInFlight { slot: 0, part: flush_part(0), fruitless_tries: 0 };
        Self {
            backend,
            stripes,
            geometry,
            slots: vec![RequestInFlight::new(nothing, Nanos(0), 0); depth as usize].into(),
            free_slots: (0..depth).rev().collect(),
            parts: vec![empty; parts_max as usize].into(),
            free_parts: (0..parts_max).rev().collect(),
            to_stage: VecDeque::with_capacity(depth as usize),
            to_repush: VecDeque::with_capacity(parts_max as usize),
            finished: VecDeque::with_capacity(depth as usize),
            alarm: None,
            batch_time: None,
        }
    }

    /// Pushes as much as there is room for: first parts that must be repeated, then requests in order.
    fn stage(&mut self) {
        while let Some(&token) = self.to_repush.front() {
            if !self.backend.has_room(1) {
                return;
            }
            self.to_repush.pop_front();
            self.push(token);
        }
        while let Some(&index) = self.to_stage.front() {
            if !self.stage_slot(index) {
                return;
            }
            self.to_stage.pop_front();
        }
    }

    /// Cuts the rest of a request into parts and pushes them; `false` if room ran out.
    fn stage_slot(&mut self, index: u32) -> bool {
        let slot = &mut self.slots[index as usize];
        if slot.errno != 0 {
            // A part has failed meanwhile: nothing more of it is sent.
            slot.total = slot.staged;
            self.finish_if_idle(index, clock::now());
            return true;
        }
        let link = B::LINKS
            && slot.request.op == Op::WriteThenFlush
            && slot.phase == Phase::Bytes
            && self.stripes.members() == 1
            && slot.request.length_bytes <= self.backend.part_bytes_max();
        let needed: u32 = if link { 2 } else { 1 };
        while self.slots[index as usize].staged < self.slots[index as usize].total {
            if self.free_parts.len() < needed as usize || !self.backend.has_room(needed) {
                return false;
            }
            let part = self.cut(index, link);
            self.send(index, part);
            if link {
                self.send(index, flush_part(part.member));
            }
        }
        true
    }

    /// The next part of a request.
    fn cut(&mut self, index: u32, link: bool) -> Part {
        let slot = &mut self.slots[index as usize];
        let request = slot.request;
        let op = match request.op {
            _ if slot.phase == Phase::Flush => {
                slot.staged += 1;
                return flush_part(slot.staged - 1);
            }
            Op::Read => PartOp::Read,
            Op::WriteDsync => PartOp::WriteDsync,
            Op::Discard => PartOp::Discard,
            Op::Write | Op::WriteThenFlush | Op::Flush => PartOp::Write,
        };
        let offset_bytes = request.offset_bytes + u64::from(slot.staged);
        let segment = self.stripes.first_segment(offset_bytes, request.length_bytes - slot.staged);
        let memory = request.memory.wrapping_add(slot.staged as usize);
        let (member, offset_bytes) = (segment.member, segment.offset_bytes);
        let length_bytes = match op {
            PartOp::Discard => segment.length_bytes,
            _ => segment.length_bytes.min(self.backend.part_bytes_max()),
        };
        slot.staged += length_bytes;
        Part { op, member, offset_bytes, length_bytes, memory, link }
    }

    fn send(&mut self, index: u32, part: Part) {
        let Some(token) = self.free_parts.pop() else { return };
        self.parts[token as usize] = PartInFlight { slot: index, part, fruitless_tries: 0 };
        self.slots[index as usize].parts_in_flight += 1;
        self.push(token);
    }

    fn push(&mut self, token: u32) {
        let part = self.parts[token as usize].part;
        // SAFETY: the caller of `submit` keeps the memory valid until the request is reaped, which is after
        // its last part.
        unsafe { self.backend.push(token, &part) };
    }

    /// Takes one result of a part: continues it, or counts it.
    fn take(&mut self, token: u32, result: i32, now: Nanos) {
        let in_flight = &mut self.parts[token as usize];
        let (part, slot) = (&mut in_flight.part, &mut self.slots[in_flight.slot as usize]);
        let moves_data = matches!(part.op, PartOp::Read | PartOp::Write | PartOp::WriteDsync);
        match -result {
            libc::EINTR | libc::EAGAIN => return self.try_again(token, false, libc::EAGAIN, now),
            // The flush of a linked pair whose write was not whole: it follows as a phase of its own.
            libc::ECANCELED if part.op == PartOp::Flush => {}
            errno if errno > 0 => slot.fail(errno),
            _ if part.op == PartOp::Flush && slot.phase == Phase::Bytes => slot.flushed = true,
            _ if part.op == PartOp::Flush => slot.done += 1,
            _ if !moves_data || result as u32 >= part.length_bytes => slot.done += part.length_bytes,
            // Short. With O_DIRECT only whole blocks count; the rest is asked for again.
            _ => {
                let whole = result as u32 - result as u32 % self.geometry.offset_align_bytes();
                if whole == 0 {
                    slot.fail(libc::EIO); // the end of the device, in the middle of a request
                } else {
                    slot.done += whole;
                    part.offset_bytes += u64::from(whole);
                    part.length_bytes -= whole;
                    part.memory = part.memory.wrapping_add(whole as usize);
                    return self.try_again(token, true, libc::EIO, now);
                }
            }
        }
        self.part_done(token, now);
    }

    fn try_again(&mut self, token: u32, progressed: bool, errno: i32, now: Nanos) {
        let in_flight = &mut self.parts[token as usize];
        in_flight.part.link = false;
        in_flight.fruitless_tries = if progressed { 0 } else { in_flight.fruitless_tries + 1 };
        if in_flight.fruitless_tries < FRUITLESS_TRIES_MAX {
            self.to_repush.push_back(token);
        } else {
            self.slots[in_flight.slot as usize].fail(errno);
            self.part_done(token, now);
        }
    }

    fn part_done(&mut self, token: u32, now: Nanos) {
        self.free_parts.push(token);
        let index = self.parts[token as usize].slot;
        self.slots[index as usize].parts_in_flight -= 1;
        self.finish_if_idle(index, now);
    }

    /// Moves a request on when nothing of it is in flight or left to stage: to its flush, or to the caller.
    fn finish_if_idle(&mut self, index: u32, now: Nanos) {
        let slot = &mut self.slots[index as usize];
        if slot.parts_in_flight > 0 || slot.staged < slot.total {
            return;
        }
        if slot.request.op == Op::WriteThenFlush
            && slot.phase == Phase::Bytes
            && slot.errno == 0
            && !slot.flushed
        {
            slot.phase = Phase::Flush;
            (slot.staged, slot.done, slot.total) = (0, 0, self.stripes.members());
            self.to_stage.push_back(index);
            return;
        }
        slot.completed = now;
        self.finished.push_back(index);
    }

    /// Hands staged parts to the backend and waits for about `at_least` results.
    fn enter(&mut self, at_least: usize, until: Option<Nanos>) -> Result<(), Error> {
        self.stage();
        self.batch_time = None;
        self.backend
            .enter(at_least as u32, until)
            .map_err(|source| Error::Os { doing: "hand requests to the kernel".into(), source })
    }

    /// Whether a waker has ended the wait.
    fn alarmed(&mut self) -> bool {
        let alarmed = self.backend.alarmed();
        if let Some(alarm) = self.alarm.as_ref().filter(|_| alarmed) {
            alarm.reset();
        }
        alarmed
    }

    /// Takes the results that are ready and hands finished requests over, as far as there is room.
    fn reap(&mut self, completions: &mut Vec<Completion>) -> usize {
        let mut now = None;
        while let Some((token, result)) = self.backend.reap() {
            let now = *now.get_or_insert_with(clock::now);
            self.take(token, result, now);
        }
        let room = completions.capacity() - completions.len();
        let count = self.finished.len().min(room);
        for index in self.finished.drain(..count) {
            let slot = &self.slots[index as usize];
            let result = if slot.errno == 0 { Ok(()) } else { Err(slot.errno) };
            let (tag, submitted, completed) = (slot.request.tag, slot.submitted, slot.completed);
            completions.push(Completion { tag, result, submitted, completed });
            self.free_slots.push(index);
        }
        count
    }
}

impl<B: Backend> Channel for RequestQueue<B> {
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error> {
        self.geometry.check(&request)?;
        let index = self.free_slots.pop().ok_or(Error::QueueFull)?;
        let submitted = *self.batch_time.get_or_insert_with(clock::now);
        self.slots[index as usize] = RequestInFlight::new(request, submitted, self.stripes.members());
        self.to_stage.push_back(index);
        self.stage();
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error> {
        if self.in_flight() > 0 {
            self.enter(0, None)?;
        }
        Ok(self.reap(completions))
    }

    fn wait(
        &mut self,
        at_least: usize,
        until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error> {
        let room = completions.capacity() - completions.len();
        let at_least = at_least.min(room);
        let mut reaped = self.reap(completions);
        if self.in_flight() == 0 && at_least > reaped {
            if let Some(until) = until {
                alarm::sleep(self.alarm.as_ref(), until);
            }
            return Ok(reaped);
        }
        loop {
            let wanted = at_least.saturating_sub(reaped).min(self.in_flight());
            // Even with nothing to wait for, submitted requests must reach the device.
            self.enter(wanted, until)?;
            reaped += self.reap(completions);
            let late = until.is_some_and(|until| clock::now() >= until);
            if reaped >= at_least || self.in_flight() == 0 || late || self.alarmed() {
                return Ok(reaped);
            }
        }
    }

    fn waker(&mut self) -> Option<ChannelWaker> {
        if self.alarm.is_none() {
            let alarm = Alarm::new().ok()?;
            self.alarm = self.backend.watch(alarm.fd()).then_some(alarm);
        }
        self.alarm.as_ref().map(Alarm::waker)
    }

    fn now(&self) -> Nanos {
        clock::now()
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    fn depth(&self) -> usize {
        self.slots.len()
    }
}

impl<B: Backend> Drop for RequestQueue<B> {
    fn drop(&mut self) {
        self.to_stage.clear();
        while self.free_parts.len() < self.parts.len() {
            if self.backend.enter(1, None).is_err() {
                // The kernel may still write into memory that the caller is about to reuse.
                std::process::abort();
            }
            while let Some((token, _)) = self.backend.reap() {
                self.free_parts.push(token);
            }
            // Parts that wait to be submitted again are given up.
            self.free_parts.extend(self.to_repush.drain(..));
        }
    }
}

fn flush_part(member: u32) -> Part {
    let memory = std::ptr::null_mut();
    Part { op: PartOp::Flush, member, offset_bytes: 0, length_bytes: 0, memory, link: false }
}

#[cfg(test)]
mod tests;
