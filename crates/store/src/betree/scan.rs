//! Scans: the records of one basement node after the other, each with the messages on their way to it.

use std::ops::Bound;

use super::levels::{LEVEL_MAX, LEVEL_MIN};
use super::messages::{Messages, MessagesCursor};
use super::pages::ATTEMPTS;
use super::part::Part;
use super::search::is_valid;
use super::tree::BeTree;
use crate::buffered::{
    Chain, Cursor, DEAD_RUN, Held, Hidden, KeyVersions, Memtables, Merged, Met, RangeTombstones, Removals,
    SeenCursor, Watch, unreadable,
};
use crate::header::PageId;
use crate::index::{Direction, Piece, Steps, Version, behind};
use crate::log::Timestamp;
use crate::pool::{Access, OptimisticGuard};
use crate::sync::Arc;
use crate::task::yield_now;
use crate::{Error, ErrorKind};

/// Records of a basement node that the first step of a scan yields at most, and twice as many each further
/// one: a short scan looks at few more than it yields.
const STEP_RECORDS_FIRST: usize = 16;
const STEP_RECORDS_MAX: usize = 1 << 20;

/// See the module.
pub(super) struct BeTreeScan {
    tree: Arc<BeTree>,
    direction: Direction,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    at: Timestamp,
    /// Basement nodes that are read before they are asked for.
    ahead: u32,
    has_ended: bool,
    /// The basement node of the last step, and how many the scan has come to.
    basement: Option<PageId>,
    passed: u32,
    step_records: usize,
    /// Whether operands are yielded without merging.
    is_unmerged: bool,
    /// Keys without records since the last record.
    dead_keys: usize,
}

/// The part of a stretch that was read from a page on the way.
struct Passed {
    level: u16,
    /// The page below; `None` of a page that has none.
    child: Option<PageId>,
    messages: Messages,
    ranges: RangeTombstones,
}

/// The pages and records of one way down, for keys from `lower` up to and without `upper`.
struct Stretch {
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    /// The newest first; none is empty.
    sources: Vec<Arc<Messages>>,
    ranges: RangeTombstones,
    /// The basement node.
    basement: Option<PageId>,
}

impl Stretch {
    /// Narrows the stretch to a pivot's interval, on the side where the scan goes on.
    fn narrow(&mut self, direction: Direction, lower: &[u8], upper: Option<&[u8]>) {
        match (direction, upper) {
            (Direction::Backward, _) if lower > self.lower.as_slice() => self.lower = lower.to_vec(),
            (Direction::Forward, Some(upper)) if self.upper.as_deref().is_none_or(|own| upper < own) => {
                self.upper = Some(upper.to_vec());
            }
            _ => {}
        }
    }
}

impl BeTreeScan {
    /// The records with keys from the first up to but without the second, which a snapshot of `at` sees.
    pub fn new(
        tree: Arc<BeTree>,
        direction: Direction,
        (lower, upper): (Vec<u8>, Option<Vec<u8>>),
        (ahead, at): (u32, Timestamp),
    ) -> Self {
        let has_ended = upper.as_ref().is_some_and(|upper| *upper <= lower);
        let (step_records, is_unmerged) = (STEP_RECORDS_FIRST, false);
        let (basement, passed) = (None, 0);
        Self {
            tree,
            direction,
            lower,
            upper,
            at,
            ahead,
            has_ended,
            basement,
            passed,
            step_records,
            is_unmerged,
            dead_keys: 0,
        }
    }

    /// The same without merging operands.
    pub fn unmerged(self) -> Self {
        Self { is_unmerged: true, ..self }
    }

    /// The next stretch. Its keys are all within the rest of the scan.
    fn stretch(&self) -> Result<Stretch, Error> {
        let (mut attempts, mut permits) = (0, None);
        loop {
            if let Some(stretch) = self.try_stretch(permits.is_some())? {
                return Ok(stretch);
            }
            self.tree.shared.pool.images.check()?;
            attempts += 1;
            if attempts >= ATTEMPTS && permits.is_none() {
                self.tree.shared.pool.records().give_up();
                permits = Some(self.tree.page_changes.acquire_all());
            }
            yield_now();
        }
    }

