//! The result of a check, for people and programs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::drive::{Drive, Parameter};
use super::kind::FileKind;
use super::mend::{Mending, mending};
use super::run::{FLASH_PAGES_BYTES, FlashPages};
use super::spread::SpreadPoint;
use super::tally::{AtHot, Count, FileTally, RuleTally};
use super::{Check, JudgedBy};
use crate::{Layer, Losses, Rule};

/// The most files that a result names, those first that break most.
const FILES_MAX: usize = 200;

/// Behind the names of files whose requests were seen at their drive.
pub const AT_DRIVE: &str = " (drive)";

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Requests of the trace.
    pub requests: u64,
    /// Requests without an address.
    pub unplaced: u64,
    /// Time from the first to the last request, in seconds.
    pub seconds: f64,
    /// The drive's name.
    pub drive: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The model that predicts times, if one was fitted.
    pub model: Option<String>,
    /// The addresses that were judged.
    pub judged_by: JudgedBy,
    /// Bytes from a multiple of the drive's stripes and chunks to the begin of each file, where offsets in
    /// files are judged.
    pub files_begin_bytes: u64,
    /// The stripe over which the points of files are.
    pub spread_stripe_bytes: u64,
    /// The rules.
    pub rules: Vec<RuleReport>,
    /// Requests to files and requests to drives, counted apart: both may be the same bytes.
    pub layers: Vec<Group>,
    /// By kind of file, the kind first that breaks most.
    pub kinds: Vec<KindReport>,
    /// By file, the file first that breaks most.
    pub files: Vec<FileReport>,
    /// Files that are not named.
    pub unnamed_files: u64,
    /// Losses of the trace: kinds, counts and meanings.
    pub losses: Vec<(&'static str, u64, &'static str)>,
    /// Notes for people in the trace.
    pub notes: Vec<String>,
}

/// A rule, and why it could not be judged.
#[derive(Clone, Debug, Serialize)]
pub struct RuleReport {
    /// The paper's number.
    pub number: usize,
    /// Its demand.
    pub title: &'static str,
    /// Why it was skipped.
    pub skipped: Option<String>,
}

/// Counts of a group of files.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Where the requests were seen.
    pub layer: Layer,
    /// How many files or drives.
    pub files: u64,
    /// Reads.
    pub reads: Count,
    /// Writes.
    pub writes: Count,
    /// Those of both that begin at hot locations; `None` if these are unknown.
    pub at_hot: Option<AtHot>,
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Seconds of all reads and writes, as the drive's model predicts.
    pub predicted_seconds: Option<f64>,
    /// The findings of each rule; `None` if it was skipped.
    pub rules: Vec<Option<RuleTally>>,
    /// Flash pages and their wear.
    pub wear: Wear,
}

/// Flash pages that writes have modified, where each run of writes without a gap and a flush between them is
/// one.
#[derive(Clone, Debug, Serialize)]
pub struct Wear {
    /// Bytes of all runs; those that were written twice between two flushes count once.
    pub run_bytes: u64,
    /// Runs of writes.
    pub runs: u64,
    /// Flash pages of the drive's size; `None` if that is unknown.
    pub flash_pages: Option<FlashPages>,
    /// Bytes of the modified pages over the bytes of the runs; `None` if unknown, or if nothing was
    /// written.
    pub write_amplification: Option<f64>,
    /// The same for each size of flash pages that drives have (the paper's Figure 14): the size, the pages,
    /// and the amplification.
    pub by_flash_page_bytes: Vec<(u64, FlashPages, Option<f64>)>,
}

/// Counts of the files of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct KindReport {
    /// The kind.
    pub kind: FileKind,
    /// Its name for people.
    pub label: String,
    /// The counts.
    #[serde(flatten)]
    pub group: Group,
    /// Remedies for the broken rules.
    pub mending: Vec<Mending>,
}

/// Counts of one file.
#[derive(Clone, Debug, Serialize)]
pub struct FileReport {
    /// Its name in the trace.
    pub name: String,
    /// Its kind.
    pub kind: FileKind,
    /// The counts.
    #[serde(flatten)]
    pub group: Group,
    /// Where requests begin within a stripe, and how long they are.
    pub spread: Vec<SpreadPoint>,
    /// Requests that found no room among these.
    pub spread_unshown: u64,
}

