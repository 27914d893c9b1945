//! Operations on the array, from their submission to their end.

use super::channel::Channel;
use super::server::{Running, SUSPENSION_LIMIT, Server, Suspended};
use super::timing::Timing;
use super::{Cause, FlashDone, FlashKind, FlashOp};
use crate::config::{Interleave, NandConfig};
use crate::drive::Context;
use crate::engine::Slab;

/// Events: the cells have been sensed; the index is the server.
const SENSED: u8 = 0;
/// The operation has ended; the index is the server.
const ENDED: u8 = 1;
/// A channel is free again while operations wait for it; the index is the channel.
const RELEASED: u8 = 2;
/// The running operation has been suspended; the index is the server.
const SUSPENDED: u8 = 3;
/// An operation has ended that ran together with another; the index is its slot.
const JOINED: u8 = 4;

/// See the module. A server is busy from the moment when a channel takes its command until the operation has
/// ended.
#[derive(Debug)]
pub(crate) struct Flash {
    timing: Timing,
    /// One per die, or per chip where a busy chip blocks its other dies.
    servers: Vec<Server>,
    channels: Vec<Channel>,
    slots: Slab<SubmittedOp>,
    reads_first: bool,
    suspend_program: bool,
    suspend_erase: bool,
    /// Dies of the array, if the planes of each are numbered as more dies and may work together.
    joining_dies: Option<u32>,
}

/// An operation that has been submitted.
#[derive(Clone, Copy, Debug)]
struct SubmittedOp {
    op: FlashOp,
    submitted_ns: u64,
    /// Collection time of the server at submission; after the operation has begun, the part of its waiting
    /// that was for collection.
    collect_ns: u64,
    /// The next of the operations that run together with it on other planes.
    joined: Option<u32>,
    /// How long the work took, once another that ran together with it has ended.
    medium_ns: u64,
}

impl Flash {
    pub fn new(config: &NandConfig) -> Self {
        let chips = config.channels * config.chips_per_channel;
        let servers = match config.interleave {
            Interleave::Dies => chips * config.dies_per_chip,
            Interleave::ChipBusy => chips,
        };
        Self {
            timing: Timing::new(config),
            servers: (0..servers).map(|_| Server::default()).collect(),
            channels: (0..config.channels).map(|_| Channel::default()).collect(),
            slots: Slab::default(),
            reads_first: config.reads_first,
            suspend_program: config.suspend_program,
            suspend_erase: config.suspend_erase,
            joining_dies: (config.multi_plane && config.parts_per_die() > 1).then_some(config.dies() as u32),
        }
    }

    /// Queues an operation.
    #[inline]
    pub fn submit(&mut self, op: FlashOp, context: &mut Context<'_>) {
        let now = context.now();
        let index = op.die as usize % self.servers.len();
        let server = &mut self.servers[index];
        let slot = SubmittedOp {
            op,
            submitted_ns: now,
            collect_ns: server.collected_ns(now),
            joined: None,
            medium_ns: 0,
        };
        let slot = self.slots.insert(slot);
        let queue = if op.urgent {
            &mut server.urgent
        } else if self.reads_first && op.is_foreground_read() {
            &mut server.reads
        } else {
            &mut server.others
        };
        queue.push_back(slot);
        if server.running.is_none() {
            self.go_on(index, context);
        } else if op.is_foreground_read() {
            self.suspend(index, context);
        }
    }

    /// A read has arrived: the running operation gives way to it, if the drive can do that and if it is worth
    /// it.
    fn suspend(&mut self, index: usize, context: &mut Context<'_>) {
        let now = context.now();
        let server = &mut self.servers[index];
        let Some(running) = server.running else { return };
        let can = match self.slots[running.slot].op.kind {
            FlashKind::Read => false,
            FlashKind::Program => self.suspend_program,
            FlashKind::Erase => self.suspend_erase,
        };
        let remaining_ns = running.end_ns.saturating_sub(now);
        if !can
            || server.suspended.is_some()
            || running.suspensions >= SUSPENSION_LIMIT
            || now < running.cells_from_ns
            || remaining_ns <= self.timing.suspend_ns
        {
            return;
        }
        let Some(running) = server.stop(now) else { return };
        let running = Running { suspensions: running.suspensions + 1, ..running };
        server.suspended = Some(Suspended { running, remaining_ns, remaining_reads: SUSPENSION_LIMIT });
        server.asking = true;
        context.at(now + self.timing.suspend_ns, SUSPENDED, index as u32);
    }

