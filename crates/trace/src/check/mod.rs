//! Judges a trace: the requests that go against the grain of a drive, by file, their cost on that drive, and
//! remedies.
//!
//! 1. [`Drive`] takes parameters and prices from a profile.
//! 2. [`Check`] takes one request after the other. Each file has its own tally; nothing else is kept.
//! 3. [`Check::finish`] classifies files, sums them up by kind, and names remedies.

mod advised;
mod drive;
mod kind;
mod mend;
mod report;
mod run;
mod spread;
mod tally;

use std::collections::{BTreeMap, BTreeSet};

pub use advised::Advised;
pub use drive::{Drive, Parameter};
pub use kind::FileKind;
pub use mend::Mending;
pub use report::{AT_DRIVE, Endurance, FileReport, Group, KindReport, Report, RuleReport, Wear};
pub use run::{FLASH_PAGES_BYTES, FlashPages};
pub use spread::SpreadPoint;
pub use tally::{AtHot, Count, Example, RuleTally};

use crate::{Layer, Losses, NameId, Names, Operation, Request};
use spread::Spread;
use tally::{FileTally, Placed};

/// The most files that are told apart; requests to further files are counted together.
const FILES_MAX: usize = 20_000;

/// The most files whose points are kept.
const SPREADS_MAX: usize = 500;

/// The stripe that points are drawn over if the drive's is unknown, in bytes.
const STRIPE_BYTES: u64 = 64 * 1024;

/// The addresses that rules are judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgedBy {
    /// Those on the drive where the trace has them, else offsets in files.
    #[default]
    Drive,
    /// Offsets in files where the trace has them, as the paper has it: the layout that the program chose.
    File,
}