    /// The same; `None` if something on the way has changed meanwhile. If the tree does not change, pages
    /// above may leave memory.
    fn try_stretch(&self, is_still: bool) -> Result<Option<Stretch>, Error> {
        let tree = &self.tree;
        let mut stretch = Stretch {
            lower: self.lower.clone(),
            upper: self.upper.clone(),
            sources: Vec::new(),
            ranges: RangeTombstones::default(),
            basement: None,
        };
        let mut above: Option<OptimisticGuard<'_>> = None;
        let (mut id, mut expected) = (tree.pages.root, None::<u16>);
        loop {
            let access = if expected == Some(0) { Access::Scan } else { Access::Normal };
            let guard = match tree.shared.pool.read(id, access) {
                Ok(guard) => guard,
                Err(error) => return if is_valid(&above) { Err(error) } else { Ok(None) },
            };
            let part = Part::new(guard.page());
            let passed = self.look(part, &mut stretch);
            let is_right = expected.is_none_or(|expected| part.is_of_level(expected));
            if !is_valid(&above) || !guard.is_valid() {
                return Ok(None);
            }
            let passed = passed.filter(|passed| is_right && passed.level <= LEVEL_MAX);
            let Some(passed) = passed else {
                return Err(tree.pages.damaged(id, expected.unwrap_or_default()));
            };
            let Passed { level, child, messages, ranges } = passed;
            stretch.ranges.extend(&ranges);
            let is_passed = level == 2 && planted!(ScanPassesBuffer);
            if !messages.is_empty() && !is_passed {
                stretch.sources.push(Arc::new(messages));
            }
            let Some(child) = child else { return Ok(Some(stretch)) };
            let below = level.checked_sub(1).ok_or_else(|| tree.pages.damaged(id, level))?;
            (id, expected, above) = (child, Some(below), Some(guard).filter(|_| !is_still));
        }
    }

    /// Takes a page's records of a stretch, and shortens the stretch, so that a step has few records while
    /// the scan is short. `None` if the page is damaged, or changes meanwhile.
    fn look(&self, part: Part<'_>, stretch: &mut Stretch) -> Option<Passed> {
        if !part.is_in_place() {
            return self.look_at_all(part, stretch);
        }
        let (level, count) = (part.level(), part.pivots());
        let pivot = self.pivot(part, count as usize).map(|pivot| pivot as u32);
        if let Some(pivot) = pivot {
            let (mut lower, mut upper) = (Vec::new(), None);
            // Keys before the first pivot belong to it as well.
            if pivot > 0 {
                part.key(pivot, &mut lower);
            }
            if pivot + 1 < count {
                part.key(pivot + 1, upper.insert(Vec::new()));
            }
            stretch.narrow(self.direction, &lower, upper.as_deref());
            if level == LEVEL_MIN {
                stretch.basement = Some(part.child(pivot));
                self.read_ahead(&|| (0..count).map(|pivot| part.child(pivot)).collect(), pivot as usize);
            }
        }
        let all = part.messages();
        let mut start = part.first_from(all.start, &stretch.lower);
        let mut end = stretch.upper.as_deref().map_or(all.end, |upper| part.first_from(start, upper));
        let most = self.step_records.try_into().unwrap_or(u32::MAX);
        if end.saturating_sub(start) > most {
            let mut border = Vec::new();
            match self.direction {
                Direction::Forward => {
                    part.key(start + most - 1, &mut border);
                    end = part.all_of(start + most - 1, &border).end;
                    stretch.upper = Some(behind(&border));
                }
                Direction::Backward => {
                    part.key(end - most, &mut border);
                    start = part.first_from(start, &border);
                    stretch.lower = border;
                }
            }
        }
        let messages = part.copied(start..end)?;
        Some(Passed {
            level,
            child: pivot.map(|pivot| part.child(pivot)),
            messages,
            ranges: RangeTombstones::default(),
        })
    }

    /// The same for a page that has removals of ranges, or is of an earlier version.
    fn look_at_all(&self, part: Part<'_>, stretch: &mut Stretch) -> Option<Passed> {
        let content = part.content()?;
        let pivot = self.pivot(part, content.pivots.len());
        if let Some(pivot) = pivot {
            let (lower, upper) = content.interval(pivot);
            stretch.narrow(self.direction, lower, upper);
            if content.level == LEVEL_MIN {
                stretch.basement = Some(content.pivots[pivot].child);
                self.read_ahead(&|| content.pivots.iter().map(|pivot| pivot.child).collect(), pivot);
            }
        }
        let within = content.messages.within(&stretch.lower, stretch.upper.as_deref());
        let mut messages = Messages::default();
        messages.extend(&content.messages, within);
        self.bound(stretch, &messages);
        let ranges = content.ranges.between(&stretch.lower, stretch.upper.as_deref());
        let child = pivot.map(|pivot| content.pivots[pivot].child);
        Some(Passed { level: content.level, child, messages, ranges })
    }