    /// A server that is not busy asks for its channel if it has something to do, or continues its suspended
    /// operation.
    #[inline]
    fn go_on(&mut self, index: usize, context: &mut Context<'_>) {
        let server = &mut self.servers[index];
        if server.asking {
            return;
        }
        if server.has_next() {
            server.asking = true;
            self.ask(index, context);
        } else if let Some(Suspended { running, remaining_ns, .. }) = server.suspended.take() {
            let now = context.now();
            let running =
                Running { began_ns: now, cells_from_ns: now, end_ns: now + remaining_ns, ..running };
            server.running = Some(running);
            context.at(running.end_ns, ENDED, index as u32);
        }
    }

    fn ask(&mut self, index: usize, context: &mut Context<'_>) {
        let channel = index % self.channels.len();
        self.channels[channel].commands.push_back(index as u32);
        self.serve(channel, context);
    }

    /// A free channel serves the next transfer or command.
    #[inline]
    fn serve(&mut self, index: usize, context: &mut Context<'_>) {
        let now = context.now();
        while self.channels[index].free_ns <= now {
            let channel = &mut self.channels[index];
            if let Some(server) = channel.transfers.pop_front() {
                self.transfer(server as usize, context);
            } else if let Some(server) = channel.commands.pop_front() {
                self.begin(server as usize, context);
            } else {
                return;
            }
        }
        let channel = &mut self.channels[index];
        if channel.is_wanted() && channel.release_ns != channel.free_ns {
            channel.release_ns = channel.free_ns;
            context.at(channel.free_ns, RELEASED, index as u32);
        }
    }

    /// The channel transfers the command of a server's next operation, and the data of a program.
    #[inline]
    fn begin(&mut self, index: usize, context: &mut Context<'_>) {
        let now = context.now();
        let server = &mut self.servers[index];
        server.asking = false;
        let Some(slot) = server.next() else { return self.go_on(index, context) };
        if let Some(dies) = self.joining_dies {
            join(server, &mut self.slots, slot, dies);
        }
        let (mut next, mut transfer_bytes) = (Some(slot), 0);
        while let Some(SubmittedOp { op, collect_ns, joined, .. }) = next.map(|slot| &mut self.slots[slot]) {
            *collect_ns = server.collected_ns(now) - *collect_ns;
            transfer_bytes += op.transfer_bytes;
            next = *joined;
        }
        let op = &self.slots[slot].op;
        let transfer_ns = self.timing.transfer_ns(transfer_bytes);
        let (into_ns, out_ns, end_kind) = match op.kind {
            FlashKind::Read => (self.timing.command_ns, transfer_ns, SENSED),
            FlashKind::Program => (self.timing.command_ns + transfer_ns, 0, ENDED),
            FlashKind::Erase => (self.timing.command_ns, 0, ENDED),
        };
        let cells_from_ns = now + into_ns;
        let cells_ns = self.timing.cells_ns(op, context.random);
        let end_ns = cells_from_ns + cells_ns;
        server.running = Some(Running {
            slot,
            began_ns: now,
            cells_from_ns,
            end_ns,
            end_kind,
            medium_ns: into_ns + cells_ns + out_ns,
            for_collection: op.cause == Cause::Collect,
            suspensions: 0,
        });
        let channel = index % self.channels.len();
        self.channels[channel].free_ns = cells_from_ns;
        context.at(end_ns, end_kind, index as u32);
    }

    /// The channel transfers the data that a server has sensed.
    #[inline]
    fn transfer(&mut self, index: usize, context: &mut Context<'_>) {
        let Some(running) = &mut self.servers[index].running else { return };
        let (mut next, mut bytes) = (Some(running.slot), 0);
        while let Some(slot) = next.map(|slot| &self.slots[slot]) {
            bytes += slot.op.transfer_bytes;
            next = slot.joined;
        }
        running.end_ns = context.now() + self.timing.transfer_ns(bytes);
        running.end_kind = ENDED;
        let channel = index % self.channels.len();
        self.channels[channel].free_ns = running.end_ns;
        context.at(running.end_ns, ENDED, index as u32);
    }