/// Judges the requests of one trace.
pub struct Check {
    drive: Drive,
    judged_by: JudgedBy,
    /// Where files begin after a multiple of all of the drive's units, in bytes.
    begin_bytes: u64,
    files: Vec<Option<Box<FileTally>>>,
    other_files: FileTally,
    told_apart: usize,
    /// Slots of the drives that were written since the last flush.
    unflushed: BTreeSet<usize>,
    spreads: usize,
    requests: u64,
    unplaced: u64,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Check {
    /// Begins with no request.
    pub fn new(drive: Drive, judged_by: JudgedBy) -> Self {
        Self {
            drive,
            judged_by,
            begin_bytes: 0,
            files: Vec::new(),
            other_files: FileTally::default(),
            told_apart: 0,
            unflushed: BTreeSet::new(),
            spreads: 0,
            requests: 0,
            unplaced: 0,
            first_ns: None,
            last_ns: 0,
        }
    }

    /// Offsets in files are judged as if each file began `begin_bytes` after a multiple of the drive's
    /// stripes and chunks, as on a partition that begins there. Addresses on the drive stay as they are.
    pub fn with_files_at(self, begin_bytes: u64) -> Self {
        Self { begin_bytes, ..self }
    }

    fn stripe_bytes(&self) -> u64 {
        self.drive.grain.stripe_bytes.map_or(STRIPE_BYTES, u64::from)
    }

    /// Takes a request.
    pub fn take(&mut self, request: &Request) {
        self.requests += 1;
        self.first_ns = Some(self.first_ns.map_or(request.time_ns, |first| first.min(request.time_ns)));
        self.last_ns = self.last_ns.max(request.time_ns);
        let in_file = request.in_file.map(|place| place.offset_bytes.saturating_add(self.begin_bytes));
        let on_device = request.on_device.map(|place| place.offset_bytes);
        let judged = match self.judged_by {
            JudgedBy::Drive => on_device.or(in_file),
            JudgedBy::File => in_file.or(on_device),
        };
        // A request belongs to its file even where it is judged by its address on the drive.
        let (Some(offset), Some(owner)) = (judged, request.in_file.or(request.on_device)) else {
            self.unplaced += 1;
            return;
        };
        if request.operation == Operation::Flush && request.layer == Layer::Drive {
            self.flush_drive();
        }
        let placed = Placed {
            operation: request.operation,
            offset,
            owner_offset: owner.offset_bytes,
            length: request.length_bytes,
        };
        let slot = slot(owner.name, request.layer);
        if placed.operation == Operation::Write && request.layer == Layer::Drive {
            self.unflushed.insert(slot);
        }
        match self.files.get_mut(slot) {
            Some(Some(tally)) => tally.take(placed, &self.drive),
            _ => self.take_new(slot, request, placed),
        }
    }

    fn take_new(&mut self, slot: usize, request: &Request, placed: Placed) {
        if self.told_apart >= FILES_MAX {
            self.other_files.files = 1;
            self.other_files.take(placed, &self.drive);
            return;
        }
        self.told_apart += 1;
        let has_spread = self.spreads < SPREADS_MAX;
        self.spreads += usize::from(has_spread);
        let spread = has_spread.then(|| Box::new(Spread::new(self.stripe_bytes())));
        let mut tally = FileTally::new(request.layer, request.in_file.is_some(), spread);
        tally.take(placed, &self.drive);
        if self.files.len() <= slot {
            self.files.resize_with(slot + 1, || None);
        }
        if let Some(file) = self.files.get_mut(slot) {
            *file = Some(Box::new(tally));
        }
    }

    /// A flush of a drive ends the runs of all that was written there. System calls have flushes of their
    /// own.
    fn flush_drive(&mut self) {
        let page_bytes = self.drive.grain.flash_page_bytes.map(u64::from);
        for slot in std::mem::take(&mut self.unflushed) {
            if let Some(Some(tally)) = self.files.get_mut(slot) {
                tally.flushed(page_bytes);
            }
        }
    }

    /// The result, of a trace with these names and losses.
    pub fn finish(mut self, names: &Names, losses: &Losses, notes: &[String]) -> Report {
        let page_bytes = self.drive.grain.flash_page_bytes.map(u64::from);
        for tally in self.files.iter_mut().flatten() {
            tally.runs.close(page_bytes);
        }
        self.other_files.runs.close(page_bytes);
        let known = self.known_names(names);
        let has_name = |name: &str| known.contains_key(name);
        let mut files: Vec<(String, FileKind, &FileTally)> = Vec::new();
        for (&name, &id) in &known {
            for layer in [Layer::File, Layer::Drive] {
                if let Some(Some(tally)) = self.files.get(slot(id, layer)) {
                    files.push((name.to_owned(), kind_of(name, tally, has_name), tally));
                }
            }
        }
        if self.other_files.files > 0 {
            files.push(("(all further files)".to_owned(), FileKind::Mixed, &self.other_files));
        }
        report::report(&self, files, losses, notes)
    }

    /// The names that have a tally.
    fn known_names<'a>(&self, names: &'a Names) -> BTreeMap<&'a str, NameId> {
        let is_known = |id: NameId| {
            let layers = [Layer::File, Layer::Drive];
            layers.iter().any(|layer| matches!(self.files.get(slot(id, *layer)), Some(Some(_))))
        };
        names.iter().filter(|(id, _)| is_known(*id)).map(|(id, name)| (name, id)).collect()
    }
}

/// The place of a file's tally: system calls and requests to its drive are counted apart.
fn slot(name: NameId, layer: Layer) -> usize {
    2 * name.index() + layer as usize
}

/// Of a file that no name gives away, how it is used says its kind.
fn kind_of(name: &str, tally: &FileTally, has_name: impl Fn(&str) -> bool) -> FileKind {
    if !tally.is_file {
        return FileKind::Device;
    }
    if let Some(kind) = FileKind::of_name(name, has_name) {
        return kind;
    }
    let writes = tally.writes;
    if writes.requests == 0 {
        return FileKind::OnlyRead;
    }
    // The first write continues nothing.
    if (writes.sequential + 1) * 10 >= writes.requests * 9 {
        return FileKind::Appended;
    }
    let most = tally.written_lengths.iter().max_by_key(|(_, count)| *count);
    match most {
        Some((_, count)) if count * 10 >= writes.requests * 9 => FileKind::Paged,
        _ => FileKind::Mixed,
    }
}
