//! Scans: the records of one basement node after the other, each with what is on its way to it.

use std::ops::Bound;

use super::messages::{Messages, MessagesCursor};
use super::part::Part;
use super::search::{ATTEMPTS, is_valid};
use super::tree::{BeTree, LEVEL_MAX, LEVEL_MIN};
use crate::Error;
use crate::buffered::{Chain, Cursor, Held, KeyVersions, MemtableCursor, Memtables, Merged, RangeTombstones};
use crate::header::PageId;
use crate::index::{Direction, Piece, Steps, Version, behind};
use crate::log::Timestamp;
use crate::pool::{Access, OptimisticGuard};
use crate::sync::Arc;
use crate::task::yield_now;

/// Records of a basement node that the first step of a scan yields at most, and twice as many each further
/// one: a short scan looks at little more than it gives.
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
    /// Whether operands are shown as they are.
    is_unmerged: bool,
}

/// What lies on one way down, of keys from one up to and without another.
struct Stretch {
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    /// The newest first.
    sources: Vec<Arc<Messages>>,
    ranges: RangeTombstones,
    /// The basement node.
    basement: Option<PageId>,
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
        }
    }

    /// The same without operands being merged.
    pub fn unmerged(self) -> Self {
        Self { is_unmerged: true, ..self }
    }

    /// The next stretch, whose keys are all within what is left.
    fn stretch(&self) -> Result<Stretch, Error> {
        let (mut attempts, mut turn) = (0, None);
        loop {
            if let Some(stretch) = self.try_stretch(turn.is_some())? {
                return Ok(stretch);
            }
            self.tree.shared.pool.images.check()?;
            attempts += 1;
            if attempts >= ATTEMPTS && turn.is_none() {
                self.tree.shared.pool.records().give_up();
                turn = Some(self.tree.turns.take());
            }
            yield_now();
        }
    }

    /// The same; `None` if something on the way has changed meanwhile. If nobody changes the tree, what was
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
        let mut contents = Vec::new();
        let mut above: Option<OptimisticGuard<'_>> = None;
        let (mut id, mut expected) = (tree.root, None::<u16>);
        loop {
            let access = if expected == Some(0) { Access::Scan } else { Access::Normal };
            let guard = match tree.shared.pool.read(id, access) {
                Ok(guard) => guard,
                Err(error) => return if is_valid(&above) { Err(error) } else { Ok(None) },
            };
            let part = Part::new(guard.page());
            let content = part.content();
            let is_right = expected.is_none_or(|expected| part.is_of_level(expected));
            if !is_valid(&above) || !guard.is_valid() {
                return Ok(None);
            }
            let content = content.filter(|content| is_right && content.level <= LEVEL_MAX);
            let Some(content) = content else { return Err(tree.damaged(id, expected.unwrap_or_default())) };
            let Some(pivot) = self.pivot(part, content.pivots.len()) else {
                contents.push(content);
                break;
            };
            let (lower, upper) = content.interval(pivot);
            if lower > stretch.lower.as_slice() && self.direction == Direction::Backward {
                stretch.lower = lower.to_vec();
            }
            if let Some(upper) = upper
                && self.direction == Direction::Forward
                && stretch.upper.as_deref().is_none_or(|own| upper < own)
            {
                stretch.upper = Some(upper.to_vec());
            }
            if content.level == LEVEL_MIN {
                let children: Vec<PageId> = content.pivots.iter().map(|pivot| pivot.child).collect();
                self.read_ahead(&children, pivot);
                stretch.basement = Some(children[pivot]);
            }
            (id, expected, above) =
                (content.pivots[pivot].child, Some(content.level - 1), Some(guard).filter(|_| !is_still));
            contents.push(content);
        }
        self.bound(&mut stretch, contents.last().map(|leaf| &leaf.messages));
        for content in contents {
            stretch.ranges.extend(&content.ranges.between(&stretch.lower, stretch.upper.as_deref()));
            if content.level == 2 && planted!(ScanPassesBuffer) {
                continue;
            }
            stretch.sources.push(Arc::new(content.messages));
        }
        Ok(Some(stretch))
    }

    /// The pivot that is next in the direction; `None` of a page that has none.
    fn pivot(&self, part: Part<'_>, count: usize) -> Option<usize> {
        let pivot = match self.direction {
            Direction::Forward => part.pivot_of(&self.lower),
            Direction::Backward => part.pivot_before(self.upper.as_deref()),
        };
        count.checked_sub(1).map(|last| last.min(pivot as usize))
    }

    fn read_ahead(&self, children: &[PageId], pivot: usize) {
        // It reads as many as it has passed: nobody knows how far the scan goes.
        let ahead = self.ahead.min(self.passed) as usize;
        if ahead == 0 || self.basement == Some(children[pivot]) {
            return;
        }
        let near: Vec<PageId> = match self.direction {
            Direction::Forward => children.iter().skip(pivot + 1).take(ahead).copied().collect(),
            Direction::Backward => children[..pivot].iter().rev().take(ahead).copied().collect(),
        };
        self.tree.shared.pool.prefetch_all(&near);
    }

    /// Makes a stretch shorter, so that a step has few records while the scan is short.
    fn bound(&self, stretch: &mut Stretch, records: Option<&Messages>) {
        let Some(records) = records else { return };
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

    /// The versions of a stretch in order.
    fn merged(&self, stretch: &Stretch, memtables: &Memtables) -> Merged {
        let in_memory = memtables.iter().map(|table| {
            let start = Bound::Included(stretch.lower.as_slice());
            Box::new(MemtableCursor::new(table, Direction::Forward, start)) as Box<dyn Cursor>
        });
        let in_pages = stretch.sources.iter().map(|messages| {
            let within = messages.within(&stretch.lower, stretch.upper.as_deref());
            Box::new(MessagesCursor::new(messages, within)) as Box<dyn Cursor>
        });
        Merged::layers(in_memory.chain(in_pages).collect())
    }

    /// What a reader sees of a key: its version, and its value.
    fn seen(
        &self,
        versions: &KeyVersions,
        ranges: &RangeTombstones,
    ) -> Result<Option<(Version, Vec<u8>)>, Error> {
        let removed_at = ranges.newest(versions.key(), self.at);
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
            // An overflow value may have gone, as a flush has put what was made of it into its place.
            Err(_) => {
                let mut value = Vec::new();
                match tree.look_up(versions.key(), self.at, crate::index::May::Wait, &mut value)? {
                    std::task::Poll::Ready(found) => Ok(found.version.map(|version| (version, value))),
                    std::task::Poll::Pending => Ok(None),
                }
            }
        }
    }

    /// Goes on behind a stretch.
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

impl Steps for BeTreeScan {
    fn step(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        piece.clear();
        while piece.is_empty() && !self.has_ended {
            // Memtables first: what leaves them is in pages by then.
            let memtables = self.tree.memtables().clone();
            let mut stretch = self.stretch()?;
            for memtable in memtables.iter() {
                stretch
                    .ranges
                    .extend(&memtable.range_tombstones().between(&stretch.lower, stretch.upper.as_deref()));
            }
            let mut merged = self.merged(&stretch, &memtables);
            let mut versions = KeyVersions::default();
            while merged.next_key(&mut versions)? {
                if stretch.upper.as_deref().is_some_and(|upper| versions.key() >= upper) {
                    break;
                }
                if let Some((version, value)) = self.seen(&versions, &stretch.ranges)? {
                    let put_version = |bytes: &mut Vec<u8>| {
                        bytes.extend_from_slice(&version.bits().to_le_bytes());
                        bytes.extend_from_slice(&value);
                    };
                    piece.push_by(|bytes| bytes.extend_from_slice(versions.key()), put_version);
                }
            }
            self.pass(stretch);
        }
        Ok(!piece.is_empty())
    }
}
