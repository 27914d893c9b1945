//! The counts of each file.

use flashgrain_model::Access;
use serde::Serialize;

use super::drive::{Drive, Prices};
use super::run::Runs;
use super::spread::Spread;
use crate::rules::units;
use crate::{Layer, Operation, Rule};

/// The most examples that are kept of one file and rule.
const EXAMPLES_MAX: usize = 3;

/// The most lengths of writes that are told apart.
const LENGTHS_MAX: usize = 64;

/// Requests of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// How many.
    pub requests: u64,
    /// How many bytes.
    pub bytes: u64,
    /// How many of them begin where the last one of the file ended.
    pub sequential: u64,
}

/// Requests of any length that begin at hot locations: rule 2 judges only those as long as a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AtHot {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// A request that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub length_bytes: u64,
}

/// Findings of one rule in a file, or in several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RuleTally {
    /// Requests that the rule is about.
    pub judged: u64,
    /// Requests that break it.
    pub broken: u64,
    /// Bytes of requests that break it.
    pub broken_bytes: u64,
    /// Seconds that breaking it costs on the drive, as its model predicts.
    pub cost_seconds: f64,
    /// Flash pages that breaking it costs: for rule 1 those that fill pages up, for rule 3 pages that were
    /// overwritten in part, for rule 5 pages beyond the fewest.
    pub cost_flash_pages: f64,
    /// The first that break it.
    pub examples: Vec<Example>,
}

/// All that is counted of a file, or of several.
#[derive(Clone, Debug, Default)]
pub(super) struct FileTally {
    pub files: u64,
    /// Where its requests were seen.
    pub layer: Layer,
    /// Whether the requests are known to belong to a file; else they are to a drive.
    pub is_file: bool,
    pub reads: Count,
    pub writes: Count,
    pub at_hot: AtHot,
    pub flushes: u64,
    pub discards: u64,
    /// Seconds of all reads and writes, as the drive's model predicts.
    pub seconds: f64,
    pub rules: [RuleTally; 5],
    pub runs: Runs,
    pub spread: Option<Box<Spread>>,
    /// How often which length was written, the first ones only.
    pub written_lengths: Vec<(u64, u64)>,
    ends: [Option<u64>; 2],
    is_flushed: bool,
}

/// A request where it is judged.
#[derive(Clone, Copy)]
pub(super) struct Placed {
    pub operation: Operation,
    /// The address that is judged.
    pub offset: u64,
    /// The offset in its file, which tells whether requests follow each other.
    pub owner_offset: u64,
    pub length: u64,
}

impl FileTally {
    pub fn new(layer: Layer, is_file: bool, spread: Option<Box<Spread>>) -> Self {
        Self { files: 1, layer, is_file, spread, ..Self::default() }
    }

    pub fn take(&mut self, request: Placed, drive: &Drive) {
        let page_bytes = drive.grain.flash_page_bytes.map(u64::from);
        let Placed { operation, owner_offset, length, .. } = request;
        match operation {
            Operation::Flush => {
                self.flushes += 1;
                self.flushed(page_bytes);
            }
            Operation::Discard => self.discards += 1,
            Operation::Read | Operation::Write if length == 0 => {}
            Operation::Read => self.transfer(request, Access::Read, drive),
            Operation::Write => {
                self.transfer(request, Access::Write, drive);
                self.runs.write(owner_offset, length, page_bytes);
                self.count_length(length);
            }
        }
    }

    /// Writes until now go to the drive.
    pub fn flushed(&mut self, page_bytes: Option<u64>) {
        self.runs.close(page_bytes);
        self.is_flushed = true;
    }