    /// The pivot that is next in the direction; `None` of a page that has none.
    fn pivot(&self, part: Part<'_>, count: usize) -> Option<usize> {
        let pivot = match self.direction {
            Direction::Forward => part.pivot_of(&self.lower),
            Direction::Backward => part.pivot_before(self.upper.as_deref()),
        };
        count.checked_sub(1).map(|last| last.min(pivot as usize))
    }

    fn read_ahead(&self, children: &dyn Fn() -> Vec<PageId>, pivot: usize) {
        // It reads as many as it has passed: the end of the scan is not known.
        let ahead = self.ahead.min(self.passed) as usize;
        if ahead == 0 {
            return;
        }
        let children = children();
        if self.basement == children.get(pivot).copied() {
            return;
        }
        let near: Vec<PageId> = match self.direction {
            Direction::Forward => children.iter().skip(pivot + 1).take(ahead).copied().collect(),
            Direction::Backward => children.iter().take(pivot).rev().take(ahead).copied().collect(),
        };
        self.tree.shared.pool.prefetch_all(&near);
    }

    /// Makes a stretch shorter, so that a step has few records while the scan is short.
    fn bound(&self, stretch: &mut Stretch, records: &Messages) {
        let within = records.within(&stretch.lower, stretch.upper.as_deref());
        if within.len() <= self.step_records {
            return;
        }
        match self.direction {
            Direction::Forward => {
                stretch.upper = Some(behind(records.key(within.start + self.step_records - 1)))
            }
            Direction::Backward => stretch.lower = records.key(within.end - self.step_records).to_vec(),
        }
    }

    /// Makes a stretch of a scan backward shorter, so that a memtable has few keys in it. Forward a step ends
    /// where it has enough.
    fn bound_in_memory(&self, stretch: &mut Stretch, memtables: &Memtables) -> Result<(), Error> {
        if self.direction == Direction::Forward {
            return Ok(());
        }
        for table in memtables.iter() {
            let start = stretch.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let mut cursor = SeenCursor::new(table, Direction::Backward, start, (self.at, false));
            let mut last: Option<Vec<u8>> = None;
            let mut keys = 0;
            while let Some((key, ..)) = cursor.get().filter(|(key, ..)| *key > stretch.lower.as_slice()) {
                if last.as_deref() != Some(key) {
                    keys += 1;
                    last = Some(key.to_vec());
                }
                if keys >= self.step_records {
                    break;
                }
                cursor.advance()?;
            }
            if let Some(last) = last.filter(|_| keys >= self.step_records) {
                stretch.lower = last;
            }
        }
        Ok(())
    }

    /// The versions of a stretch in order. A memtable that is frozen, also since the scan began, may be on
    /// its way into pages: sums of its operands must not stand for a part of them.
    fn merged(&self, stretch: &Stretch, memtables: &Memtables) -> Merged {
        let is_active = Arc::ptr_eq(&memtables.active, &self.tree.memtables().active);
        let in_memory = memtables.iter().map(|table| {
            let sums = is_active && Arc::ptr_eq(table, &memtables.active);
            let start = Bound::Included(stretch.lower.as_slice());
            Box::new(SeenCursor::new(table, Direction::Forward, start, (self.at, sums))) as Box<dyn Cursor>
        });
        let in_pages = stretch.sources.iter().map(|messages| {
            let within = messages.within(&stretch.lower, stretch.upper.as_deref());
            Box::new(MessagesCursor::new(messages, within)) as Box<dyn Cursor>
        });
        Merged::layers(in_memory.chain(in_pages).collect())
    }

    /// The removals of ranges that the scan sees in a stretch.
    fn hidden(&self, stretch: &mut Stretch, memtables: &Memtables) -> Option<Hidden> {
        let with_ranges = memtables.iter().filter(|memtable| memtable.has_ranges());
        let mut sources: Vec<Arc<dyn Removals>> =
            with_ranges.map(|memtable| Arc::clone(memtable) as _).collect();
        if !stretch.ranges.is_empty() {
            sources.push(Arc::new(std::mem::take(&mut stretch.ranges)));
        }
        Hidden::new(sources, self.at)
    }

