//! Stretches of keys without records, as scans have found them.
//!
//! The tombstones of a queue's consumed records stay until merges have brought them to the records that they
//! remove. A scan that begins among them would step over all of them, again and again. So the tree remembers
//! a stretch of keys if a scan has found no record in it, and the first commit that this holds for; later
//! scans pass it in one step. A write into a stretch ends it there.
//!
//! The steps of a scan that comes to many keys without records:
//!
//! 1. It *watches* the keys that lie before it: from then on every write among them is noted.
//! 2. It reads the present memtables and tables, from there on. They have all earlier writes, even those
//!    newer than the scan's snapshot; later writes are noted.
//! 3. At the first record, at a key that was written since its snapshot, or at its end, it has the stretch up
//!    to there, and up to the first noted write, remembered.
//!
//! A commit is visible only after it has ended the stretches that it writes to. So a scan whose snapshot is
//! not older than a stretch finds nothing in it.
//!
//! Scans add stretches; any commit may shorten them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::fence;

use crate::index::{ActiveSnapshots, Direction, Version, behind};
use crate::log::Timestamp;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// After this number of keys without records in a row, a scan asks for a stretch, and begins one.
pub(crate) const DEAD_RUN: usize = 16;

/// All stretches are forgotten when their keys take more bytes.
const BYTES_MAX: usize = 1 << 20;

/// See the module.
#[derive(Default)]
pub(crate) struct Dead {
    /// The number of stretches and watches. It is written before a scan looks for writes, and read by a
    /// writer after its write: at least one sees the other.
    count: AtomicUsize,
    state: Mutex<State>,
}

/// A key that a scan has come to, as its snapshot sees it.
pub(crate) enum Met<T> {
    Record(T),
    /// No record, nor for later snapshots, from this commit on.
    Dead(Timestamp),
    /// No record, and one for a later snapshot.
    WrittenSince,
}

impl<T> Met<T> {
    /// The result of a scan as of `at` for a key with this newest version.
    pub fn of(record: Option<T>, newest: Option<Version>, at: Timestamp) -> Self {
        match (record, newest) {
            (Some(record), _) => Self::Record(record),
            (None, Some(newest)) if newest.timestamp() <= at => Self::Dead(at),
            (None, Some(newest)) if newest.is_tombstone() => Self::Dead(newest.timestamp()),
            (None, _) => Self::WrittenSince,
        }
    }
}

#[derive(Default)]
struct State {
    /// By their first key; they do not overlap.
    stretches: BTreeMap<Vec<u8>, Stretch>,
    bytes: usize,
    watches: Vec<Watched>,
    next_watch: u64,
}

/// Keys up to, and without, the upper one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    upper: Option<Vec<u8>>,
    /// Snapshots from this one on see nothing in it.
    as_of: Timestamp,
}

struct Watched {
    number: u64,
    /// Forward from this key on; backward the keys before it, or all without one.
    from: Option<Vec<u8>>,
    direction: Direction,
    /// The nearest key that was written since.
    written: Option<Vec<u8>>,
    /// Whether the watch is of no use any more.
    is_void: bool,
}

/// A scan's watch. See the module.
pub(crate) struct Watch<'a> {
    dead: &'a Dead,
    number: u64,
}

impl Dead {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, state: &State) {
        self.count.store(state.stretches.len() + state.watches.len(), Ordering::SeqCst);
    }

    /// Notes that a key was written. To be called after the write and before its commit becomes visible.
    #[inline]
    pub fn written(&self, key: &[u8]) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) > 0 {
            self.end_at(key);
        }
    }

    #[cold]
    fn end_at(&self, key: &[u8]) {
        let mut state = self.state();
        for watch in &mut state.watches {
            watch.note(key);
        }
        state.cut(key);
        self.note(&state);
    }

    /// As [`Dead::written`], for any keys.
    pub fn all_written(&self) {
        fence(Ordering::SeqCst);
        let mut state = self.state();
        state.watches.iter_mut().for_each(|watch| watch.is_void = true);
        (state.stretches, state.bytes) = (BTreeMap::new(), 0);
        self.note(&state);
    }

    /// The place where a scan as of `at` continues. `from` is its present place: forward, the keys from this
    /// one on; backward, those before it, or the last ones without it. `None`: it continues there. Otherwise
    /// it continues after the stretches: forward from the key on, or it has ended without one; backward
    /// before the key.
    pub fn passed(
        &self,
        from: Option<&[u8]>,
        direction: Direction,
        at: Timestamp,
    ) -> Option<Option<Vec<u8>>> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let state = self.state();
        let mut to: Option<Option<Vec<u8>>> = None;
        loop {
            let place = match &to {
                None => from,
                Some(None) => return to,
                Some(Some(key)) => Some(key.as_slice()),
            };
            let next = state.at(place, direction).filter(|(_, stretch)| stretch.as_of <= at);
            let Some((lower, stretch)) = next else { return to };
            to = Some(match direction {
                Direction::Forward => stretch.upper.clone(),
                Direction::Backward if lower.is_empty() => return Some(Some(Vec::new())),
                Direction::Backward => Some(lower.clone()),
            });
        }
    }

    /// Watches the keys that lie before a scan. `from` and `direction` are as with [`Dead::passed`].
    pub fn watch(&self, from: Option<&[u8]>, direction: Direction) -> Watch<'_> {
        let mut state = self.state();
        let number = state.next_watch;
        state.next_watch += 1;
        let from = from.map(<[u8]>::to_vec);
        state.watches.push(Watched { number, from, direction, written: None, is_void: false });
        self.note(&state);
        drop(state);
        fence(Ordering::SeqCst);
        Watch { dead: self, number }
    }

    /// Stretches that it has.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.state().stretches.len()
    }
}