pub(super) fn report(
    check: &Check,
    files: Vec<(String, FileKind, &FileTally)>,
    losses: &Losses,
    notes: &[String],
) -> Report {
    let drive = &check.drive;
    let mut files = files;
    files.sort_by_key(|(_, _, tally)| std::cmp::Reverse(weight(tally)));
    let named: Vec<_> = files.iter().take(FILES_MAX).map(|file| file_report(file, drive)).collect();
    Report {
        requests: check.requests,
        unplaced: check.unplaced,
        seconds: check.first_ns.map_or(0.0, |first| (check.last_ns - first) as f64 * 1e-9),
        drive: drive.name.clone(),
        parameters: drive.parameters.clone(),
        model: drive.prices.as_ref().map(|prices| prices.model.clone()),
        judged_by: check.judged_by,
        files_begin_bytes: check.begin_bytes,
        spread_stripe_bytes: check.stripe_bytes(),
        rules: Rule::ALL
            .into_iter()
            .map(|rule| RuleReport {
                number: rule.number(),
                title: rule.title(),
                skipped: drive.skipped(rule),
            })
            .collect(),
        layers: layers(&files, drive),
        kinds: kinds(&files, drive),
        unnamed_files: (files.len() - named.len()) as u64,
        files: named,
        losses: losses.iter().map(|(loss, count)| (loss.word(), count, loss.meaning())).collect(),
        notes: notes.to_vec(),
    }
}

/// How much a file matters: bytes that break rules, a byte for each rule; then bytes at all, written ones
/// first.
fn weight(tally: &FileTally) -> (u64, u64, u64) {
    let broken = tally.rules.iter().fold(0, |sum: u64, rule| sum.saturating_add(rule.broken_bytes));
    (broken, tally.writes.bytes, tally.reads.bytes)
}

fn file_report((name, kind, tally): &(String, FileKind, &FileTally), drive: &Drive) -> FileReport {
    FileReport {
        name: name.clone(),
        kind: *kind,
        group: Group::of(tally, drive),
        spread: tally.spread.as_ref().map(|spread| spread.points()).unwrap_or_default(),
        spread_unshown: tally
            .spread
            .as_ref()
            .map_or(tally.reads.requests + tally.writes.requests, |spread| spread.unshown),
    }
}

fn layers(files: &[(String, FileKind, &FileTally)], drive: &Drive) -> Vec<Group> {
    let mut sums: BTreeMap<Layer, FileTally> = BTreeMap::new();
    for (_, _, tally) in files {
        let sum = sums.entry(tally.layer).or_default();
        sum.layer = tally.layer;
        sum.add(tally);
    }
    sums.values().map(|sum| Group::of(sum, drive)).collect()
}

fn kinds(files: &[(String, FileKind, &FileTally)], drive: &Drive) -> Vec<KindReport> {
    let mut sums: BTreeMap<(FileKind, Layer), FileTally> = BTreeMap::new();
    for (_, kind, tally) in files {
        let sum = sums.entry((*kind, tally.layer)).or_default();
        sum.layer = tally.layer;
        sum.add(tally);
    }
    let mut kinds: Vec<_> = sums.iter().collect();
    kinds.sort_by_key(|(_, tally)| std::cmp::Reverse(weight(tally)));
    let report = |((kind, layer), tally): (&(FileKind, Layer), &FileTally)| {
        let group = Group::of(tally, drive);
        // A remedy for the system calls to files also mends the requests to the drive.
        let is_said = *layer == Layer::Drive && sums.contains_key(&(*kind, Layer::File));
        let foremost = files.iter().find(|(_, of, tally)| of == kind && tally.layer == *layer);
        let path = foremost.map_or("", |(name, ..)| name);
        let broken = Rule::ALL.into_iter().filter(|rule| group.broken(*rule).is_some());
        let mending = if is_said { Vec::new() } else { mending(*kind, path, broken, drive) };
        let is_file_at_drive = *layer == Layer::Drive && *kind != FileKind::Device;
        let label = format!("{}{}", kind.label(), if is_file_at_drive { AT_DRIVE } else { "" });
        KindReport { kind: *kind, label, group, mending }
    };
    kinds.into_iter().map(report).collect()
}