    /// An event of the array (kinds below [`super::super::FIRST_FTL_KIND`]); at most one operation is done in
    /// it.
    #[inline]
    pub fn event(&mut self, kind: u8, index: u32, context: &mut Context<'_>) -> Option<FlashDone> {
        let index = index as usize;
        match kind {
            RELEASED => self.serve(index, context),
            SUSPENDED => {
                if self.servers[index].asking {
                    self.ask(index, context);
                }
            }
            JOINED => {
                let slot = index as u32;
                return Some(self.done(slot, self.slots[slot].medium_ns, context));
            }
            SENSED => {
                let channel = index % self.channels.len();
                self.channels[channel].transfers.push_back(index as u32);
                self.serve(channel, context);
            }
            _ => return self.end(index, context),
        }
        None
    }

    fn end(&mut self, index: usize, context: &mut Context<'_>) -> Option<FlashDone> {
        let now = context.now();
        let server = &mut self.servers[index];
        // The end of an operation that was suspended since has been overtaken.
        let ended = |running: &Running| (running.end_ns, running.end_kind) == (now, ENDED);
        let Running { slot, medium_ns, .. } = server.running.filter(ended)?;
        server.stop(now);
        self.go_on(index, context);
        self.serve(index % self.channels.len(), context);
        Some(self.done(slot, medium_ns, context))
    }

    /// The operation has ended, after `medium_ns` of work; the next of those that ran together with it ends
    /// with an event of its own.
    fn done(&mut self, slot: u32, medium_ns: u64, context: &mut Context<'_>) -> FlashDone {
        let now = context.now();
        let SubmittedOp { op, submitted_ns, collect_ns, joined, .. } = self.slots[slot];
        self.slots.remove(slot);
        if let Some(joined) = joined {
            self.slots[joined].medium_ns = medium_ns;
            context.at(now, JOINED, joined);
        }
        let wait_ns = now - submitted_ns - medium_ns - collect_ns;
        let out_ns = if op.kind == FlashKind::Read { self.timing.transfer_ns(op.transfer_bytes) } else { 0 };
        FlashDone { op, wait_ns, collect_ns, medium_ns, out_ns }
    }

    /// All operations are lost.
    pub fn power_cycle(&mut self) {
        self.servers.iter_mut().for_each(|server| *server = Server::default());
        self.channels.iter_mut().for_each(|channel| *channel = Channel::default());
        self.slots = Slab::default();
    }
}