impl Watched {
    fn note(&mut self, key: &[u8]) {
        let is_nearer = match self.direction {
            Direction::Forward => {
                self.from.as_deref().is_none_or(|from| key >= from)
                    && self.written.as_deref().is_none_or(|nearest| key < nearest)
            }
            Direction::Backward => {
                self.from.as_deref().is_none_or(|from| key < from)
                    && self.written.as_deref().is_none_or(|nearest| key > nearest)
            }
        };
        if is_nearer {
            self.written = Some(key.to_vec());
        }
    }

    /// The stretch that it has come to.
    fn stretch(self, until: Bound<&[u8]>) -> (Vec<u8>, Option<Vec<u8>>) {
        let (from, written) = (self.from, self.written);
        match (self.direction, until) {
            (Direction::Forward, Bound::Unbounded) => (from.unwrap_or_default(), written),
            (Direction::Forward, Bound::Included(key) | Bound::Excluded(key)) => {
                let nearest = written.into_iter().chain([key.to_vec()]).min();
                (from.unwrap_or_default(), nearest)
            }
            (Direction::Backward, until) => {
                let first = match until {
                    Bound::Unbounded => Vec::new(),
                    Bound::Included(key) => key.to_vec(),
                    Bound::Excluded(key) => behind(key),
                };
                let lower = written.as_deref().map(behind).into_iter().chain([first]).max();
                (lower.unwrap_or_default(), from)
            }
        }
    }
}

impl Watch<'_> {
    /// The scan has seen nothing up to, and without, a key in its direction, or to the end of its range: for
    /// the smallest key of a scan backward that is an included bound. That holds for all snapshots from
    /// `as_of` on.
    pub fn end(self, until: Bound<&[u8]>, as_of: Timestamp, snapshots: &ActiveSnapshots) {
        let mut state = self.dead.state();
        let own = state.watches.iter().position(|watch| watch.number == self.number);
        if let Some(own) = own.map(|own| state.watches.swap_remove(own)).filter(|own| !own.is_void) {
            let (lower, upper) = own.stretch(until);
            state.add(lower, Stretch { upper, as_of }, snapshots);
        }
        self.dead.note(&state);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut state = self.dead.state();
        state.watches.retain(|watch| watch.number != self.number);
        self.dead.note(&state);
    }
}

fn bytes_of(lower: &[u8], stretch: &Stretch) -> usize {
    lower.len() + stretch.upper.as_ref().map_or(0, Vec::len) + size_of::<Stretch>()
}

impl State {
    /// The stretch that contains the next keys of a scan in this direction.
    fn at(&self, from: Option<&[u8]>, direction: Direction) -> Option<(&Vec<u8>, &Stretch)> {
        let key = from.unwrap_or_default();
        match (direction, from) {
            (Direction::Forward, _) => {
                let before = (Bound::Unbounded, Bound::Included(key));
                let last = self.stretches.range::<[u8], _>(before).next_back()?;
                Some(last).filter(|(_, own)| own.upper.as_deref().is_none_or(|upper| key < upper))
            }
            (Direction::Backward, Some(_)) => {
                let before = (Bound::Unbounded, Bound::Excluded(key));
                let last = self.stretches.range::<[u8], _>(before).next_back()?;
                Some(last).filter(|(_, own)| own.upper.as_deref().is_none_or(|upper| key <= upper))
            }
            (Direction::Backward, None) => {
                self.stretches.last_key_value().filter(|(_, own)| own.upper.is_none())
            }
        }
    }

