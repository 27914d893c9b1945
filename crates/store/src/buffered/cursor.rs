//! Cursors: versions of one source in the order of a scan, and of several sources together.
//!
//! The forward order is by key, and the newer versions of a key first; the backward order is the reverse.

use std::cmp::Ordering;
use std::ops::Bound;

use super::memtable::Memtable;
use super::versions::KeyVersions;
use crate::Error;
use crate::index::{Direction, Version};
use crate::log::Timestamp;
use crate::sync::Arc;

/// The order of versions: by key, and within a key the newer ones first.
pub(crate) fn order(one: (&[u8], Timestamp), other: (&[u8], Timestamp)) -> Ordering {
    one.0.cmp(other.0).then(other.1.cmp(&one.1))
}

/// The start of a scan: at this key, or after it in the scan's direction.
pub(crate) type Start<'a> = Bound<&'a [u8]>;

/// The place among versions where a scan begins: forward with the first that does not lie before it, backward
/// with the last that does. `None`: at its end.
pub(crate) fn place_of(start: Start<'_>, direction: Direction) -> Option<(&[u8], Timestamp)> {
    // The newest version of a key comes first, and 0 is older than any.
    let (before, behind) = (Timestamp(u64::MAX), Timestamp(0));
    match (start, direction) {
        (Bound::Unbounded, _) => None,
        (Bound::Included(key), Direction::Forward) | (Bound::Excluded(key), Direction::Backward) => {
            Some((key, before))
        }
        (Bound::Excluded(key), Direction::Forward) | (Bound::Included(key), Direction::Backward) => {
            Some((key, behind))
        }
    }
}

/// Versions one after the other.
pub(crate) trait Cursor: Send {
    /// The present version; `None` at the end.
    fn get(&self) -> Option<(&[u8], Version, &[u8])>;

    /// Goes to the next one.
    ///
    /// # Errors
    /// Those of reading a table.
    fn advance(&mut self) -> Result<(), Error>;

    /// Gives back its share of memory until it goes on: it may not be used for long.
    fn let_go(&mut self) {}
}

/// See [`Cursor`].
pub(crate) struct MemtableCursor {
    table: Arc<Memtable>,
    direction: Direction,
    /// The present version's node, and its key, version and value.
    node: Option<u32>,
    key: Vec<u8>,
    version: Version,
    value: Vec<u8>,
}

impl MemtableCursor {
    pub fn new(table: &Arc<Memtable>, direction: Direction, start: Start<'_>) -> Self {
        let node = table.seek(place_of(start, direction), direction);
        let (key, value) = (Vec::new(), Vec::new());
        let table = Arc::clone(table);
        let mut cursor = Self { table, direction, node, key, version: Version::from_bits(0), value };
        cursor.load();
        cursor
    }

    fn load(&mut self) {
        if let Some(node) = self.node {
            self.version = self.table.load(node, &mut self.key, &mut self.value);
        }
    }
}

impl Cursor for MemtableCursor {
    fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        self.node.map(|_| (self.key.as_slice(), self.version, self.value.as_slice()))
    }

    fn advance(&mut self) -> Result<(), Error> {
        let Some(node) = self.node else { return Ok(()) };
        self.node = match self.direction {
            Direction::Forward => self.table.next(node),
            Direction::Backward => {
                self.table.seek(Some((&self.key, self.version.timestamp())), Direction::Backward)
            }
        };
        self.load();
        Ok(())
    }
}

/// The versions of a memtable that a scan as of a snapshot needs. Of each key it yields those that the
/// snapshot sees, operands as their sums, and the newest one, which shows whether the key was written since.
/// So the cost of a key does not depend on the number of its versions.
pub(crate) struct SeenCursor {
    table: Arc<Memtable>,
    direction: Direction,
    at: Timestamp,
    sums: bool,
    node: u32,
    versions: KeyVersions,
    /// The present one of the versions.
    present: usize,
}

impl SeenCursor {
    /// `sums`: operands of several commits may be one version.
    pub fn new(
        table: &Arc<Memtable>,
        direction: Direction,
        start: Start<'_>,
        (at, sums): (Timestamp, bool),
    ) -> Self {
        let node = table.seek(place_of(start, direction), direction);
        let (table, versions) = (Arc::clone(table), KeyVersions::default());
        let mut cursor = Self { table, direction, at, sums, node: 0, versions, present: 0 };
        cursor.enter(node);
        cursor
    }

