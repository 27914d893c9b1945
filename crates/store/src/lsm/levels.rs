//! The tables of a tree, in their search order.
//!
//! A *run* is tables with key ranges that do not overlap, in key order. A *level* has runs, the newest first.
//! Of two versions of a key, the newer one is in the earlier run, or earlier level. [`Levels`] never change:
//! a flush or compaction makes others.

use std::collections::HashSet;

use super::table::{Place, Places, Summary, Table};
use crate::Error;
use crate::buffered::KeyInterval;
use crate::header::PageId;
use crate::index::LoadId;
use crate::sync::Arc;
use crate::varint;

/// See the module.
pub(super) type Run = Vec<Arc<Table>>;

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Levels {
    /// The runs of each level; the last level has some.
    levels: Vec<Vec<Run>>,
    /// Bytes of the tables of each level.
    bytes: Vec<u64>,
    /// The tables of each [load](super::load) that is prepared: in no level, and without readers.
    loads: Vec<Run>,
}

/// The change that a flush or compaction makes.
pub(super) struct Edit {
    /// Tables that go.
    pub removed: Vec<Arc<Table>>,
    /// Tables that come, in key order.
    pub added: Vec<Arc<Table>>,
    pub to: Target,
}

impl Edit {
    /// Whether the tables that come are those that go.
    fn is_move(&self) -> bool {
        self.added.iter().all(|table| self.removed.iter().any(|removed| Arc::ptr_eq(table, removed)))
    }
}

/// Where new tables go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A run of their own, newer than the others of the level.
    NewRun(usize),
    /// The oldest run of the level, where they replace the removed tables; a run of their own if the level
    /// has none.
    OldestRun(usize),
}

impl Target {
    pub fn level(self) -> usize {
        match self {
            Self::NewRun(level) | Self::OldestRun(level) => level,
        }
    }
}

impl<'a> KeyInterval<'a> {
    pub(in crate::lsm) fn of(table: &'a Table) -> Self {
        Self { first: &table.summary.first_key, last: &table.summary.last_key }
    }

    /// The keys between those of all tables, whatever their order; `None` if there are no tables.
    pub(in crate::lsm) fn over(tables: impl IntoIterator<Item = &'a Arc<Table>>) -> Option<Self> {
        let both = |one: Self, other: Self| Self {
            first: one.first.min(other.first),
            last: one.last.max(other.last),
        };
        tables.into_iter().map(|table| Self::of(table)).reduce(both)
    }
}

/// The tables of a run that may have keys of a range, by binary search.
pub(super) fn overlapping<'a>(run: &'a [Arc<Table>], range: KeyInterval<'_>) -> &'a [Arc<Table>] {
    let start = run.partition_point(|table| table.summary.last_key.as_slice() < range.first);
    let rest = run.get(start..).unwrap_or_default();
    rest.get(..rest.partition_point(|table| table.summary.first_key.as_slice() <= range.last))
        .unwrap_or_default()
}

pub(super) fn bytes_of<'a>(tables: impl IntoIterator<Item = &'a Arc<Table>>) -> u64 {
    tables.into_iter().map(|table| table.summary.bytes).sum()
}

/// A table as the manifest has it.
pub(super) struct Entry {
    pub pages: Vec<PageId>,
    pub places: Places,
    pub summary: Summary,
}

impl Levels {
    /// The levels with these runs.
    pub fn new(mut levels: Vec<Vec<Run>>) -> Self {
        levels.iter_mut().for_each(|runs| runs.retain(|run| !run.is_empty()));
        while levels.pop_if(|runs| runs.is_empty()).is_some() {}
        let bytes = levels.iter().map(|runs| bytes_of(runs.iter().flatten())).collect();
        Self { levels, bytes, loads: Vec::new() }
    }

