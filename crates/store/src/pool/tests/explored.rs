//! Faults, evictions, changes, moves and cuts under many schedules of threads.

use shuttle::rand::Rng;
use shuttle::thread::spawn;

use super::*;
use crate::header::{PAGE_HEADER_BYTES, PageKind};
use crate::segment::{Appended, Lifetime, Location, NotAppended, UnitSequence};
use crate::sync::Mutex;
use crate::sync::explored::{explore, point};
use crate::task::yield_now;
use std::collections::{BTreeMap, HashSet};

/// Seven frames of pages of this class are all the memory that there is.
const CLASS: usize = 2;
const PAGES: usize = 9;

/// Changes that a page has seen, at two places, between which others may run.
const COUNTS: [u32; 2] = [PAGE_HEADER_BYTES, PAGE_HEADER_BYTES + 4];

/// A device on which everything takes its time, and where old images are gone.
#[derive(Default)]
struct SlowPageStore {
    state: Mutex<Stored>,
}

#[derive(Default)]
struct Stored {
    images: BTreeMap<u64, (PageId, [u32; 2])>,
    next: u64,
    written: HashSet<u64>,
    reads: usize,
    being_read: HashSet<PageId>,
}

impl SlowPageStore {
    fn location(number: u64) -> Location {
        Location::new(number << 20, class_bytes(CLASS) as u32, CLASS)
    }

    fn number(location: Location) -> u64 {
        location.offset_bytes() >> 20
    }

    fn counts(&self, location: Location) -> Option<(PageId, [u32; 2])> {
        self.state.lock().unwrap().images.get(&Self::number(location)).copied()
    }

    /// As the cleaner: another image of the same, on the device.
    fn copy(&self, location: Location) -> Option<Location> {
        let mut state = self.state.lock().unwrap();
        let image = *state.images.get(&Self::number(location))?;
        state.next += 1;
        let number = state.next;
        state.images.insert(number, image);
        state.written.insert(number);
        Some(Self::location(number))
    }

    /// Its place is used for something else.
    fn overwrite(&self, location: Location) {
        self.state.lock().unwrap().images.remove(&Self::number(location));
    }
}

impl PageStore for SlowPageStore {
    fn append(
        &self,
        _: Lifetime,
        id: PageId,
        _: usize,
        page: Page<'_>,
        _: Option<Location>,
    ) -> Result<Appended, NotAppended> {
        let counts = COUNTS.map(|at| page.word(at));
        assert_eq!(counts[0], counts[1], "an image of a page that is being changed");
        let mut state = self.state.lock().unwrap();
        state.next += 1;
        let number = state.next;
        state.images.insert(number, (id, counts));
        Ok(Appended { location: Self::location(number), unit: UnitSequence(number) })
    }

    fn wait_for_room(&self, _: Lifetime) -> Result<(), Error> {
        Ok(())
    }

    fn unit_bytes(&self) -> u64 {
        4096
    }

    fn is_written(&self, unit: UnitSequence) -> bool {
        self.state.lock().unwrap().written.contains(&unit.0)
    }

    fn release(&self, _: Location) {}

    fn wait_written(&self, unit: UnitSequence) -> Result<(), Error> {
        point();
        self.state.lock().unwrap().written.insert(unit.0);
        point();
        Ok(())
    }

    fn give_up(&self, why: &str) {
        panic!("{why}");
    }

    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    unsafe fn read(&self, location: Location, id: PageId, memory: *mut u8) -> Result<(), Error> {
        point();
        let found = {
            let mut state = self.state.lock().unwrap();
            state.reads += 1;
            assert!(state.being_read.insert(id), "{id:?} is read twice at the same time");
            let number = Self::number(location);
            let on_device = state.written.contains(&number);
            state.images.get(&number).copied().filter(|(owner, _)| on_device && *owner == id)
        };
        let Some((_, counts)) = found else {
            self.state.lock().unwrap().being_read.remove(&id);
            return Err(Error::Corrupt {
                what: format!("page {}", id.0),
                offset_bytes: location.offset_bytes(),
                expected: "its image".into(),
                got: "something else".into(),
            });
        };
        for (at, count) in COUNTS.into_iter().zip(counts) {
            // SAFETY: the caller gives memory for a page, which begins with its header and the counts. Other
            // threads may still look at its former content: they use atomics, as this does.
            let word = unsafe { &*memory.add(at as usize).cast::<std::sync::atomic::AtomicU32>() };
            word.store(count, Ordering::Relaxed);
            point();
        }
        self.state.lock().unwrap().being_read.remove(&id);
        Ok(())
    }
}

struct Shared {
    pool: Arc<Pool>,
    page_store: Arc<SlowPageStore>,
    ids: Vec<PageId>,
}

impl Shared {
    fn new() -> Arc<Self> {
        let page_store = Arc::<SlowPageStore>::default();
        let executor = Executor::new(vec![Arc::default()]);
        let pool = Pool::new(BUDGET_BYTES_MIN, Arc::clone(&page_store) as _, executor).unwrap();
        let ids = (0..PAGES)
            .map(|_| {
                let memory = pool.reserve(CLASS).unwrap();
                pool.section().create(memory, PageKind::Node, false).id()
            })
            .collect();
        Arc::new(Self { pool, page_store, ids })
    }

