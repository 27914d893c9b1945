//! 3D XPoint: banks on channels, written in place. No erase, no garbage collection, no cache to lose.
//!
//! Chunks are dealt out over the channels first, then over the banks of a channel. A read occupies its bank
//! for sensing and then the channel for its bytes only; a write crosses the channel and then occupies its
//! bank. Banks and channels serve first come, first served.

use flashgrain_device::Op;

use crate::config::XpointConfig;
use crate::drive::{Context, Stages};
use crate::engine::{Slab, nanos_of_us, transfer_ns, vary};

/// A part of a read is in its bank's buffer and wants the channel.
const SENSED: u8 = 0;
/// A part of a read has crossed the channel.
const OUT: u8 = 1;
/// A part of a write has crossed the channel and wants its bank.
const IN: u8 = 2;
/// A part of a write is in its bank.
const WRITTEN: u8 = 3;

/// See the module.
#[derive(Debug)]
pub(crate) struct Xpoint {
    chunk_bytes: u64,
    read_ns: u64,
    write_ns: u64,
    jitter: f64,
    channel_bytes_per_s: u64,
    misaligned_read_ns: u64,
    channels_free_ns: Vec<u64>,
    banks_free_ns: Vec<u64>,
    parts: Slab<Part>,
}

/// The part of a command that lies in one chunk.
#[derive(Clone, Copy, Debug)]
struct Part {
    command: u32,
    bank: u32,
    bytes: u32,
    /// Times since the start of the command.
    stages: Stages,
}

impl Xpoint {
    pub fn new(config: &XpointConfig) -> Self {
        let banks = config.channels as usize * config.banks_per_channel as usize;
        Self {
            chunk_bytes: u64::from(config.chunk_bytes),
            read_ns: nanos_of_us(config.read_us),
            write_ns: nanos_of_us(config.write_us),
            jitter: config.jitter,
            channel_bytes_per_s: config.channel_bytes_per_s,
            misaligned_read_ns: nanos_of_us(config.misaligned_read_us),
            channels_free_ns: vec![0; config.channels as usize],
            banks_free_ns: vec![0; banks],
            parts: Slab::default(),
        }
    }

    /// Begins a command (see [`crate::medium::Medium::start`]).
    #[inline]
    pub fn start(&mut self, command: u32, context: &mut Context<'_>) {
        match context.commands[command].op {
            Op::Read => self.split(command, context, Self::sense),
            Op::Write | Op::WriteDsync | Op::WriteThenFlush => self.split(command, context, Self::send_in),
            // A completed write is already on the medium, so a flush has nothing to do.
            Op::Flush | Op::Discard => context.finish(command, &Stages::default()),
        }
    }

    /// An event that was scheduled here.
    #[inline]
    pub fn event(&mut self, kind: u8, index: u32, context: &mut Context<'_>) {
        match kind {
            SENSED => self.cross_channel(index, OUT, context),
            OUT => {
                let part = self.parts[index];
                self.parts.remove(index);
                context.data_ready(part.command, part.bytes, &part.stages);
            }
            IN => {
                context.tally.counters.bank_writes += 1;
                self.occupy_bank(index, self.write_ns, WRITTEN, context);
            }
            _ => {
                let part = self.parts[index];
                self.parts.remove(index);
                let remaining = &mut context.commands[part.command].parts;
                *remaining -= 1;
                if *remaining == 0 {
                    context.finish(part.command, &part.stages);
                }
            }
        }
    }

    /// All operations are lost.
    pub fn power_cycle(&mut self) {
        self.channels_free_ns.fill(0);
        self.banks_free_ns.fill(0);
        self.parts = Slab::default();
    }

    /// Cuts a command at chunk borders and begins every part of it.
    #[inline]
    fn split(
        &mut self,
        command: u32,
        context: &mut Context<'_>,
        begin: fn(&mut Self, u32, &mut Context<'_>),
    ) {
        let entry = &mut context.commands[command];
        let (mut offset, end) = (entry.offset_bytes, entry.offset_bytes + u64::from(entry.length_bytes));
        entry.parts = (end.div_ceil(self.chunk_bytes) - offset / self.chunk_bytes) as u32;
        // The controller joins accesses that are not whole chunks.
        let misaligned =
            entry.op == Op::Read && !(offset % self.chunk_bytes == 0 && end % self.chunk_bytes == 0);
        let stages =
            Stages { controller: if misaligned { self.misaligned_read_ns } else { 0 }, ..Stages::default() };
        while offset < end {
            let chunk = offset / self.chunk_bytes;
            let part_end = end.min((chunk + 1) * self.chunk_bytes);
            let part = Part {
                command,
                bank: (chunk % self.banks_free_ns.len() as u64) as u32,
                bytes: (part_end - offset) as u32,
                stages,
            };
            let index = self.parts.insert(part);
            begin(self, index, context);
            offset = part_end;
        }
    }

    fn sense(&mut self, index: u32, context: &mut Context<'_>) {
        context.tally.counters.bank_reads += 1;
        self.occupy_bank(index, self.read_ns, SENSED, context);
    }

    fn send_in(&mut self, index: u32, context: &mut Context<'_>) {
        self.cross_channel(index, IN, context);
    }

    /// The bank of a part works for it; `then` happens when it is done.
    #[inline]
    fn occupy_bank(&mut self, index: u32, typical_ns: u64, then: u8, context: &mut Context<'_>) {
        let (now, work) = (context.now(), vary(typical_ns, self.jitter, context.random));
        let part = &mut self.parts[index];
        let free = &mut self.banks_free_ns[part.bank as usize];
        let begin = now.max(*free);
        *free = begin + work;
        part.stages.wait += begin - now;
        part.stages.medium += work;
        // Joining parts keeps no bank busy.
        context.at(*free + part.stages.controller, then, index);
    }

    /// The bytes of a part cross its channel; `then` happens when they have.
    #[inline]
    fn cross_channel(&mut self, index: u32, then: u8, context: &mut Context<'_>) {
        let now = context.now();
        let channels = self.channels_free_ns.len();
        let part = &mut self.parts[index];
        let work = transfer_ns(u64::from(part.bytes), self.channel_bytes_per_s);
        let free = &mut self.channels_free_ns[part.bank as usize % channels];
        let begin = now.max(*free);
        *free = begin + work;
        part.stages.wait += begin - now;
        part.stages.medium += work;
        context.at(*free, then, index);
    }
}
