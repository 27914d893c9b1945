//! Effects of faults on commands and drives. At each stage of a command, the world calls this module if, and
//! only if, the command has a fault.

use std::ops::Range;

use flashgrain_device::Op;
use rand::RngExt;

use super::command::{Command, Stages};
use super::world::World;
use crate::content::{Content, SECTOR_BYTES};
use crate::engine::Event;
use crate::fault::{Discarded, Fault, FaultKind, FlushLoss, PowerCut, Survivors, Trigger};

/// Garbage is made in pieces of this size.
const GARBAGE_BYTES: u64 = 64 << 10;

impl World {
    /// Arms a fault; its number.
    pub fn inject(&mut self, fault: Fault) -> u32 {
        if let (true, Trigger::TimeNs(time)) = (fault.kind.strikes_by_itself(), fault.at) {
            self.events.at(time.max(self.events.now()), Event::Strike);
        }
        let stale = fault.kind == FaultKind::StaleRead;
        let before =
            if stale { self.drives.iter().map(|drive| drive.content.clone()).collect() } else { Vec::new() };
        let index = self.faults.add(fault, before);
        self.strike_due();
        index
    }

    /// Whatever strikes by itself at this point does.
    pub(super) fn strike_due(&mut self) {
        while let Some(fault) = self.faults.due(self.events.now(), self.events.happened()) {
            self.strike(fault);
        }
    }

    /// Something happens to the device. Whether it is still there.
    fn strike(&mut self, fault: u32) -> bool {
        match self.faults.kind(fault).clone() {
            FaultKind::PowerCut(cut) => self.power_cut(&cut),
            FaultKind::DeviceGone => {
                self.power_cut(&PowerCut { survivors: Survivors::All, ..PowerCut::default() });
            }
            FaultKind::FlipAtRest { bit } => self.flip_at_rest(fault, bit),
            _ => {}
        }
        self.answers
    }

    fn flip_at_rest(&mut self, fault: u32, bit: Option<u64>) {
        let range = self.faults.range(fault);
        let end = range.end.min(self.capacity_bytes());
        let bits = end.saturating_sub(range.start) * 8;
        if bits == 0 {
            return;
        }
        let bit = bit.unwrap_or_else(|| self.faults.random().random_range(0..bits)) % bits;
        let place = self.stripes.first_segment(range.start + bit / 8, 1);
        self.drives[place.member as usize].content.flip(place.offset_bytes, (bit % 8) as u32);
    }

    /// A drive takes up a command: which fault it has, and by how much it is delayed.
    pub(super) fn afflict(&mut self, index: u32) -> u64 {
        let (now, happened) = (self.events.now(), self.events.happened());
        let command = &mut self.commands[index];
        let range = match command.op {
            Op::Flush => 0..0,
            _ => {
                let start = self.stripes.whole_offset(u32::from(command.drive), command.offset_bytes);
                start..start + u64::from(command.length_bytes)
            }
        };
        command.fault = self.faults.choose(command.op, &range, now, happened);
        if command.is_well() {
            return 0;
        }
        match self.faults.kind(command.fault) {
            FaultKind::Stall { span, whole_drive: false } => span.0,
            FaultKind::Stall { span, whole_drive: true } => {
                self.drives[usize::from(command.drive)].host.stall(now, span.0);
                0
            }
            FaultKind::IgnoredFlush if command.op == Op::WriteDsync => {
                command.op = Op::Write;
                0
            }
            _ => 0,
        }
    }

    /// A faulty command has been processed. Whether it goes on as if it were well.
    pub(super) fn start_faulty(&mut self, index: u32) -> bool {
        let Command { fault, drive, op, .. } = self.commands[index];
        match *self.faults.kind(fault) {
            FaultKind::PowerCut(_) | FaultKind::DeviceGone | FaultKind::FlipAtRest { .. } => {
                if op == Op::Write || op == Op::WriteDsync {
                    self.send_in(index);
                    self.strike(fault);
                    return false;
                }
                self.strike(fault)
            }
            FaultKind::FlushError { data } => {
                // A write that is durable when it is answered does not depend on flushes.
                let is_durable = |command: &&Command| command.drive == drive && command.op == Op::WriteDsync;
                let durable: Vec<u64> =
                    self.commands.iter().filter(is_durable).map(|command| command.version).collect();
                let content = &mut self.drives[usize::from(drive)].content;
                match data {
                    FlushLoss::Kept => {}
                    FlushLoss::Dropped => content.cut_power(|version, _| durable.contains(&version)),
                    FlushLoss::Undurable => content.doom_unsettled(|version| durable.contains(&version)),
                }
                self.fail(index, libc::EIO);
                false
            }
            FaultKind::IgnoredFlush if op == Op::Flush => {
                self.fail(index, 0);
                false
            }
            FaultKind::AfterDiscard { leaves } => {
                if leaves == Discarded::Garbage {
                    self.put_garbage(index);
                }
                self.start_medium(index);
                false
            }
            _ => true,
        }
    }