    /// The version and the value of a key that a reader sees.
    fn seen(
        &self,
        versions: &KeyVersions,
        hidden: Option<&Hidden>,
    ) -> Result<Option<(Version, Vec<u8>)>, Error> {
        let removed_at = hidden.and_then(|hidden| hidden.newest(versions.key()));
        let mut chain = Chain::new(self.at);
        let mut is_first = true;
        for held in versions.all.iter().filter(|held: &&Held| held.version.timestamp() <= self.at) {
            if removed_at.is_some_and(|removed_at| held.version.timestamp() < removed_at) {
                break;
            }
            if is_first && !held.version.is_operands() {
                let version = Some(held.version).filter(|version| !version.is_tombstone());
                return Ok(version.map(|version| (version, versions.value(held).to_vec())));
            }
            is_first = false;
            if !chain.take(held.version, versions.value(held)) {
                break;
            }
        }
        let Some(newest) = chain.newest().map(Version::timestamp) else { return Ok(None) };
        if self.is_unmerged {
            let mut value = Vec::new();
            chain.unmerged().encode(&mut value);
            return Ok(Some((Version::operands(newest), value)));
        }
        let tree = &self.tree;
        match chain.value(versions.key(), tree.operator.as_deref(), tree.shared.horizon()) {
            Ok(value) => Ok(value.map(|value| (Version::put(newest), value))),
            // The overflow value may be freed, as a flush has replaced its version by a folded one.
            Err(_) => {
                let mut value = Vec::new();
                match tree.look_up(versions.key(), self.at, crate::index::May::Wait, &mut value) {
                    Err(error) if error.kind() == ErrorKind::Operator => Ok(unreadable(newest)),
                    Err(error) => Err(error),
                    Ok(std::task::Poll::Ready(found)) => Ok(found.version.map(|version| (version, value))),
                    Ok(std::task::Poll::Pending) => Ok(None),
                }
            }
        }
    }

    /// Goes on after a stretch.
    fn pass(&mut self, stretch: Stretch) {
        if stretch.basement.is_some() && stretch.basement != self.basement {
            (self.basement, self.passed) = (stretch.basement, self.passed.saturating_add(1));
        }
        match self.direction {
            Direction::Forward => match stretch.upper {
                Some(upper) if self.upper.as_deref().is_none_or(|end| upper.as_slice() < end) => {
                    self.lower = upper
                }
                _ => self.has_ended = true,
            },
            Direction::Backward => {
                self.has_ended = stretch.lower <= self.lower;
                let ends_early = !self.has_ended && planted!(BackwardScanSkipsBorder);
                self.upper = Some(stretch.lower);
                if ends_early && let Some(upper) = &mut self.upper {
                    upper.pop();
                }
            }
        }
        self.step_records = (2 * self.step_records).min(STEP_RECORDS_MAX);
    }
}

impl BeTreeScan {
    /// Its place, as defined by [`Dead`](crate::buffered::Dead).
    fn place(&self) -> Option<&[u8]> {
        match self.direction {
            Direction::Forward => Some(&self.lower),
            Direction::Backward => self.upper.as_deref(),
        }
    }

    /// Passes the stretch without records that it is in, if the tree remembers one.
    fn pass_dead(&mut self) {
        let Some(to) = self.tree.dead.passed(self.place(), self.direction, self.at) else { return };
        match (self.direction, to) {
            (Direction::Forward, Some(lower)) => self.lower = lower,
            (Direction::Forward, None) => self.has_ended = true,
            (Direction::Backward, upper) => self.upper = upper,
        }
        self.has_ended |= self.upper.as_ref().is_some_and(|upper| *upper <= self.lower);
    }

    /// The keys without records end before a key, or with the range.
    fn end_dead(&self, run: &mut DeadRun<'_>, key: Option<&[u8]>) {
        let Some(watch) = run.watch.take() else { return };
        let Some(horizon) = self.tree.shared.horizon() else { return };
        let until = match (key, self.direction) {
            (Some(key), _) => Bound::Excluded(key),
            (None, Direction::Forward) => self.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
            (None, Direction::Backward) => Bound::Included(self.lower.as_slice()),
        };
        watch.end(until, run.as_of, &horizon.snapshots().now());
    }

    /// Whether a step ends after a key without a record, as its scan passes others at once then.
    fn ends_behind(&self, key: &[u8], run: &DeadRun<'_>, piece: &Piece) -> bool {
        let may_end = self.direction == Direction::Forward && self.dead_keys.is_multiple_of(DEAD_RUN);
        may_end
            && (!piece.is_empty()
                || run.watch.is_none()
                || self.tree.dead.passed(Some(&behind(key)), self.direction, self.at).is_some())
    }