    fn enter(&mut self, node: Option<u32>) {
        self.present = 0;
        self.versions.all.clear();
        let Some(node) = node else { return };
        // Backward it is the oldest version of its key.
        self.node = match self.direction {
            Direction::Forward => node,
            Direction::Backward => self.table.newest_of(node),
        };
        self.table.seen_of(self.node, (self.at, self.sums), &mut self.versions);
        if self.direction == Direction::Backward {
            self.versions.all.reverse();
        }
    }
}

impl Cursor for SeenCursor {
    fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        let held = self.versions.all.get(self.present)?;
        Some((self.versions.key(), held.version, self.versions.value(held)))
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.present += 1;
        if self.present < self.versions.all.len() || self.versions.all.is_empty() {
            return Ok(());
        }
        let key = self.versions.key();
        let next = match self.direction {
            Direction::Forward => self.table.next_key(self.node, key),
            Direction::Backward => self.table.seek(Some((key, Timestamp(u64::MAX))), Direction::Backward),
        };
        self.enter(next);
        Ok(())
    }
}

/// The versions of several sources, the newest source first, in order. A version that several sources have
/// comes once.
pub(crate) struct Merged {
    sources: Vec<Box<dyn Cursor>>,
    direction: Direction,
    /// Numbers of the sources that have versions left, as a heap with the first version on top.
    heap: Vec<usize>,
    /// Whether sources are layers that versions go down through.
    are_layers: bool,
}

impl Merged {
    pub fn new(sources: Vec<Box<dyn Cursor>>, direction: Direction) -> Self {
        let heap = (0..sources.len()).filter(|number| sources[*number].get().is_some()).collect();
        let mut merged = Self { sources, direction, heap, are_layers: false };
        (0..merged.heap.len() / 2).rev().for_each(|at| merged.sift_down(at));
        merged
    }

    /// Merges layers: sources that the versions of a key go down through in their order, from the newest
    /// source to the oldest, and that are read one after the other. If a later source has a version that is
    /// at least as new as one of an earlier source, the latter has come down meanwhile, and is in the later
    /// source as well.
    pub fn layers(sources: Vec<Box<dyn Cursor>>) -> Self {
        Self { are_layers: true, ..Self::new(sources, Direction::Forward) }
    }

    /// See [`Cursor::let_go`].
    pub fn let_go(&mut self) {
        self.sources.iter_mut().for_each(|source| source.let_go());
    }

    /// Whether the version of one source comes before that of another. Among equal ones, that of the older
    /// source does: a merge may have put more into it.
    fn is_before(&self, one: usize, other: usize) -> bool {
        let place = |number: usize| {
            let (key, version, _) = self.sources[number].get()?;
            Some((key, version.timestamp()))
        };
        let numbers = (one, other);
        let Some((one, other)) = place(one).zip(place(other)) else { return false };
        let order = match self.direction {
            Direction::Forward => order(one, other),
            Direction::Backward => order(other, one),
        };
        order.then(numbers.1.cmp(&numbers.0)) == Ordering::Less
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut first = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.is_before(self.heap[child], self.heap[first]) {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.heap.swap(at, first);
            at = first;
        }
    }

    /// The present version; `None` at the end.
    pub fn get(&self) -> Option<(&[u8], Version, &[u8])> {
        self.sources.get(*self.heap.first()?)?.get()
    }

    fn advance_first(&mut self) -> Result<(), Error> {
        let Some(first) = self.heap.first().copied() else { return Ok(()) };
        self.sources[first].advance()?;
        if self.sources[first].get().is_none() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    /// Puts all versions of the next key into `versions`, in the order of the direction; `false` at the end.
    ///
    /// # Errors
    /// Those of reading a table.
    pub fn next_key(&mut self, versions: &mut KeyVersions) -> Result<bool, Error> {
        let Some((key, version, value)) = self.get() else { return Ok(false) };
        versions.begin(key);
        versions.push(version, value);
        let (mut last, mut layer) = (version.timestamp(), self.heap.first().copied());
        loop {
            self.advance_first()?;
            let Some((key, version, value)) = self.get().filter(|(key, ..)| *key == versions.key()) else {
                return Ok(true);
            };
            debug_assert_eq!(key, versions.key(), "a version of another key");
            let own_layer = self.heap.first().copied();
            if self.are_layers && own_layer < layer {
                continue;
            }
            // Replayed versions may lie in a memtable and in a table.
            if version.timestamp() != last {
                (last, layer) = (version.timestamp(), own_layer);
                versions.push(version, value);
            }
        }
    }
}