/// Takes operations out of the server's queue that can run together with the operation `first`, which has
/// just been taken out: the same for the same row on other planes of its die, of which there are `dies` in
/// all.
fn join(server: &mut Server, slots: &mut Slab<SubmittedOp>, first: u32, dies: u32) {
    let FlashOp { kind, die, row, cause, urgent, .. } = slots[first].op;
    let mut planes = 1_u64 << (die / dies);
    let mut last = first;
    let is_read = kind == FlashKind::Read && cause != Cause::Collect;
    for queue in [&mut server.urgent, if is_read { &mut server.reads } else { &mut server.others }] {
        queue.retain(|slot| {
            let op = &slots[*slot].op;
            let plane = 1_u64 << (op.die / dies);
            if op.die % dies != die % dies || planes & plane != 0 {
                return true;
            }
            let joins = (op.kind, op.row, op.urgent) == (kind, row, urgent);
            if joins || op.kind == FlashKind::Program {
                // Pages of a block are programmed in their order: none overtakes another of its plane.
                planes |= plane;
            }
            if joins {
                slots[last].joined = Some(*slot);
                last = *slot;
            }
            !joins
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        CollectConfig, LayoutConfig, MappingCache, MappingConfig, NandConfig, PlacementRule, WriteCacheConfig,
    };
    use crate::drive::testing::Surroundings;

    /// Two channels of two chips of two dies; a byte takes a nanosecond.
    fn config() -> NandConfig {
        NandConfig {
            channels: 2,
            chips_per_channel: 2,
            dies_per_chip: 2,
            planes_per_die: 1,
            pages_per_block: 8,
            page_bytes: 4096,
            over_provisioning: 0.2,
            read_us: vec![50.0, 70.0],
            program_us: vec![500.0],
            erase_us: 3000.0,
            jitter: 0.0,
            channel_mega_transfers_per_s: 1000.0,
            channel_command_ns: 100,
            interleave: Interleave::Dies,
            multi_plane: false,
            reads_first: true,
            suspend_program: false,
            suspend_erase: false,
            suspend_us: 20.0,
            misaligned_read_us: 0.0,
            mapping: MappingConfig {
                unit_bytes: 4096,
                entry_bytes: 4,
                cache: MappingCache::Whole,
                write_back: true,
                lookup_ns: 0,
            },
            write_cache: WriteCacheConfig { bytes: 0, volatile: false },
            layout: LayoutConfig {
                stripe_bytes: 4096,
                chunk_bytes: 4096,
                desirable_write_bytes: 4096,
                small_write_dies: 1,
                placement: PlacementRule::InTurn,
            },
            collect: CollectConfig::default(),
        }
    }

    const READ: FlashOp = FlashOp {
        kind: FlashKind::Read,
        cause: Cause::Host,
        urgent: false,
        die: 0,
        row: 0,
        transfer_bytes: 4096,
        token: 0,
    };
    const PROGRAM: FlashOp = FlashOp { kind: FlashKind::Program, ..READ };

    /// When each operation is done, by its token; all are submitted at the times given with them.
    fn run(config: &NandConfig, ops: &[(u64, FlashOp)]) -> Vec<(u64, FlashDone)> {
        let (mut flash, mut around) = (Flash::new(config), Surroundings::new(false));
        // The times of submission are events of their own.
        for (token, (at_ns, _)) in ops.iter().enumerate() {
            around.context().at(*at_ns, 99, token as u32);
        }
        let mut done = Vec::new();
        while let Some((kind, index)) = around.next_medium_event() {
            let mut context = around.context();
            if kind == 99 {
                let (_, op) = ops[index as usize];
                flash.submit(FlashOp { token: u64::from(index), ..op }, &mut context);
            } else if let Some(end) = flash.event(kind, index, &mut context) {
                done.push((context.now(), end));
            }
        }
        assert_eq!((done.len(), flash.slots.len()), (ops.len(), 0));
        for (at_ns, end) in &done {
            let submitted = ops[end.op.token as usize].0;
            assert_eq!(end.wait_ns + end.collect_ns + end.medium_ns, at_ns - submitted, "{end:?}");
        }
        done
    }

    fn ends(config: &NandConfig, ops: &[(u64, FlashOp)]) -> Vec<(u64, u64)> {
        run(config, ops).iter().map(|(at_ns, done)| (done.op.token, *at_ns)).collect()
    }

    #[test]
    fn an_idle_die_takes_the_sum_of_the_parts() {
        assert_eq!(ends(&config(), &[(0, READ)]), [(0, 100 + 50_000 + 4096)]);
        assert_eq!(ends(&config(), &[(0, FlashOp { row: 3, ..READ })]), [(0, 100 + 70_000 + 4096)]);
        assert_eq!(ends(&config(), &[(0, PROGRAM)]), [(0, 100 + 4096 + 500_000)]);
        let erase = FlashOp { kind: FlashKind::Erase, transfer_bytes: 0, ..READ };
        assert_eq!(ends(&config(), &[(0, erase)]), [(0, 100 + 3_000_000)]);
    }

    #[test]
    fn dies_of_a_channel_share_it_and_dies_of_others_do_not() {
        let on = |die| (0, FlashOp { die, ..READ });
        // Dies 0 and 2 are on channel 0, die 1 on channel 1.
        assert_eq!(ends(&config(), &[on(0), on(1), on(2)]), [(0, 54_196), (1, 54_196), (2, 54_196 + 4096)]);
    }

    #[test]
    fn a_busy_chip_blocks_its_other_die_only_in_chip_busy_mode() {
        // Dies 0 and 4 are in the same chip.
        let both = [(0, READ), (0, FlashOp { die: 4, ..READ })];
        assert_eq!(ends(&config(), &both), [(0, 54_196), (1, 54_196 + 4096)]);
        let chip_busy = NandConfig { interleave: Interleave::ChipBusy, ..config() };
        assert_eq!(ends(&chip_busy, &both), [(0, 54_196), (1, 2 * 54_196)]);
    }

    #[test]
    fn reads_overtake_waiting_programs_if_the_drive_does_that() {
        let ops = [(0, PROGRAM), (1, PROGRAM), (2, READ)];
        let program = 100 + 4096 + 500_000;
        assert_eq!(ends(&config(), &ops), [(0, program), (2, program + 54_196), (1, 2 * program + 54_196)]);
        let in_order = NandConfig { reads_first: false, ..config() };
        assert_eq!(ends(&in_order, &ops), [(0, program), (1, 2 * program), (2, 2 * program + 54_196)]);
    }

    #[test]
    fn a_read_suspends_a_program_and_the_program_goes_on_where_it_was() {
        let suspending = NandConfig { suspend_program: true, ..config() };
        let program = 100 + 4096 + 500_000;
        assert_eq!(
            ends(&suspending, &[(0, PROGRAM), (100_000, READ)]),
            [(1, 100_000 + 20_000 + 54_196), (0, program + 20_000 + 54_196)]
        );
        // Too late to be worth it.
        assert_eq!(
            ends(&suspending, &[(0, PROGRAM), (program - 10_000, READ)]),
            [(0, program), (1, program + 54_196)]
        );
    }

    #[test]
    fn nothing_is_programmed_while_a_program_is_suspended() {
        let suspending = NandConfig { suspend_program: true, ..config() };
        let urgent = FlashOp { urgent: true, cause: Cause::Collect, ..PROGRAM };
        let ops = [(0, PROGRAM), (100_000, READ), (110_000, READ), (130_000, urgent)];
        let program = 100 + 4096 + 500_000;
        // The first read has begun when the urgent program comes; the second waits for it.
        let resumed = program + 20_000 + 54_196;
        assert_eq!(
            ends(&suspending, &ops),
            [(1, 174_196), (0, resumed), (3, resumed + program), (2, resumed + program + 54_196)]
        );
    }

    #[test]
    fn programs_do_not_starve_behind_reads() {
        let suspending = NandConfig { suspend_program: true, ..config() };
        let reads = (0..400).map(|index| (1000 + 40_000 * index, READ));
        let ops: Vec<_> = std::iter::once((0, PROGRAM)).chain(reads).collect();
        let order = ends(&suspending, &ops);
        let position = order.iter().position(|(token, _)| *token == 0).unwrap();
        assert!(position < 300, "{position}");
    }

    #[test]
    fn waiting_for_collection_is_counted_as_that() {
        let collect = FlashOp { cause: Cause::Collect, ..PROGRAM };
        let done = run(&config(), &[(0, collect), (204_196, READ)]);
        let (_, read) = done[1];
        assert_eq!((read.wait_ns, read.collect_ns, read.medium_ns), (0, 300_000, 54_196));
    }

    #[test]
    fn urgent_operations_go_first() {
        let urgent = FlashOp { urgent: true, cause: Cause::Collect, ..PROGRAM };
        let order = ends(&config(), &[(0, READ), (1, READ), (2, urgent)]);
        assert_eq!(order.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [0, 2, 1]);
    }

    #[test]
    fn jitter_varies_around_the_typical_latency() {
        let noisy = NandConfig { jitter: 0.1, read_us: vec![50.0], ..config() };
        let ops: Vec<_> = (0..4000).map(|index| (index * 100_000, READ)).collect();
        let cells: Vec<f64> =
            run(&noisy, &ops).iter().map(|(_, done)| done.medium_ns as f64 - 4196.0).collect();
        let mean = cells.iter().sum::<f64>() / 4000.0;
        let deviation = (cells.iter().map(|cell| (cell - mean).powi(2)).sum::<f64>() / 4000.0).sqrt();
        assert!(
            (mean / 50_000.0 - 1.0).abs() < 0.01 && (deviation / 5_000.0 - 1.0).abs() < 0.05,
            "{mean} {deviation}"
        );
    }
}