impl Group {
    fn of(tally: &FileTally, drive: &Drive) -> Self {
        let found = |rule: Rule| {
            let tally = tally.rules.get(rule as usize).cloned()?;
            drive.grain.knows(rule).then_some(tally)
        };
        Self {
            layer: tally.layer,
            files: tally.files,
            reads: tally.reads,
            writes: tally.writes,
            at_hot: drive.grain.knows(Rule::HotReads).then_some(tally.at_hot),
            flushes: tally.flushes,
            discards: tally.discards,
            predicted_seconds: drive.prices.as_ref().map(|_| tally.seconds),
            rules: Rule::ALL.into_iter().map(found).collect(),
            wear: Wear::of(tally, drive),
        }
    }

    /// The findings of `rule`, if it was judged and is broken.
    pub fn broken(&self, rule: Rule) -> Option<&RuleTally> {
        self.rules.get(rule as usize)?.as_ref().filter(|tally| tally.broken > 0)
    }
}

impl Wear {
    fn of(tally: &FileTally, drive: &Drive) -> Self {
        let run_bytes = tally.runs.bytes;
        let amplification = |pages: &FlashPages, page_bytes: u64| {
            (run_bytes > 0).then(|| pages.modified as f64 * page_bytes as f64 / run_bytes as f64)
        };
        let own = drive.grain.flash_page_bytes.map(u64::from);
        Self {
            run_bytes,
            runs: tally.runs.count,
            flash_pages: own.map(|_| tally.runs.own_pages),
            write_amplification: own.and_then(|bytes| amplification(&tally.runs.own_pages, bytes)),
            by_flash_page_bytes: FLASH_PAGES_BYTES
                .into_iter()
                .zip(&tally.runs.pages)
                .map(|(bytes, pages)| (bytes, *pages, amplification(pages, bytes)))
                .collect(),
        }
    }
}

/// How long a drive of a rated endurance lives if it is written like this all the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Endurance {
    /// Bytes that the drive may be made to write.
    pub rated_bytes: u64,
    /// The flash page that counts: the drive's, else 4 KiB.
    pub flash_page_bytes: u64,
    /// Bytes that the writes of the trace wear, as whole flash pages.
    pub wear_bytes: f64,
    /// The part of the endurance that the trace has used up.
    pub used_fraction: f64,
    /// Years until it is used up, of the trace over and over; `None` if the trace lasts no time.
    pub years: Option<f64>,
    /// The same, had no byte been written that the program did not write (the paper's Table 2 and Figure 14).
    pub years_without_amplification: Option<f64>,
}

/// Flash page of most drives, in bytes.
const FLASH_PAGE_BYTES: u64 = 4096;
const YEAR_SECONDS: f64 = 365.25 * 86400.0;

impl Report {
    /// The lowest layer in the trace: requests to the drive if there are any, else those to files.
    pub fn lowest_layer(&self) -> Option<&Group> {
        self.layers.last()
    }

    /// The wear over an endurance; `None` if nothing was written.
    pub fn endurance(&self, rated_bytes: u64) -> Option<Endurance> {
        let wear = &self.lowest_layer()?.wear;
        let own = self.parameters.iter().find(|parameter| parameter.name == "flash_page_bytes");
        let (flash_page_bytes, pages) = match (own.and_then(|own| own.bytes), wear.flash_pages) {
            (Some(bytes), Some(pages)) => (bytes, pages),
            _ => {
                let (bytes, pages, _) =
                    wear.by_flash_page_bytes.iter().find(|(bytes, ..)| *bytes == FLASH_PAGE_BYTES)?;
                (*bytes, *pages)
            }
        };
        let wear_bytes = pages.modified as f64 * flash_page_bytes as f64;
        let years = |bytes: f64| {
            (self.seconds > 0.0).then(|| rated_bytes as f64 / (bytes / self.seconds) / YEAR_SECONDS)
        };
        (wear.run_bytes > 0 && rated_bytes > 0).then(|| Endurance {
            rated_bytes,
            flash_page_bytes,
            wear_bytes,
            used_fraction: wear_bytes / rated_bytes as f64,
            years: years(wear_bytes),
            years_without_amplification: years(wear.run_bytes as f64),
        })
    }
}