    fn any(&self) -> PageId {
        self.ids[shuttle::rand::thread_rng().gen_range(0..self.ids.len())]
    }

    /// How often the page was changed.
    fn read(&self, id: PageId) -> u32 {
        loop {
            let guard = self.pool.read(id, Access::Normal).unwrap();
            let first = guard.page().word(COUNTS[0]);
            point();
            let second = guard.page().word(COUNTS[1]);
            if guard.is_valid() {
                assert_eq!((first, guard.page().word(COUNTS[0])), (second, first), "{id:?}: a torn read");
                return first;
            }
            yield_now();
        }
    }

    /// Changes all of these in one section.
    fn change(&self, ids: &[PageId]) {
        loop {
            let guard: Vec<_> = ids.iter().map(|id| self.pool.read(*id, Access::Normal).unwrap()).collect();
            {
                let section = self.pool.section();
                let locked: Result<Vec<_>, _> = guard.iter().map(|guard| section.lock(guard)).collect();
                if let Ok(pages) = locked {
                    for page in &pages {
                        for at in COUNTS {
                            page.page().set_word(at, page.page().word(at) + 1);
                            point();
                        }
                    }
                    return;
                }
            }
            yield_now();
        }
    }

    fn free(&self, id: PageId) {
        let guard = self.pool.read(id, Access::Normal).unwrap();
        let section = self.pool.section();
        section.free(section.lock(&guard).unwrap());
    }

    /// As the cleaner.
    fn relocate(&self, id: PageId) {
        let Some(old) = self.pool.pages.location(id, false) else { return };
        if !self.page_store.is_written(UnitSequence(SlowPageStore::number(old))) {
            return;
        }
        let Some(new) = self.page_store.copy(old) else { return };
        let moved = self.pool.relocate(id, old, new);
        self.page_store.overwrite(if moved { old } else { new });
    }
}

#[test]
fn pages_come_and_go_and_no_change_is_lost() {
    explore(2000, || {
        let shared = Shared::new();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let shared = Arc::clone(&shared);
                spawn(move || {
                    let mut changes = 0;
                    for _ in 0..6 {
                        let id = shared.any();
                        match shuttle::rand::thread_rng().gen_range(0..4) {
                            0 => drop(shared.read(id)),
                            1 => shared.relocate(id),
                            2 => shared.pool.evictor().make_room(),
                            _ => {
                                shared.change(&[id]);
                                changes += 1;
                            }
                        }
                    }
                    changes
                })
            })
            .collect();
        let changes: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(shared.ids.iter().map(|id| shared.read(*id)).sum::<u32>(), changes);
    });
}

#[test]
fn threads_that_miss_the_same_page_cause_one_read() {
    explore(2000, || {
        let shared = Shared::new();
        let absent =
            *shared.ids.iter().find(|id| shared.pool.pages.look(**id, Access::Scan).is_none()).unwrap();
        // So that none has to make room, which could be the page itself when another one has loaded it.
        for id in shared.ids.iter().filter(|id| **id != absent) {
            shared.free(*id);
        }
        let before = shared.page_store.state.lock().unwrap().reads;
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let shared = Arc::clone(&shared);
                spawn(move || assert_eq!(shared.read(absent), 0))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(shared.page_store.state.lock().unwrap().reads - before, 1);
    });
}

/// Three that need three of seven frames each, while changed pages have the frames and must be written first:
/// a waiter that leaves the queue wakes the others.
#[test]
fn threads_that_want_more_memory_than_there_is_take_turns() {
    explore(2000, || {
        let shared = Shared::new();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let shared = Arc::clone(&shared);
                spawn(move || {
                    for _ in 0..3 {
                        let reserved: Vec<_> = (0..3).map(|_| shared.pool.reserve(CLASS).unwrap()).collect();
                        point();
                        drop(reserved);
                        shared.change(&[shared.any()]);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Each section changes the first two pages, so no checkpoint has one of them changed more often than the
/// other.
#[test]
fn a_cut_falls_between_sections_and_a_checkpoint_is_the_state_at_its_cut() {
    explore(2000, || {
        let shared = Shared::new();
        let changing: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                spawn(move || {
                    for _ in 0..3 {
                        shared.change(&shared.ids[..2]);
                        shared.read(shared.any());
                    }
                })
            })
            .collect();
        let mut map = BTreeMap::new();
        for _ in 0..2 {
            let epoch = shared.pool.checkpoints().cut(|| {});
            shared.pool.checkpoints().flush_epoch(epoch).unwrap();
            for moved in shared.pool.checkpoints().take_changes(epoch) {
                map.insert(moved.id, moved.to.unwrap());
            }
            let mut whole = BTreeMap::new();
            let mut see = |id, location| {
                whole.insert(id, location);
                Ok(())
            };
            shared.pool.checkpoints().snapshot(epoch, &mut see).unwrap();
            assert_eq!(map, whole);
            let counts = shared.ids[..2].iter().map(|id| shared.page_store.counts(map[id]).unwrap().1);
            let counts: HashSet<_> = counts.flatten().collect();
            assert_eq!(counts.len(), 1, "changes of a section in part: {counts:?}");
            shared.pool.checkpoints().done(epoch);
        }
        changing.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!([0, 1].map(|index| shared.read(shared.ids[index])), [6, 6]);
    });
}