    /// How many levels there are down to the last one with tables.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The runs of a level, the newest first.
    pub fn level(&self, level: usize) -> &[Run] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// All runs, in their search order.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.levels.iter().flatten()
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.runs().flatten()
    }

    /// The loads that are prepared.
    pub fn loads(&self) -> impl DoubleEndedIterator<Item = LoadId> {
        self.loads.iter().map(id_of)
    }

    /// The tables of a load that is prepared.
    pub fn load(&self, load: LoadId) -> Option<&Run> {
        self.loads.iter().find(|run| id_of(run) == load)
    }

    /// All tables of loads, which have no readers yet.
    pub fn loaded_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.loads.iter().flatten()
    }

    /// The same with one more load that is prepared.
    #[must_use]
    pub fn with_load(&self, run: Run) -> Self {
        let mut levels = self.clone();
        levels.loads.push(run);
        levels
    }

    /// The same without a load.
    #[must_use]
    pub fn without_load(&self, load: LoadId) -> Self {
        let mut levels = self.clone();
        levels.loads.retain(|run| id_of(run) != load);
        levels
    }

    /// Bytes of the tables of a level.
    pub fn bytes(&self, level: usize) -> u64 {
        self.bytes.get(level).copied().unwrap_or(0)
    }

    /// The levels after a change. A table that goes and comes is moved.
    #[must_use]
    pub fn with(&self, edit: &Edit) -> Self {
        let mut levels = self.levels.clone();
        let removed: HashSet<*const Table> = edit.removed.iter().map(Arc::as_ptr).collect();
        levels
            .iter_mut()
            .flatten()
            .for_each(|run| run.retain(|table| !removed.contains(&Arc::as_ptr(table))));
        let level = edit.to.level();
        if levels.len() <= level {
            levels.resize_with(level + 1, Vec::new);
        }
        if let Some(runs) = levels.get_mut(level) {
            match (edit.to, runs.last_mut()) {
                (Target::OldestRun(_), Some(run)) => {
                    run.extend(edit.added.iter().cloned());
                    run.sort_by(|one, other| one.summary.first_key.cmp(&other.summary.first_key));
                    debug_assert!(is_run(run), "tables of a run overlap after a change of level {level}");
                }
                (_, Some(_)) if planted!(NewRunBehindOlder) => runs.push(edit.added.clone()),
                (_, Some(_)) if edit.is_move() && planted!(MovedRunBehindOlder) => {
                    runs.push(edit.added.clone());
                }
                _ => runs.insert(0, edit.added.clone()),
            }
        }
        Self { loads: self.loads.clone(), ..Self::new(levels) }
    }

    /// The levels as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::put(self.levels.len() as u64, &mut bytes);
        for runs in &self.levels {
            encode_runs(runs, &mut bytes);
        }
        if !self.loads.is_empty() {
            encode_runs(&self.loads, &mut bytes);
        }
        bytes
    }
}

/// Names a load: no other segment ever has the opening sequence of its first one.
fn id_of(run: &Run) -> LoadId {
    LoadId(run.first().map_or(0, |table| table.opening()))
}

fn encode_runs(runs: &[Run], into: &mut Vec<u8>) {
    varint::put(runs.len() as u64, into);
    for run in runs {
        varint::put(run.len() as u64, into);
        run.iter().for_each(|table| encode_table(table, into));
    }
}

/// Whether tables are in key order and do not overlap.
pub(super) fn is_run(tables: &[Arc<Table>]) -> bool {
    tables.is_sorted_by(|one, other| one.summary.last_key < other.summary.first_key)
}

fn encode_table(table: &Table, into: &mut Vec<u8>) {
    let Table { pages, places, summary, .. } = table;
    varint::put(pages.len() as u64, into);
    pages.iter().for_each(|page| varint::put(page.0, into));
    places.top.put(into);
    varint::put(places.ranges.len() as u64, into);
    places.ranges.iter().for_each(|place| place.put(into));
    for key in [&summary.first_key, &summary.last_key] {
        varint::put(key.len() as u64, into);
        into.extend_from_slice(key);
    }
    let Summary { records, tombstones, bytes, newest, range_tombstones, overflows, .. } = summary;
    for number in [records, tombstones, bytes, newest, range_tombstones, overflows] {
        varint::put(*number, into);
    }
}

