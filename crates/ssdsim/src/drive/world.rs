//! All drives of a device, their commands, and the one loop that lets events happen.

use std::collections::VecDeque;

use flashgrain_device::{Completion, Nanos, Op, Request, StripeSet};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::command::{Command, Stages};
use super::host::Host;
use crate::config::SimConfig;
use crate::content::Content;
use crate::engine::{Event, Events, Slab};
use crate::error::Error;
use crate::fault::Plan;
use crate::medium::Medium;
use crate::statistics::{HostTally, Statistics, Tally};

/// The state of a simulated device. One lock around it serialises its channels; virtual time only moves
/// inside.
#[derive(Debug)]
pub(crate) struct World {
    pub events: Events,
    pub(super) drives: Vec<Drive>,
    pub(super) stripes: StripeSet,
    pub(super) commands: Slab<Command>,
    pub(super) requests: Slab<Inflight>,
    pub(super) channels: Vec<VecDeque<Completion>>,
    /// Writes whose data have arrived in a drive: their order over all drives.
    writes: u64,
    /// Requests that were answered since the start.
    pub(super) answered: u64,
    pub faults: Plan,
    /// False without power, or when the device is gone.
    pub answers: bool,
    pub(super) tally: HostTally,
}

/// One drive.
#[derive(Debug)]
pub(super) struct Drive {
    pub host: Host,
    pub medium: Medium,
    pub content: Content,
    random: Pcg64,
    tally: Tally,
}

/// A request of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inflight {
    pub channel: u32,
    pub tag: u64,
    pub op: Op,
    pub submitted_ns: u64,
    pub remaining_commands: u32,
    pub errno: i32,
    /// Whether a flush of all drives follows.
    pub flush_after: bool,
}

impl Inflight {
    pub fn new(channel: u32, request: &Request, now_ns: u64) -> Self {
        Self {
            channel,
            tag: request.tag,
            op: request.op,
            submitted_ns: now_ns,
            remaining_commands: 0,
            errno: 0,
            flush_after: request.op == Op::WriteThenFlush,
        }
    }
}

impl World {
    pub fn new(config: &SimConfig, stripes: StripeSet, seed: u64) -> Result<Self, Error> {
        let drive = |index: u32| {
            let medium = Medium::new(config)?;
            let content = Content::new(config.capacity_bytes, medium.is_volatile());
            Ok(Drive {
                host: Host::new(config.host.clone()),
                medium,
                content,
                random: Pcg64::seed_from_u64(seed.wrapping_add(u64::from(index))),
                tally: Tally::default(),
            })
        };
        Ok(Self {
            events: Events::default(),
            drives: (0..config.drives).map(drive).collect::<Result<_, Error>>()?,
            stripes,
            commands: Slab::default(),
            requests: Slab::default(),
            channels: Vec::new(),
            writes: 0,
            answered: 0,
            faults: Plan::new(seed),
            answers: true,
            tally: HostTally::new(0, 0),
        })
    }

    /// A new channel's number.
    pub fn open_channel(&mut self) -> u32 {
        self.channels.push(VecDeque::new());
        (self.channels.len() - 1) as u32
    }

    /// Takes a request that fits the geometry.
    pub fn submit(&mut self, channel: u32, request: &Request) {
        if !self.answers {
            return self.refuse(channel, request);
        }
        let now = self.events.now();
        let index = self.requests.insert(Inflight::new(channel, request, now));
        self.tally.arrived(now);
        if request.op == Op::Flush {
            return self.flush_all(index);
        }
        let (mut offset, mut left, mut memory) = (request.offset_bytes, request.length_bytes, request.memory);
        while left > 0 {
            let segment = self.stripes.first_segment(offset, left);
            let drive = segment.member as u16;
            self.command(index, drive, request.op, segment.offset_bytes, segment.length_bytes, memory);
            offset += u64::from(segment.length_bytes);
            left -= segment.length_bytes;
            if request.op.moves_data() {
                memory = memory.wrapping_add(segment.length_bytes as usize);
            }
        }
    }

    fn flush_all(&mut self, request: u32) {
        for drive in 0..self.drives.len() as u16 {
            self.command(request, drive, Op::Flush, 0, 0, std::ptr::null_mut());
        }
    }

    fn command(
        &mut self,
        request: u32,
        drive: u16,
        op: Op,
        offset_bytes: u64,
        length_bytes: u32,
        memory: *mut u8,
    ) {
        self.requests[request].remaining_commands += 1;
        let now = self.events.now();
        let index =
            self.commands.insert(Command::new(request, drive, op, offset_bytes, length_bytes, memory, now));
        let op = self.commands[index].op;
        let admitted = self.drives[usize::from(drive)].host.admit(now, op, length_bytes);
        if admitted > now {
            self.events.at(admitted, Event::Admitted { command: index });
        } else {
            self.take_up_or_queue(index);
        }
    }