    fn insert(&mut self, lower: Vec<u8>, stretch: Stretch) {
        if stretch.upper.as_ref().is_some_and(|upper| *upper <= lower) {
            return;
        }
        self.bytes += bytes_of(&lower, &stretch);
        self.stretches.insert(lower, stretch);
        if self.bytes > BYTES_MAX {
            (self.stretches, self.bytes) = (BTreeMap::new(), 0);
        }
    }

    fn remove(&mut self, lower: &[u8]) -> Option<(Vec<u8>, Stretch)> {
        let (lower, stretch) = self.stretches.remove_entry(lower)?;
        self.bytes -= bytes_of(&lower, &stretch);
        Some((lower, stretch))
    }

    /// Takes a key out of the stretch that has it.
    fn cut(&mut self, key: &[u8]) {
        let lower = self.at(Some(key), Direction::Forward).map(|(lower, _)| lower.clone());
        let Some((lower, stretch)) = lower.and_then(|lower| self.remove(&lower)) else { return };
        let before = Stretch { upper: Some(key.to_vec()), as_of: stretch.as_of };
        self.insert(lower, before);
        self.insert(behind(key), stretch);
    }

    /// Adds a stretch, joined with those that it meets if no snapshot is between them. If two overlap
    /// otherwise, the older one counts, as it holds for more snapshots.
    fn add(&mut self, mut lower: Vec<u8>, mut stretch: Stretch, snapshots: &ActiveSnapshots) {
        let are_apart = |one: &Stretch, other: &Stretch| {
            snapshots.any_within(one.as_of.min(other.as_of), one.as_of.max(other.as_of))
        };
        while let Some((own_lower, own)) =
            self.met(&lower, stretch.upper.as_deref()).into_iter().find(|(_, own)| !are_apart(own, &stretch))
        {
            self.remove(&own_lower);
            lower = lower.min(own_lower);
            let upper = own.upper.zip(stretch.upper).map(|(one, other)| one.max(other));
            stretch = Stretch { upper, as_of: own.as_of.max(stretch.as_of) };
        }
        for (own_lower, own) in self.met(&lower, stretch.upper.as_deref()) {
            let begins_behind = stretch.upper.as_ref().is_some_and(|upper| *upper <= own_lower);
            let ends_before = own.upper.as_ref().is_some_and(|upper| *upper <= lower);
            if begins_behind || ends_before {
                continue;
            }
            if own.as_of > stretch.as_of {
                self.remove(&own_lower);
                self.insert(own_lower, Stretch { upper: Some(lower.clone()), as_of: own.as_of });
                if let Some(upper) = &stretch.upper {
                    self.insert(upper.clone(), own);
                }
            } else if own_lower <= lower {
                let Some(upper) = own.upper else { return };
                lower = upper;
            } else {
                // The keys after it are left to the next scan.
                stretch.upper = Some(own_lower);
                break;
            }
        }
        self.insert(lower, stretch);
    }