/// Decodes levels, runs and tables, and opens each table by `open`.
///
/// # Errors
/// Those of `open`; `None` for bytes that [`Levels::encode`] cannot have returned.
pub(super) fn decode(
    mut bytes: &[u8],
    open: &mut dyn FnMut(Entry) -> Result<Table, Error>,
) -> Result<Option<Levels>, Error> {
    let rest = &mut bytes;
    let mut levels = Vec::new();
    let Some(level_count) = varint::take(rest) else { return Ok(None) };
    for _ in 0..level_count {
        let Some(runs) = decode_runs(rest, open)? else { return Ok(None) };
        levels.push(runs);
    }
    let loads = match rest.is_empty() {
        true => Some(Vec::new()),
        false => decode_runs(rest, open)?,
    };
    let levels = loads.map(|loads| Levels { loads, ..Levels::new(levels) });
    Ok(levels.filter(|_| rest.is_empty()))
}

fn decode_runs(
    rest: &mut &[u8],
    open: &mut dyn FnMut(Entry) -> Result<Table, Error>,
) -> Result<Option<Vec<Run>>, Error> {
    let Some(run_count) = varint::take(rest) else { return Ok(None) };
    let mut runs = Vec::new();
    for _ in 0..run_count {
        let Some(table_count) = varint::take(rest) else { return Ok(None) };
        let mut run = Run::new();
        for _ in 0..table_count {
            let Some(entry) = decode_entry(rest) else { return Ok(None) };
            run.push(Arc::new(open(entry)?));
        }
        runs.push(run);
    }
    Ok(Some(runs))
}