    fn transfer(&mut self, request: Placed, access: Access, drive: &Drive) {
        let Placed { operation, offset, owner_offset, length } = request;
        let goes_on = self.ends[access as usize] == Some(owner_offset);
        self.ends[access as usize] = Some(owner_offset.saturating_add(length));
        let count = if access == Access::Read { &mut self.reads } else { &mut self.writes };
        count.requests += 1;
        count.bytes = count.bytes.saturating_add(length);
        count.sequential += u64::from(goes_on);
        let at_hot = if access == Access::Read { &mut self.at_hot.reads } else { &mut self.at_hot.writes };
        *at_hot += u64::from(drive.grain.is_hot(offset) == Some(true));
        let is_begin = !goes_on || (access == Access::Write && self.is_flushed);
        if access == Access::Write {
            self.is_flushed = false;
        }
        if let Some(prices) = &drive.prices {
            self.seconds += prices.seconds(access, length, is_begin);
        }
        if let Some(spread) = &mut self.spread {
            spread.add(access, offset, length);
        }
        let verdicts = drive.grain.verdicts(operation, offset, length);
        for (rule, verdict) in Rule::ALL.into_iter().zip(verdicts) {
            let Some(is_broken) = verdict else { continue };
            let Some(tally) = self.rules.get_mut(rule as usize) else { continue };
            tally.judged += 1;
            if !is_broken {
                continue;
            }
            tally.broken += 1;
            tally.broken_bytes = tally.broken_bytes.saturating_add(length);
            tally.cost_seconds +=
                drive.prices.as_ref().map_or(0.0, |prices| seconds(rule, request, is_begin, drive, prices));
            tally.cost_flash_pages += flash_pages(rule, request, drive);
            if tally.examples.len() < EXAMPLES_MAX {
                tally.examples.push(Example { offset_bytes: offset, length_bytes: length });
            }
        }
    }

    fn count_length(&mut self, length: u64) {
        let is_full = self.written_lengths.len() >= LENGTHS_MAX;
        match self.written_lengths.iter_mut().find(|(known, _)| *known == length) {
            Some((_, count)) => *count += 1,
            None if !is_full => self.written_lengths.push((length, 1)),
            None => {}
        }
    }

    /// Adds the counts of other files, whose runs are closed.
    pub fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.flushes += other.flushes;
        self.discards += other.discards;
        self.at_hot.reads += other.at_hot.reads;
        self.at_hot.writes += other.at_hot.writes;
        self.seconds += other.seconds;
        for (count, other) in [(&mut self.reads, &other.reads), (&mut self.writes, &other.writes)] {
            count.requests += other.requests;
            count.bytes = count.bytes.saturating_add(other.bytes);
            count.sequential += other.sequential;
        }
        for (tally, other) in self.rules.iter_mut().zip(&other.rules) {
            tally.judged += other.judged;
            tally.broken += other.broken;
            tally.broken_bytes = tally.broken_bytes.saturating_add(other.broken_bytes);
            tally.cost_seconds += other.cost_seconds;
            tally.cost_flash_pages += other.cost_flash_pages;
        }
        self.runs.add(&other.runs);
    }
}

/// Seconds that a request which breaks `rule` takes longer than one that keeps it.
fn seconds(rule: Rule, request: Placed, is_begin: bool, drive: &Drive, prices: &Prices) -> f64 {
    let Placed { offset, length, .. } = request;
    let grain = &drive.grain;
    let pieces = |unit: Option<std::num::NonZeroU64>| {
        let (touched, least) = unit.map_or((0, 0), |unit| units(offset, length, unit));
        prices.more_pieces(touched, least)
    };
    match rule {
        // The part of a desirable write's setup that the bytes leave unused.
        Rule::DesirableWrites => match grain.desirable_write_bytes {
            Some(desirable) if is_begin => {
                let writes = length as f64 / desirable.get() as f64;
                prices.write_setup() * (writes.ceil() - writes)
            }
            _ => 0.0,
        },
        Rule::HotReads => {
            prices.hot_drop.map_or(0.0, |drop| drop * prices.seconds(Access::Read, length, is_begin))
        }
        Rule::AlignedWrites => pieces(grain.stripe_bytes),
        Rule::AlignedChunks => pieces(grain.chunk_bytes),
        Rule::FewFlashPages => grain.flash_page_bytes.map_or(0.0, |page| {
            let (touched, least) = units(offset, length, page);
            prices.write_transfer((touched - least).saturating_mul(page.get()))
        }),
    }
}

/// Flash pages that breaking `rule` costs.
fn flash_pages(rule: Rule, request: Placed, drive: &Drive) -> f64 {
    let Some(page) = drive.grain.flash_page_bytes else { return 0.0 };
    let Placed { offset, length, .. } = request;
    let (touched, least) = units(offset, length, page);
    match rule {
        Rule::DesirableWrites => least as f64 - length as f64 / page.get() as f64,
        Rule::HotReads | Rule::AlignedChunks => 0.0,
        Rule::AlignedWrites => {
            let ends = [offset % page, offset.saturating_add(length) % page];
            let partial = ends.into_iter().filter(|rest| *rest != 0).count() as u64;
            partial.min(touched) as f64
        }
        Rule::FewFlashPages => (touched - least) as f64,
    }
}