    /// The command fails without reaching the medium; `errno` may be 0.
    fn fail(&mut self, index: u32, errno: i32) {
        let command = &mut self.commands[index];
        command.errno = errno;
        let drive = command.drive;
        let (_, mut context) = self.parts(drive);
        context.finish(index, &Stages::default());
    }

    fn put_garbage(&mut self, index: u32) {
        let Command { drive, offset_bytes, length_bytes, .. } = self.commands[index];
        let end = offset_bytes + u64::from(length_bytes);
        let mut offset = offset_bytes;
        while offset < end {
            let mut garbage = vec![0; GARBAGE_BYTES.min(end - offset) as usize];
            self.faults.random().fill(garbage.as_mut_slice());
            self.drives[usize::from(drive)].content.put(offset, &garbage);
            offset += garbage.len() as u64;
        }
    }

    /// The data of a faulty write have arrived. It returns whether the medium gets the write.
    pub(super) fn store_faulty(&mut self, index: u32) -> bool {
        let command = &mut self.commands[index];
        let content = &mut self.drives[usize::from(command.drive)].content;
        // SAFETY: the request is in flight, so its memory is valid and no other code writes it.
        let bytes = unsafe { command.bytes() };
        let (version, offset) = (command.version, command.offset_bytes);
        match *self.faults.kind(command.fault) {
            FaultKind::WriteError { done_bytes } => {
                let whole = u64::from(done_bytes.min(command.length_bytes)) / SECTOR_BYTES * SECTOR_BYTES;
                content.write(version, offset, &bytes[..whole as usize]);
                command.errno = libc::EIO;
                if whole == 0 {
                    self.fail(index, libc::EIO);
                    return false;
                }
            }
            FaultKind::NoSpace => {
                self.fail(index, libc::ENOSPC);
                return false;
            }
            FaultKind::LostWrite => {}
            FaultKind::MisdirectedWrite { by_bytes } => {
                content.put(elsewhere(content, offset, bytes.len(), by_bytes), bytes);
            }
            FaultKind::FlipInFlight { bit } => {
                let mut bytes = bytes.to_vec();
                flip(&mut bytes, bit, self.faults.random());
                content.write(version, offset, &bytes);
            }
            _ => content.write(version, offset, bytes),
        }
        true
    }

    /// A faulty read is done: its bytes; the errno, or 0.
    pub(super) fn read_faulty(&mut self, index: u32, bytes: &mut [u8]) -> i32 {
        let Command { fault, drive, offset_bytes, .. } = self.commands[index];
        let content = &self.drives[usize::from(drive)].content;
        match *self.faults.kind(fault) {
            FaultKind::ReadError { done_bytes } => {
                let done = bytes.len().min(done_bytes as usize);
                content.read(offset_bytes, &mut bytes[..done]);
                return libc::EIO;
            }
            FaultKind::MisdirectedRead { by_bytes } => {
                content.read(elsewhere(content, offset_bytes, bytes.len(), by_bytes), bytes);
            }
            FaultKind::StaleRead => {
                self.faults.before(fault, drive).unwrap_or(content).read(offset_bytes, bytes);
            }
            FaultKind::FlipInFlight { bit } => {
                content.read(offset_bytes, bytes);
                flip(bytes, bit, self.faults.random());
            }
            _ => content.read(offset_bytes, bytes),
        }
        0
    }

    fn capacity_bytes(&self) -> u64 {
        self.drives.first().map_or(0, |drive| self.stripes.capacity_bytes(drive.content.capacity_bytes()))
    }
}

/// Start of a range that is displaced by `by_bytes`, in whole sectors; the range stays within the drive.
fn elsewhere(content: &Content, offset_bytes: u64, length: usize, by_bytes: i64) -> u64 {
    let capacity = content.capacity_bytes();
    let sector = SECTOR_BYTES as i64;
    let by = (by_bytes / sector * sector).rem_euclid(capacity as i64) as u64;
    let Range { start, end } = 0..capacity - length as u64;
    ((offset_bytes + by) % capacity).clamp(start, end)
}

fn flip(bytes: &mut [u8], bit: Option<u64>, random: &mut impl rand::Rng) {
    let bits = bytes.len() as u64 * 8;
    let bit = bit.unwrap_or_else(|| random.random_range(0..bits)) % bits;
    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
}