    /// Puts the records of a stretch into `piece`, if only one page has any of its keys, and the scan sees
    /// all of them unchanged. Returns whether it did.
    fn take_all(
        &mut self,
        stretch: &Stretch,
        memtables: &Memtables,
        run: &mut DeadRun<'_>,
        piece: &mut Piece,
    ) -> bool {
        let (lower, upper) = (stretch.lower.as_slice(), stretch.upper.as_deref());
        let [messages] = stretch.sources.as_slice() else { return false };
        let within = messages.within(lower, upper);
        let is_alone = stretch.ranges.is_empty()
            && memtables.iter().all(|table| !table.has_ranges() && !table.has_between(lower, upper));
        if !is_alone || within.is_empty() || !messages.are_seen(within.clone(), self.at) {
            return false;
        }
        for (key, version, value) in messages.iter(within.clone()) {
            push(piece, key, version, value);
        }
        let nearest = if self.direction == Direction::Forward { within.start } else { within.end - 1 };
        self.end_dead(run, Some(messages.key(nearest)));
        self.dead_keys = 0;
        true
    }

    /// Puts the records of a stretch into `piece`.
    fn take(
        &mut self,
        stretch: &mut Stretch,
        memtables: &Memtables,
        run: &mut DeadRun<'_>,
        piece: &mut Piece,
    ) -> Result<(), Error> {
        if self.take_all(stretch, memtables, run, piece) {
            return Ok(());
        }
        self.bound_in_memory(stretch, memtables)?;
        let mut merged = self.merged(stretch, memtables);
        let hidden = self.hidden(stretch, memtables);
        let mut versions = KeyVersions::default();
        // Keys without records before the first record, and after the last one, with its key.
        let (mut before, mut last) = (self.dead_keys, None::<(Vec<u8>, usize)>);
        let mut as_of = run.as_of;
        while merged.next_key(&mut versions)? {
            if stretch.upper.as_deref().is_some_and(|upper| versions.key() >= upper) {
                break;
            }
            #[cfg(any(test, feature = "testing"))]
            crate::testing::count_step();
            let record = self.seen(&versions, hidden.as_ref())?;
            let newest = versions.all.first().map(|held| held.version);
            let met = Met::of(record, newest, self.at);
            if let Met::Dead(from) = &met {
                as_of = as_of.max(*from);
                match (&mut last, self.direction) {
                    (Some((_, behind)), Direction::Backward) => *behind += 1,
                    (None, Direction::Backward) => before += 1,
                    _ => self.dead_keys += 1,
                }
                if self.ends_behind(versions.key(), run, piece) {
                    stretch.upper = Some(behind(versions.key()));
                    break;
                }
                continue;
            }
            match self.direction {
                Direction::Forward => {
                    run.as_of = as_of;
                    self.end_dead(run, Some(versions.key()));
                    self.dead_keys = 0;
                }
                Direction::Backward => {
                    last = Some((versions.key().to_vec(), 0));
                    as_of = run.as_of;
                }
            }
            if let Met::Record((version, value)) = met {
                push(piece, versions.key(), version, &value);
                if self.direction == Direction::Forward && piece.len() >= self.step_records {
                    stretch.upper = Some(behind(versions.key()));
                    break;
                }
            }
        }
        run.as_of = as_of;
        if self.direction == Direction::Backward {
            if let Some((key, _)) = &last {
                self.end_dead(run, Some(key));
            }
            // The run goes on with those before the first record.
            self.dead_keys = if last.is_some() { 0 } else { before };
        }
        Ok(())
    }
}

fn push(piece: &mut Piece, key: &[u8], version: Version, value: &[u8]) {
    let put_version = |bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(&version.bits().to_le_bytes());
        bytes.extend_from_slice(value);
    };
    piece.push_by(|bytes| bytes.extend_from_slice(key), put_version);
}

/// Consecutive keys without records in a scan.
struct DeadRun<'t> {
    watch: Option<Watch<'t>>,
    /// Snapshots from this one on see nothing of them.
    as_of: Timestamp,
}

impl Steps for BeTreeScan {
    fn step(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        piece.clear();
        self.tree.trouble.check_whole(self.tree.pages.id)?;
        let tree = Arc::clone(&self.tree);
        let mut run = DeadRun { watch: None, as_of: self.at };
        while piece.is_empty() && !self.has_ended {
            if self.dead_keys >= DEAD_RUN {
                self.pass_dead();
                if self.has_ended {
                    break;
                }
                if run.watch.is_none() {
                    // Writes from before the watch are found from here on.
                    run.watch = Some(tree.dead.watch(self.place(), self.direction));
                }
            }
            // Memtables first: messages that leave them are in pages by then.
            let memtables = tree.current_memtables();
            let mut stretch = self.stretch()?;
            self.take(&mut stretch, &memtables, &mut run, piece)?;
            self.pass(stretch);
        }
        if self.has_ended && piece.is_empty() {
            self.end_dead(&mut run, None);
        }
        Ok(!piece.is_empty())
    }
}