    /// The stretches that overlap these keys, or are their neighbours, in key order.
    fn met(&self, lower: &[u8], upper: Option<&[u8]>) -> Vec<(Vec<u8>, Stretch)> {
        let end = upper.map_or(Bound::Unbounded, Bound::Included);
        let before = self.stretches.range::<[u8], _>((Bound::Unbounded, end)).rev();
        let meets = |own: &Stretch| own.upper.as_deref().is_none_or(|own_upper| own_upper >= lower);
        let mut met: Vec<_> = before
            .take_while(|(_, own)| meets(own))
            .map(|(own_lower, own)| (own_lower.clone(), own.clone()))
            .collect();
        met.reverse();
        met
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::Snapshots;
    use crate::sync::Arc;
    use crate::sync::explored::{explore, point};

    fn snapshots(taken: &[u64]) -> ActiveSnapshots {
        let all = Snapshots::default();
        taken.iter().for_each(|at| drop(all.take(Timestamp(0), |_| Ok(Timestamp(*at)))));
        all.now()
    }

    fn passed(dead: &Dead, from: u8, at: u64) -> Option<Option<Vec<u8>>> {
        dead.passed(Some(&[from]), Direction::Forward, Timestamp(at))
    }

    fn add(dead: &Dead, (from, until): (u8, u8), as_of: u64, taken: &[u64]) {
        let watch = dead.watch(Some(&[from]), Direction::Forward);
        watch.end(Bound::Excluded(&[until]), Timestamp(as_of), &snapshots(taken));
    }

    #[test]
    fn a_stretch_grows_and_is_passed_by_later_snapshots() {
        let dead = Dead::default();
        add(&dead, (10, 20), 5, &[]);
        add(&dead, (20, 30), 7, &[]);
        assert_eq!(
            (passed(&dead, 10, 7), passed(&dead, 29, 9)),
            (Some(Some(vec![30])), Some(Some(vec![30])))
        );
        assert_eq!((passed(&dead, 10, 6), passed(&dead, 30, 9), passed(&dead, 9, 9)), (None, None, None));
        assert_eq!(dead.len(), 1);
        let backward = |from| dead.passed(Some(from), Direction::Backward, Timestamp(9));
        assert_eq!(
            (backward(&[30]), backward(&[11]), backward(&[10])),
            (Some(Some(vec![10])), Some(Some(vec![10])), None)
        );
    }

    #[test]
    fn a_snapshot_between_two_stretches_keeps_them_apart() {
        let dead = Dead::default();
        add(&dead, (10, 20), 5, &[6]);
        add(&dead, (20, 30), 7, &[6]);
        assert_eq!(
            (passed(&dead, 10, 6), passed(&dead, 10, 7)),
            (Some(Some(vec![20])), Some(Some(vec![30])))
        );
        // The older one counts.
        add(&dead, (15, 25), 6, &[6]);
        assert_eq!(
            (passed(&dead, 10, 6), passed(&dead, 10, 7)),
            (Some(Some(vec![25])), Some(Some(vec![30])))
        );
    }

    #[test]
    fn a_write_ends_a_stretch_and_what_becomes_one() {
        let dead = Dead::default();
        add(&dead, (10, 20), 5, &[]);
        let watch = dead.watch(Some(&[20]), Direction::Forward);
        dead.written(&[15]);
        dead.written(&[27]);
        dead.written(&[25]);
        watch.end(Bound::Excluded(&[30]), Timestamp(6), &snapshots(&[]));
        assert_eq!((passed(&dead, 10, 9), passed(&dead, 15, 9)), (Some(Some(vec![15])), None));
        assert_eq!((passed(&dead, 16, 9), passed(&dead, 25, 9)), (Some(Some(vec![25])), None));
        dead.all_written();
        assert_eq!((passed(&dead, 10, 9), dead.count.load(Ordering::SeqCst)), (None, 0));
    }

    /// A writer links its record first and tells then; a scan watches first and looks then.
    #[test]
    fn no_write_is_in_a_stretch() {
        explore(2000, || {
            let shared = Arc::new((Dead::default(), AtomicUsize::new(0)));
            let writer = {
                let shared = Arc::clone(&shared);
                shuttle::thread::spawn(move || {
                    shared.1.store(1, Ordering::SeqCst);
                    point();
                    shared.0.written(&[15]);
                })
            };
            let watch = shared.0.watch(Some(&[10]), Direction::Forward);
            point();
            match shared.1.load(Ordering::SeqCst) {
                0 => watch.end(Bound::Excluded(&[20]), Timestamp(5), &snapshots(&[])),
                _ => watch.end(Bound::Excluded(&[15]), Timestamp(5), &snapshots(&[])),
            }
            writer.join().unwrap();
            assert!(passed(&shared.0, 10, 9).is_none_or(|to| to <= Some(vec![15])));
            assert_eq!(passed(&shared.0, 15, 9), None);
        });
    }

    proptest! {
        /// Keys of a model, each with the first commit that it is known to be without a record for.
        #[test]
        fn nothing_is_passed_that_was_not_said(
            said in proptest::collection::vec((0_u8..40, 0_u8..40, 1_u64..20, any::<bool>()), 1..20),
            taken in proptest::collection::vec(1_u64..20, 0..3),
            (from, at) in (0_u8..40, 1_u64..22),
        ) {
            let dead = Dead::default();
            let mut model = [u64::MAX; 41];
            for (lower, upper, as_of, is_write) in said {
                if is_write {
                    dead.written(&[lower]);
                    model[usize::from(lower)] = u64::MAX;
                } else if lower < upper {
                    add(&dead, (lower, upper), as_of, &taken);
                    for own in &mut model[usize::from(lower)..usize::from(upper)] {
                        *own = as_of.min(*own);
                    }
                }
            }
            if let Some(to) = passed(&dead, from, at) {
                let to = to.unwrap();
                prop_assert!(to.as_slice() > &[from][..]);
                for own in from..to[0] {
                    prop_assert!(model[usize::from(own)] <= at, "{own} is passed as of {at}");
                }
            }
        }
    }
}
