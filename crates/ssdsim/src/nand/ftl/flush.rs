//! Flushes: the content of a volatile cache must survive a power cut.
//!
//! Rows that are full are on their way to flash anyway. Units in rows that are not are copied to a journal,
//! which is programmed at once, many of them together; so a flush does not change where data go.

use std::collections::VecDeque;

use super::geometry::Geometry;
use super::rows::{Rows, Stream};
use super::write::ending_with;
use super::{Ftl, Purpose};
use crate::drive::{Context, Stages};
use crate::nand::flash::{Cause, Flash, FlashDone, FlashKind, FlashOp};

/// See the module.
#[derive(Debug)]
pub(super) struct Flushes {
    /// Number of the oldest row that is sealed and not programmed; whether those from it on are programmed.
    first: u64,
    programmed: VecDeque<bool>,
    /// Flushes, and the first row that they do not wait for.
    waiting: VecDeque<(u64, u32)>,
    /// Rows written to the journal of each die, until its block is full.
    journal_rows: Vec<u32>,
    next_journal: u32,
}

impl Flushes {
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            first: 0,
            programmed: VecDeque::new(),
            waiting: VecDeque::new(),
            journal_rows: vec![0; geometry.dies as usize],
            next_journal: 0,
        }
    }

    /// A row is going to be programmed. It returns its number.
    pub fn begin(&mut self) -> u64 {
        self.programmed.push_back(false);
        self.first + self.programmed.len() as u64 - 1
    }

    /// The row `number` is programmed.
    pub fn end(&mut self, number: u64) {
        self.programmed[(number - self.first) as usize] = true;
        while self.programmed.front() == Some(&true) {
            self.programmed.pop_front();
            self.first += 1;
        }
    }

    /// Whether rows are on their way to flash.
    pub fn under_way(&self) -> bool {
        !self.programmed.is_empty()
    }

    /// The power is gone: nothing is on its way.
    pub fn power_cycle(&mut self) {
        self.first += self.programmed.len() as u64;
        self.programmed.clear();
        self.waiting.clear();
    }
}

impl Ftl {
    /// Completes `command` when everything that was written before it survives a power cut.
    pub(super) fn start_flush(&mut self, command: u32, flash: &mut Flash, context: &mut Context<'_>) {
        if self.volatile {
            self.write_journal(flash, context);
        }
        if self.volatile && self.flushes.under_way() {
            let until = self.flushes.first + self.flushes.programmed.len() as u64;
            self.flushes.waiting.push_back((until, command));
            return;
        }
        let wait = context.now() - context.commands[command].started_ns;
        context.finish(command, &Stages { wait, ..Stages::default() });
    }

    /// Copies units of open rows that a power cut would lose to the journal.
    fn write_journal(&mut self, flash: &mut Flash, context: &mut Context<'_>) {
        let mut journal = None;
        let open: Vec<u32> =
            self.placement.open_host_rows().filter(|row| self.rows[*row].volatile > 0).collect();
        for row in open {
            self.rows[row].volatile = 0;
            for index in 0..self.rows[row].slots.len() {
                let slot = &mut self.rows[row].slots[index];
                if std::mem::replace(&mut slot.durable, true) {
                    continue;
                }
                let copy = *slot;
                let to = *journal.get_or_insert_with(|| self.flushes.next_journal_row(&mut self.rows));
                self.rows[to].slots.push(copy);
                if self.rows[to].slots.len() as u32 == self.geometry.units_per_row {
                    self.program_journal(to, flash, context);
                    journal = None;
                }
            }
        }
        if let Some(row) = journal {
            self.program_journal(row, flash, context);
        }
    }

    fn program_journal(&mut self, row: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let entry = &mut self.rows[row];
        (entry.sealed, entry.number) = (true, self.flushes.begin());
        let die = entry.die;
        self.program_if_ready(row, flash, context);
        let written = &mut self.flushes.journal_rows[die as usize];
        *written += 1;
        if *written == self.geometry.rows_per_block {
            // The journal's oldest block holds nothing that has not been programmed elsewhere since.
            *written = 0;
            context.tally.counters.erases += 1;
            let op = FlashOp {
                kind: FlashKind::Erase,
                cause: Cause::Mapping,
                urgent: false,
                die,
                row: 0,
                transfer_bytes: 0,
                token: Purpose::JournalErase.token(0),
            };
            flash.submit(op, context);
        }
    }

    /// A row has been programmed: flushes that waited for it, and for all before it, are done.
    pub(super) fn finish_flushes(&mut self, done: &FlashDone, context: &mut Context<'_>) {
        while let Some(&(until, command)) = self.flushes.waiting.front()
            && until <= self.flushes.first
        {
            self.flushes.waiting.pop_front();
            let total_ns = context.now() - context.commands[command].started_ns;
            context.finish(command, &ending_with(done, total_ns));
        }
    }
}

impl Flushes {
    /// A row of the journal of the next die. Its pages are of the first, fastest type.
    fn next_journal_row(&mut self, rows: &mut Rows) -> u32 {
        let die = self.next_journal;
        self.next_journal = (die + 1) % self.journal_rows.len() as u32;
        rows.insert(Stream::Journal, die, 0, 0)
    }
}
