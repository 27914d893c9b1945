//! *write-aligned-stripes* (§4.2): frames of the log that fill stripes write no flash page in part.

use std::sync::atomic::AtomicBool;

use flashgrain_device::Op;
use flashgrain_sqlite_vfs::Sent;
use serde::Serialize;

use super::Options;
use super::stage::{PAGE_BYTES, Phase, Script, Stage};
use crate::listener::Listener;

/// Sizes of flash pages: Figure 14.
pub(super) const FLASH_PAGES: [u64; 4] = [2 << 10, 4 << 10, 8 << 10, 16 << 10];

/// Stripes of the drive.
const STRIPE_BYTES: u64 = 64 << 10;

/// One layout of the log.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    pub is_aligned: bool,
    pub first_pages: i64,
    pub last_pages: i64,
    pub iterations: Vec<Iteration>,
}

/// Inserts in a transaction each, and a checkpoint.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Iteration {
    pub inserts: Phase,
    pub checkpoint_s: f64,
    pub frames: u64,
    /// Flash pages, of each of [`FLASH_PAGES`], that were written beyond those that the frames' pages fill.
    pub extra_flash_pages: [i64; FLASH_PAGES.len()],
}

/// Both layouts.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub target: String,
    pub original: Run,
    pub aligned: Run,
}

impl Run {
    pub fn mean(&self, of: impl Fn(&Iteration) -> f64) -> f64 {
        self.iterations.iter().map(of).sum::<f64>() / self.iterations.len() as f64
    }

    /// Inserts a second over all iterations.
    pub fn per_s(&self) -> f64 {
        1.0 / self.mean(|iteration| 1.0 / iteration.inserts.per_s)
    }

    /// Bytes of flash that a frame wears out (§4.2.3), with the flash page of this number.
    fn wear_bytes(&self, number: usize) -> f64 {
        let extra = self.mean(|iteration| iteration.extra_flash_pages[number] as f64);
        PAGE_BYTES as f64
            + extra * FLASH_PAGES[number] as f64 / self.mean(|iteration| iteration.frames as f64)
    }
}

impl Found {
    /// By how much the original wears out more than aligned frames, with the flash page of this number.
    pub fn wear(&self, number: usize) -> f64 {
        self.original.wear_bytes(number) / self.aligned.wear_bytes(number) - 1.0
    }
}

/// Measures both layouts.
pub(super) fn find(
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<Found> {
    let run = |is_aligned: bool| {
        listener.note(if is_aligned { "a log with aligned frames" } else { "SQLite's log" });
        run(options, is_aligned, interrupt)
    };
    Ok(Found { target: options.log_target.clone(), original: run(false)?, aligned: run(true)? })
}

fn run(options: &Options, is_aligned: bool, interrupt: &AtomicBool) -> anyhow::Result<Run> {
    let script = Script {
        target: &options.log_target,
        // The database's pages begin where stripes do, in both.
        parameters: if is_aligned { "layout=hot:65536:0+log:65536" } else { "layout=hot:65536:0" },
        journal_mode: "wal",
        pairs: options.pairs(),
        operations: options.operations(),
        cache_share: options.cache_share,
        costs: options.costs,
        seed: options.seed,
    };
    let mut stage = Stage::make(script, interrupt)?;
    stage.number("wal_autocheckpoint = 0")?;
    let first_pages = stage.number("page_count")?;
    stage.selects(options.operations(), interrupt)?;
    let mut iterations = Vec::new();
    for _ in 0..options.iterations {
        stage.record(true);
        let inserts = stage.inserts(options.operations(), 1, interrupt)?;
        let sent = stage.record(false);
        let (frames, checkpoint_s) = stage.checkpoint()?;
        // Before the first frame of an aligned log there is a block for its header.
        let first = if is_aligned { STRIPE_BYTES } else { 0 };
        let extra_flash_pages = FLASH_PAGES.map(|bytes| extra_flash_pages(&sent, first, frames, bytes));
        iterations.push(Iteration { inserts, checkpoint_s, frames, extra_flash_pages });
        stage.selects(options.operations(), interrupt)?;
    }
    Ok(Run { is_aligned, first_pages, last_pages: stage.number("page_count")?, iterations })
}

/// Flash pages that writes to the log have touched, minus those that the pages of its frames fill. A flash
/// page that two commits write to is written twice. The bytes before `first` are the log's header, which is
/// written once in an iteration.
fn extra_flash_pages(sent: &[Sent], first: u64, frames: u64, flash_page_bytes: u64) -> i64 {
    let of_log = |sent: &&Sent| sent.op == Op::Write && sent.file.ends_with("wal");
    let touched: u64 = sent
        .iter()
        .filter(of_log)
        .map(|sent| {
            let (begin, end) = (sent.asked.start.max(first), sent.asked.end.max(first));
            end.div_ceil(flash_page_bytes) - begin / flash_page_bytes
        })
        .sum();
    touched as i64 - (frames * PAGE_BYTES / flash_page_bytes) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_across_a_flash_page_costs_one_more() {
        let write = |offset_bytes, length_bytes| Sent {
            file: "pairs-grainwal".into(),
            op: Op::Write,
            offset_bytes,
            length_bytes,
            asked: offset_bytes..offset_bytes + length_bytes,
        };
        let of_database = Sent { file: "pairs".into(), ..write(0, 4096) };
        // Two frames of a commit, as SQLite lays them out and aligned.
        let plain = [write(0, 32 + 2 * (24 + PAGE_BYTES)), of_database.clone()];
        assert_eq!(FLASH_PAGES.map(|bytes| extra_flash_pages(&plain, 0, 2, bytes)), [1; 4]);
        let aligned = [write(0, 4096), write(STRIPE_BYTES, 2 * PAGE_BYTES), of_database];
        assert_eq!(FLASH_PAGES.map(|bytes| extra_flash_pages(&aligned, STRIPE_BYTES, 2, bytes)), [0; 4]);
    }
}