    /// A command is the drive's, or next in the host's queue if the drive has no room.
    #[inline]
    fn take_up_or_queue(&mut self, index: u32) {
        let drive = self.commands[index].drive;
        let host = &mut self.drives[usize::from(drive)].host;
        if host.inside < host.config.queue_depth {
            self.take_up(drive, index);
        } else {
            host.waiting.push_back(index);
        }
    }

    /// A command enters the drive.
    #[inline]
    fn take_up(&mut self, drive: u16, index: u32) {
        let now = self.events.now();
        let delay = if self.faults.is_armed() { self.afflict(index) } else { 0 };
        let command = &mut self.commands[index];
        let host = &mut self.drives[usize::from(drive)].host;
        host.inside += 1;
        command.stages.queue = now - command.submitted_ns;
        let start = host.process(now, command.op, command.offset_bytes, command.length_bytes) + delay;
        command.stages.controller = start - now;
        command.started_ns = start;
        self.events.at(start, Event::Start { command: index });
    }

    /// Lets everything happen until `until_ns` or until `channel` has `enough` completions waiting.
    pub fn run(&mut self, channel: u32, enough: usize, until_ns: u64) {
        while self.channels[channel as usize].len() < enough && self.go_on(until_ns) {}
    }

    /// Lets everything happen until `until_ns` or until some request is answered; whether one is.
    pub fn pass(&mut self, until_ns: u64) -> bool {
        let answered = self.answered;
        while self.answered == answered {
            if !self.go_on(until_ns) {
                self.events.pass(until_ns);
                return false;
            }
        }
        true
    }

    /// Lets the next thing happen; `false` if nothing does until `until_ns`.
    #[inline]
    fn go_on(&mut self, until_ns: u64) -> bool {
        if self.events.happened() >= self.faults.next_event() {
            self.strike_due();
            return true;
        }
        let Some(event) = self.events.next(until_ns) else { return false };
        self.happen(event);
        true
    }

    #[inline]
    fn happen(&mut self, event: Event) {
        match event {
            Event::Admitted { command } => self.take_up_or_queue(command),
            Event::Start { command } => self.start(command),
            Event::DataIn { command } => self.data_in(command),
            Event::Done { command } => self.done(command),
            Event::Strike => self.strike_due(),
            Event::Medium { drive, kind, index } => {
                let (medium, mut context) = self.parts(drive);
                medium.event(kind, index, &mut context);
            }
        }
    }

    pub(super) fn parts(&mut self, drive: u16) -> (&mut Medium, Context<'_>) {
        let Drive { host, medium, content, random, tally } = &mut self.drives[usize::from(drive)];
        let context = Context {
            drive,
            events: &mut self.events,
            commands: &mut self.commands,
            host,
            content,
            random,
            tally,
        };
        (medium, context)
    }

    fn start(&mut self, index: u32) {
        if !self.commands[index].is_well() && !self.start_faulty(index) {
            return;
        }
        let command = &self.commands[index];
        match command.op {
            Op::Write | Op::WriteDsync => self.send_in(index),
            Op::Discard => {
                let content = &mut self.drives[usize::from(command.drive)].content;
                content.discard(command.offset_bytes, u64::from(command.length_bytes));
                self.start_medium(index);
            }
            _ => self.start_medium(index),
        }
    }

    /// The data of a write cross the link.
    pub(super) fn send_in(&mut self, index: u32) {
        let now = self.events.now();
        let command = &mut self.commands[index];
        let host = &mut self.drives[usize::from(command.drive)].host;
        let bytes = u64::from(command.length_bytes);
        let arrived = host.receive(now, bytes).max(now + host.pace_ns(bytes));
        command.stages.link = arrived - now;
        command.started_ns = arrived;
        self.events.at(arrived, Event::DataIn { command: index });
    }

    #[inline]
    pub(super) fn start_medium(&mut self, index: u32) {
        let (medium, mut context) = self.parts(self.commands[index].drive);
        medium.start(index, &mut context);
    }

    fn data_in(&mut self, index: u32) {
        self.writes += 1;
        let command = &mut self.commands[index];
        command.version = self.writes;
        if command.is_well() {
            // SAFETY: the request is in flight, so its memory is valid and no other code writes it.
            let bytes = unsafe { command.bytes() };
            let content = &mut self.drives[usize::from(command.drive)].content;
            content.write(command.version, command.offset_bytes, bytes);
        } else if !self.store_faulty(index) {
            return;
        }
        self.start_medium(index);
    }

