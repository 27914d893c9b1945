//! All drives of a device, their commands, and the one loop that lets events happen.

use std::collections::VecDeque;

use flashgrain_device::{Completion, Nanos, Op, Request, StripeSet};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::command::{Command, Memory, Stages};
use super::host::Host;
use crate::config::SimConfig;
use crate::content::Content;
use crate::engine::{Event, Events, Slab};
use crate::error::Error;
use crate::medium::{Medium, medium_op};
use crate::statistics::{HostTally, Statistics, Tally};

/// Everything behind a device. One lock around it serialises its channels; virtual time only moves inside.
#[derive(Debug)]
pub(crate) struct World {
    pub events: Events,
    drives: Vec<Drive>,
    stripes: StripeSet,
    commands: Slab<Command>,
    requests: Slab<Inflight>,
    channels: Vec<VecDeque<Completion>>,
    /// Writes whose data have arrived in a drive: their order over all drives.
    writes: u64,
    tally: HostTally,
}

/// One drive.
#[derive(Debug)]
struct Drive {
    host: Host,
    medium: Medium,
    content: Content,
    random: Pcg64,
    tally: Tally,
}

/// A request of a channel.
#[derive(Clone, Copy, Debug)]
struct Inflight {
    channel: u32,
    tag: u64,
    op: Op,
    submitted_ns: u64,
    commands_left: u32,
    errno: i32,
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
        let now = self.events.now();
        let inflight = Inflight {
            channel,
            tag: request.tag,
            op: request.op,
            submitted_ns: now,
            commands_left: 0,
            errno: 0,
        };
        let index = self.requests.insert(inflight);
        self.tally.arrived(now);
        if request.op == Op::Flush {
            for drive in 0..self.drives.len() as u16 {
                self.command(index, drive, request.op, 0, 0, request.memory);
            }
            return;
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

    fn command(
        &mut self,
        request: u32,
        drive: u16,
        op: Op,
        offset_bytes: u64,
        length_bytes: u32,
        memory: *mut u8,
    ) {
        self.requests[request].commands_left += 1;
        let now = self.events.now();
        let index = self.commands.insert(Command {
            request,
            drive,
            op: medium_op(op),
            offset_bytes,
            length_bytes,
            memory: Memory(memory),
            submitted_ns: now,
            started_ns: now,
            bytes_left: length_bytes,
            version: 0,
            parts: 0,
            stages: Stages::default(),
            errno: 0,
        });
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
        let command = &mut self.commands[index];
        let host = &mut self.drives[usize::from(drive)].host;
        host.inside += 1;
        command.stages.queue = now - command.submitted_ns;
        let start = host.process(now, command.op, command.offset_bytes, command.length_bytes);
        command.stages.controller = start - now;
        command.started_ns = start;
        self.events.at(start, Event::Start { command: index });
    }

    /// Lets everything happen until `until_ns` or until `channel` has `enough` completions waiting.
    pub fn run(&mut self, channel: u32, enough: usize, until_ns: u64) {
        while self.channels[channel as usize].len() < enough {
            let Some(event) = self.events.next(until_ns) else { return };
            self.happen(event);
        }
    }

    #[inline]
    fn happen(&mut self, event: Event) {
        match event {
            Event::Start { command } => self.start(command),
            Event::DataIn { command } => self.data_in(command),
            Event::Done { command } => self.done(command),
            Event::Medium { drive, kind, index } => {
                let (medium, mut context) = self.parts(drive);
                medium.event(kind, index, &mut context);
            }
        }
    }

    fn parts(&mut self, drive: u16) -> (&mut Medium, Context<'_>) {
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
        let command = &mut self.commands[index];
        let drive = command.drive;
        if matches!(command.op, Op::Write | Op::WriteDsync) {
            let now = self.events.now();
            let host = &mut self.drives[usize::from(drive)].host;
            let arrived = host.into_drive(now, u64::from(command.length_bytes));
            command.stages.link = arrived - now;
            command.started_ns = arrived;
            self.events.at(arrived, Event::DataIn { command: index });
            return;
        }
        if command.op == Op::Discard {
            let content = &mut self.drives[usize::from(drive)].content;
            content.discard(command.offset_bytes, u64::from(command.length_bytes));
        }
        let (medium, mut context) = self.parts(drive);
        medium.start(index, &mut context);
    }

    fn data_in(&mut self, index: u32) {
        let command = &mut self.commands[index];
        let drive = command.drive;
        let content = &mut self.drives[usize::from(drive)].content;
        // SAFETY: the request is in flight, so its memory is valid and nobody else writes it.
        let bytes = unsafe { std::slice::from_raw_parts(command.memory.0, command.length_bytes as usize) };
        self.writes += 1;
        command.version = self.writes;
        content.write(command.version, command.offset_bytes, bytes);
        let (medium, mut context) = self.parts(drive);
        medium.start(index, &mut context);
    }

    fn done(&mut self, index: u32) {
        let now = self.events.now();
        let command = self.commands[index];
        let drive = &mut self.drives[usize::from(command.drive)];
        if command.op == Op::Read && command.errno == 0 {
            // SAFETY: the request is in flight, so its memory is valid and nobody else uses it.
            let bytes =
                unsafe { std::slice::from_raw_parts_mut(command.memory.0, command.length_bytes as usize) };
            drive.content.read(command.offset_bytes, bytes);
        }
        debug_assert_eq!(command.stages.sum(), now - command.submitted_ns, "{command:?}");
        drive.tally.finished(&command);
        drive.host.inside -= 1;
        if let Some(next) = drive.host.waiting.pop_front() {
            self.take_up(command.drive, next);
        }
        self.commands.remove(index);
        let request = &mut self.requests[command.request];
        request.commands_left -= 1;
        request.errno = if request.errno == 0 { command.errno } else { request.errno };
        if request.commands_left == 0 {
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
        }
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

/// What a medium may use and tell while it works on a command or an event.
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

    /// `bytes` of a read are in the drive's memory: they cross the link, and when the last have, the command is done. `stages` says where the
    /// medium's time for this part went, from the command's `started_ns` to now; that of the last part counts.
    #[inline]
    pub fn data_ready(&mut self, command: u32, bytes: u32, stages: &Stages) {
        let now = self.now();
        let at_host = self.host.to_host(now, u64::from(bytes));
        let entry = &mut self.commands[command];
        debug_assert!(entry.bytes_left >= bytes, "more bytes than the command has");
        entry.bytes_left -= bytes;
        if entry.bytes_left == 0 {
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
