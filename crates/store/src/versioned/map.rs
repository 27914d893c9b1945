//! An ordered map in plain memory, where every access may let others run first.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;

use super::ordered_map::{OrderedMap, Pieces};
use super::{History, InPlace};
use crate::Error;
use crate::btree::Change;
use crate::header::PageId;
use crate::index::{Census, Direction, LeafHint, Limits, Piece, Tree, TreeId};
use crate::poison::Poison;
use crate::task::yield_now;

thread_local! {
    static FAILS_IN: Cell<u64> = const { Cell::new(0) };
    static IS_FULL_THEN: Cell<bool> = const { Cell::new(false) };
}

/// Of the accesses to maps on the calling thread, the `nth` from now on fails, counted from 1, as one does
/// whose page cannot be read; none if it is 0.
pub(crate) fn fail_at(nth: u64) {
    FAILS_IN.set(nth);
    IS_FULL_THEN.set(false);
}

/// As [`fail_at`], but that one finds no room.
pub(crate) fn be_full_at(nth: u64) {
    FAILS_IN.set(nth);
    IS_FULL_THEN.set(true);
}

/// Whether the planned failure has happened.
pub(crate) fn has_failed() -> bool {
    FAILS_IN.get() == 0
}

/// Old versions: some are in `recent_bytes` of plain memory, the others in maps.
pub(crate) fn history(poison: &Poison, recent_bytes: u64) -> Arc<History> {
    let make = Box::new(|| Ok(Arc::new(Map::default()) as _));
    Arc::new(History::new(make, recent_bytes, poison.clone()))
}

/// A tree that is changed in place, and its map.
pub(crate) fn tree(id: u32, history: &Arc<History>) -> (Tree, Arc<Map>) {
    let (id, map) = (TreeId(id), Arc::new(Map::default()));
    let index = Arc::new(InPlace::new(id, Arc::clone(&map), Arc::clone(history)));
    (Tree { id, index }, map)
}

#[derive(Default)]
pub(crate) struct Map {
    records: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    draws: AtomicU64,
    changes: AtomicU64,
}

impl Map {
    pub fn len(&self) -> usize {
        self.records.lock().unwrap().len()
    }

    pub fn all(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.records.lock().unwrap().clone().into_iter().collect()
    }

    /// How often a record was put or removed.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// As a page fault does.
    fn dawdle(&self) -> Result<(), Error> {
        let draw = self.draws.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
        (0..draw.saturating_sub(5)).for_each(|_| yield_now());
        let fails_in = FAILS_IN.get();
        FAILS_IN.set(fails_in.saturating_sub(1));
        match fails_in {
            1 if IS_FULL_THEN.get() => Err(Error::Full { why: "as asked".into() }),
            1 => Err(Error::io("look at a record", libc::EIO)),
            _ => Ok(()),
        }
    }
}

impl OrderedMap for Map {
    fn get(&self, key: &[u8], into: &mut Vec<u8>, _hint: &mut Option<LeafHint>) -> Result<bool, Error> {
        self.dawdle()?;
        let records = self.records.lock().unwrap();
        Ok(records.get(key).map(|value| into.extend_from_slice(value)).is_some())
    }

    fn head(&self, key: &[u8], hint: &mut Option<LeafHint>) -> Result<Option<u64>, Error> {
        let mut value = Vec::new();
        let found = self.get(key, &mut value, hint)?;
        Ok(found.then(|| u64::from_le_bytes(value[..8].try_into().unwrap())))
    }

    /// Some calls have to wait for it. Only calls that wait meet failures.
    fn get_resident(&self, key: &[u8], into: &mut Vec<u8>, _hint: &mut Option<LeafHint>) -> Option<bool> {
        let is_resident = self.draws.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) && has_failed();
        let value = self.records.lock().unwrap().get(key).filter(|_| is_resident).cloned();
        into.extend_from_slice(value.as_deref().unwrap_or_default());
        is_resident.then_some(value.is_some())
    }

    fn change_at(&self, key: &[u8], _hint: &mut Option<LeafHint>, change: Change<'_>) -> Result<(), Error> {
        self.update(key, &mut |_| change)
    }

    fn update<'v>(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<(), Error> {
        self.dawdle()?;
        let mut records = self.records.lock().unwrap();
        let change = decide(records.get(key).map(Vec::as_slice));
        self.changes.fetch_add(u64::from(!matches!(change, Change::Keep)), Ordering::Relaxed);
        match change {
            Change::Keep => {}
            Change::Put(value) => drop(records.insert(key.to_vec(), value.to_vec())),
            Change::Remove => drop(records.remove(key)),
        }
        Ok(())
    }

    fn scan(
        self: Arc<Self>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        _ahead: u32,
    ) -> Box<dyn Pieces> {
        let bounds = (lower.to_vec(), upper.map(<[u8]>::to_vec));
        Box::new(MapSteps { map: self, direction, bounds, ended: false })
    }

    fn limits(&self) -> Limits {
        Limits { key_bytes: 200, value_bytes: 1000, node_bytes: 4096 }
    }

    fn walk(
        &self,
        _page: &mut dyn FnMut(PageId),
        record: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<Census, Error> {
        let records = self.records.lock().unwrap();
        records.iter().for_each(|(key, value)| record(key, value));
        Ok(Census { records: records.len() as u64, ..Census::default() })
    }

    fn is_cut_off(&self) -> Result<bool, Error> {
        Ok(false)
    }

    fn clear(&self, _go_on: &dyn Fn() -> Result<(), Error>) -> Result<(), Error> {
        self.destroy()
    }

    fn destroy(&self) -> Result<(), Error> {
        self.dawdle()?;
        self.records.lock().unwrap().clear();
        Ok(())
    }
}

struct MapSteps {
    map: Arc<Map>,
    direction: Direction,
    bounds: (Vec<u8>, Option<Vec<u8>>),
    ended: bool,
}

impl Pieces for MapSteps {
    fn next(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        const STEP: usize = 3;
        self.map.dawdle()?;
        piece.clear();
        let (lower, upper) = &mut self.bounds;
        if self.ended || upper.as_ref().is_some_and(|upper| upper <= lower) {
            return Ok(false);
        }
        let records = self.map.records.lock().unwrap();
        let upper_bound = upper.as_ref().map_or(Bound::Unbounded, |upper| Bound::Excluded(upper.clone()));
        let mut range = records.range::<Vec<u8>, _>((Bound::Included(lower.clone()), upper_bound));
        let mut found: Vec<_> = match self.direction {
            Direction::Forward => range.by_ref().take(STEP).collect(),
            Direction::Backward => range.by_ref().rev().take(STEP).collect(),
        };
        self.ended = found.len() < STEP;
        if let Some((last, _)) = found.last() {
            match self.direction {
                Direction::Forward => *lower = [last.as_slice(), &[0]].concat(),
                Direction::Backward => *upper = Some(last.to_vec()),
            }
        }
        if self.direction == Direction::Backward {
            found.reverse();
        }
        found.iter().for_each(|(key, value)| piece.push(key, value));
        Ok(!piece.is_empty())
    }
}