    fn done(&mut self, index: u32) {
        let now = self.events.now();
        let mut command = self.commands[index];
        if command.op == Op::Read && command.errno == 0 {
            // SAFETY: the request is in flight, so its memory is valid and no other code uses it.
            let bytes =
                unsafe { std::slice::from_raw_parts_mut(command.memory.0, command.length_bytes as usize) };
            if command.is_well() {
                self.drives[usize::from(command.drive)].content.read(command.offset_bytes, bytes);
            } else {
                command.errno = self.read_faulty(index, bytes);
            }
        }
        let drive = &mut self.drives[usize::from(command.drive)];
        debug_assert_eq!(command.stages.sum(), now - command.submitted_ns, "{command:?}");
        if command.errno == 0 {
            drive.tally.finished(&command);
        }
        drive.host.inside -= 1;
        if let Some(next) = drive.host.waiting.pop_front() {
            self.take_up(command.drive, next);
        }
        self.commands.remove(index);
        let request = &mut self.requests[command.request];
        request.remaining_commands -= 1;
        request.errno = if request.errno == 0 { command.errno } else { request.errno };
        if request.remaining_commands > 0 {
            return;
        }
        if std::mem::take(&mut request.flush_after) && request.errno == 0 {
            return self.flush_all(command.request);
        }
        let completion = Completion {
            tag: request.tag,
            result: if request.errno == 0 { Ok(()) } else { Err(request.errno) },
            submitted: Nanos(request.submitted_ns),
            completed: Nanos(now),
        };
        let (channel, op) = (request.channel as usize, request.op);
        self.requests.remove(command.request);
        self.tally.left(op, completion.latency().0, now);
        self.channels[channel].push_back(completion);
        self.answered += 1;
    }

    /// Counted so far.
    pub fn statistics(&self) -> Statistics {
        self.tally.statistics(self.drives.iter().map(|drive| &drive.tally), self.events.now())
    }

    /// Counts anew.
    pub fn reset_statistics(&mut self) {
        self.tally.reset(self.events.now());
        for drive in &mut self.drives {
            drive.tally = Tally::default();
        }
    }

    /// Completions of `channel` that the host has not seen.
    pub fn completions(&mut self, channel: u32) -> &mut VecDeque<Completion> {
        &mut self.channels[channel as usize]
    }
}

/// The parts of the drive that a medium may use and change while it works on a command or an event.
pub(crate) struct Context<'a> {
    pub(super) drive: u16,
    pub(super) events: &'a mut Events,
    /// All commands.
    pub commands: &'a mut Slab<Command>,
    pub(super) host: &'a mut Host,
    /// The bytes.
    pub content: &'a mut Content,
    /// The drive's random numbers.
    pub random: &'a mut Pcg64,
    /// The drive's counters.
    pub tally: &'a mut Tally,
}

impl Context<'_> {
    /// Virtual time.
    #[inline]
    pub fn now(&self) -> u64 {
        self.events.now()
    }

    /// Schedules an event of the medium.
    #[inline]
    pub fn at(&mut self, at_ns: u64, kind: u8, index: u32) {
        self.events.at(at_ns, Event::Medium { drive: self.drive, kind, index });
    }

    /// `bytes` of a read are in the drive's memory: they cross the link, and when the last have, the command
    /// is done. `stages` says where the medium's time for this part went, from the command's `started_ns` to
    /// now; that of the last part counts.
    #[inline]
    pub fn data_ready(&mut self, command: u32, bytes: u32, stages: &Stages) {
        self.data_streamed(command, bytes, 0, stages);
    }

    /// The same for bytes that have come evenly over the last `over_ns`.
    #[inline]
    pub fn data_streamed(&mut self, command: u32, bytes: u32, over_ns: u64, stages: &Stages) {
        let now = self.now();
        let entry = &mut self.commands[command];
        debug_assert!(entry.remaining_bytes >= bytes, "more bytes than the command has");
        entry.remaining_bytes -= bytes;
        let on_link = if self.host.config.link_in_parts {
            self.host.stream(now, over_ns, u64::from(bytes))
        } else if entry.remaining_bytes == 0 {
            self.host.send(now, entry.length_bytes.into())
        } else {
            return;
        };
        entry.paced_ns = entry.paced_ns.max(now) + self.host.pace_ns(bytes.into());
        if entry.remaining_bytes == 0 {
            let at_host = on_link.max(entry.paced_ns);
            let after = Stages { link: stages.link + at_host - now, ..*stages };
            self.answer(command, at_host, &after);
        }
    }

    /// A command other than a read is done. `stages` as in [`Context::data_ready`].
    #[inline]
    pub fn finish(&mut self, command: u32, stages: &Stages) {
        self.answer(command, self.now(), stages);
    }

    #[inline]
    fn answer(&mut self, command: u32, at_ns: u64, stages: &Stages) {
        let completion_ns = self.host.config.completion_ns;
        let own = &mut self.commands[command].stages;
        own.queue += stages.queue;
        own.controller += stages.controller + completion_ns;
        own.link += stages.link;
        own.mapping += stages.mapping;
        own.wait += stages.wait;
        own.collect += stages.collect;
        own.medium += stages.medium;
        self.events.at(at_ns + completion_ns, Event::Done { command });
    }
}