fn decode_entry(rest: &mut &[u8]) -> Option<Entry> {
    let count = varint::take(rest)?;
    // Each takes a byte at least.
    if count > rest.len() as u64 {
        return None;
    }
    let pages = (0..count).map(|_| varint::take(rest).map(PageId)).collect::<Option<_>>()?;
    let top = Place::take(rest)?;
    let ranges = varint::take(rest)?;
    if ranges > rest.len() as u64 {
        return None;
    }
    let ranges = (0..ranges).map(|_| Place::take(rest)).collect::<Option<_>>()?;
    let mut key = || {
        let length = usize::try_from(varint::take(rest)?).ok()?;
        let (key, others) = rest.split_at_checked(length)?;
        *rest = others;
        Some(key.to_vec())
    };
    let (first_key, last_key) = (key()?, key()?);
    let mut number = || varint::take(rest);
    let (records, tombstones, bytes, newest) = (number()?, number()?, number()?, number()?);
    let (range_tombstones, overflows) = (number()?, number()?);
    let summary =
        Summary { first_key, last_key, records, tombstones, bytes, newest, range_tombstones, overflows };
    Some(Entry { pages, places: Places { top, ranges }, summary })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::segment::OwnedBlock;

    fn table(first: u8, last: u8, number: u64) -> Arc<Table> {
        let summary =
            Summary { first_key: vec![first], last_key: vec![last], records: number, ..Summary::default() };
        let place = |start| Place { segment: 1, block: OwnedBlock { start, length: 30 } };
        let places = Places { top: place(700), ranges: vec![place(400), place(500)] };
        Arc::new(Table::new(Vec::new(), vec![PageId(number), PageId(number + 1)], places, summary))
    }

    /// A table with these keys, of `bytes` bytes.
    pub fn sized(first: u8, last: u8, bytes: u64) -> Arc<Table> {
        let summary = Summary { first_key: vec![first], last_key: vec![last], bytes, ..Summary::default() };
        Arc::new(Table::new(Vec::new(), Vec::new(), Places::default(), summary))
    }

    fn numbers(levels: &Levels) -> Vec<Vec<Vec<u64>>> {
        let of_run = |run: &Run| run.iter().map(|table| table.summary.records).collect();
        levels.levels.iter().map(|runs| runs.iter().map(of_run).collect()).collect()
    }

    #[test]
    fn flushes_make_runs_and_compactions_replace_tables() {
        let flush =
            |number| Edit { removed: Vec::new(), added: vec![table(0, 9, number)], to: Target::NewRun(0) };
        let levels = Levels::default().with(&flush(1)).with(&flush(2));
        assert_eq!(numbers(&levels), [[[2], [1]]]);
        let all: Vec<_> = levels.tables().cloned().collect();
        let merged =
            Edit { removed: all, added: vec![table(0, 4, 3), table(5, 9, 4)], to: Target::OldestRun(1) };
        let levels = levels.with(&merged).with(&flush(5));
        assert_eq!(numbers(&levels), [vec![vec![5]], vec![vec![3, 4]]]);
        let half = vec![Arc::clone(&levels.level(0)[0][0]), Arc::clone(&levels.level(1)[0][1])];
        let next =
            Edit { removed: half, added: vec![table(5, 7, 6), table(8, 9, 7)], to: Target::OldestRun(1) };
        assert_eq!(numbers(&levels.with(&next)), [vec![], vec![vec![3, 6, 7]]]);
    }

    #[test]
    fn a_table_is_moved_by_going_and_coming() {
        let moved = table(4, 5, 2);
        let levels = Levels::new(vec![
            vec![vec![table(0, 9, 1)]],
            vec![vec![Arc::clone(&moved)]],
            vec![vec![table(0, 3, 3), table(6, 9, 4)]],
        ]);
        let edit = Edit { removed: vec![Arc::clone(&moved)], added: vec![moved], to: Target::OldestRun(2) };
        assert_eq!(numbers(&levels.with(&edit)), [vec![vec![1]], vec![], vec![vec![3, 2, 4]]]);
    }

    #[test]
    fn empty_levels_at_the_end_are_none() {
        let levels = Levels::new(vec![vec![vec![table(0, 9, 1)]], vec![vec![]]]);
        assert_eq!((levels.depth(), levels.level(0).len(), levels.level(1).len()), (1, 1, 0));
        let all = levels.tables().cloned().collect();
        let emptied = levels.with(&Edit { removed: all, added: Vec::new(), to: Target::NewRun(3) });
        assert_eq!((emptied.depth(), emptied.bytes(0)), (0, 0));
    }

    #[test]
    fn levels_come_back() {
        let levels = Levels::new(vec![
            vec![vec![table(0, 9, 1)], vec![table(3, 4, 200)]],
            vec![],
            vec![vec![table(1, 2, 3), table(5, 6, 9)]],
        ]);
        let mut open = |entry: Entry| Ok(Table::new(Vec::new(), entry.pages, entry.places, entry.summary));
        let bytes = levels.encode();
        let back = decode(&bytes, &mut open).unwrap().unwrap();
        assert_eq!(numbers(&back), numbers(&levels));
        assert_eq!(back.encode(), bytes);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length], &mut open).unwrap().is_none(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn the_search_finds_what_overlaps(
            bounds in proptest::collection::btree_set(any::<u8>(), 0..40),
            (first, last) in any::<(u8, u8)>(),
        ) {
            let bounds: Vec<u8> = bounds.into_iter().collect();
            let run: Run = bounds.as_chunks::<2>().0.iter().map(|[first, last]| table(*first, *last, 0)).collect();
            prop_assert!(is_run(&run));
            let (first, last) = (&[first.min(last)], &[first.max(last)]);
            let range = KeyInterval { first, last };
            let of = |table: &Arc<Table>| table.summary.first_key[0];
            let all: Vec<u8> =
                run.iter().filter(|table| KeyInterval::of(table).overlaps(range)).map(of).collect();
            prop_assert_eq!(all, overlapping(&run, range).iter().map(of).collect::<Vec<_>>());
        }

        #[test]
        fn nonsense_is_no_panic(bytes: Vec<u8>) {
            let mut open = |entry: Entry| Ok(Table::new(Vec::new(), entry.pages, entry.places, entry.summary));
            let _any_answer = decode(&bytes, &mut open);
        }
    }
}
