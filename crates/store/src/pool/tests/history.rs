//! Long random histories of tasks that create, change, read, move and free pages in a cache that is far too
//! small, with checkpoints meanwhile, against a plain map.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::world::{World, fill, seed_at, seed_of};
use crate::Error;
use crate::class::class_bytes;
use crate::epoch::Epoch;
use crate::header::{PageId, PageKind};
use crate::page::{OwnPage, Page};
use crate::poison::Poison;
use crate::pool::{Access, BUDGET_BYTES_MIN, Denied, Pool};
use crate::segment::{Appended, Lifetime, Location, NotAppended, Segments};
use crate::task::yield_now;

/// The expected pages: the seed that each is filled with.
type Model = BTreeMap<PageId, u32>;

/// A task's part ends, be it by a panic.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Shared by the tasks of a history.
pub(super) struct History {
    pub pool: Arc<Pool>,
    pub segments: Arc<Segments>,
    pub model: Mutex<Model>,
    /// Where checkpoints say that durable pages are.
    pub map: Mutex<BTreeMap<PageId, Location>>,
    /// Tasks that still change pages.
    pub changing: AtomicUsize,
    /// Size classes of pages are below it.
    pub classes: usize,
}

impl History {
    pub fn new(pool: &Arc<Pool>, segments: &Arc<Segments>, tasks: usize) -> Arc<Self> {
        Arc::new(Self {
            pool: Arc::clone(pool),
            segments: Arc::clone(segments),
            model: Mutex::default(),
            map: Mutex::default(),
            changing: AtomicUsize::new(tasks),
            classes: 3,
        })
    }

    /// A task's part of the history.
    pub fn run(&self, seed: u64, steps: usize) {
        let _ends = Ends(&self.changing);
        let mut random = Pcg64::seed_from_u64(seed);
        for _ in 0..steps {
            match random.random_range(0..100) {
                0..20 => self.create(&mut random),
                20..60 => self.change(&mut random),
                60..80 => self.read(&mut random),
                80..90 => self.free(&mut random),
                90..96 => self.relocate(&mut random),
                96 => drop(self.any(&mut random).map(|id| self.pool.prefetch(id))),
                97 => self.load_together(&mut random),
                _ => yield_now(),
            }
        }
    }

    fn any(&self, random: &mut Pcg64) -> Option<PageId> {
        let model = self.model.lock().unwrap();
        let number = random.random_range(0..model.len().max(1));
        model.keys().nth(number).copied()
    }

    /// A few pages whose numbers, and so perhaps their places, are close to each other.
    fn load_together(&self, random: &mut Pcg64) {
        let Some(first) = self.any(random) else { return };
        let ids: Vec<PageId> = self
            .model
            .lock()
            .unwrap()
            .range(first..)
            .map(|(id, _)| *id)
            .take(random.random_range(1..8))
            .collect();
        match random.random() {
            true => self.pool.loader().load_together(&ids, Access::Normal),
            false => self.pool.prefetch_all(&ids),
        }
    }

    fn create(&self, random: &mut Pcg64) {
        let (class, volatile, seed) =
            (random.random_range(0..self.classes), random.random_ratio(1, 5), random.random());
        let memory = self.pool.reserve(class).unwrap();
        let section = self.pool.section();
        let page = section.create(memory, PageKind::Node, volatile);
        fill(page.page(), page.id(), seed);
        assert_eq!(self.model.lock().unwrap().insert(page.id(), seed), None, "a number given out twice");
    }

    /// Changes up to three pages in one section.
    fn change(&self, random: &mut Pcg64) {
        let mut ids: Vec<PageId> = (0..random.random_range(1..4)).filter_map(|_| self.any(random)).collect();
        ids.sort();
        ids.dedup();
        let seed = random.random();
        self.in_section(&ids, |section_pages, model| {
            for page in section_pages {
                fill(page.page(), page.id(), seed);
                model.insert(page.id(), seed);
            }
        });
    }

    /// Calls `act` once with all of the pages locked, unless one of them is gone, or they do not stay in
    /// memory together.
    fn in_section(&self, ids: &[PageId], act: impl FnOnce(&[crate::pool::section::Locked<'_>], &mut Model)) {
        for _ in 0..10 {
            let mut guard = Vec::new();
            for id in ids {
                let before = self.seed(*id);
                match self.pool.read(*id, Access::Normal) {
                    Ok(page) => guard.push(page),
                    Err(error) => return self.assert_gone(*id, before, &error),
                }
            }
            let section = self.pool.section();
            let denied = {
                let locked: Result<Vec<_>, Denied> = guard.iter().map(|page| section.lock(page)).collect();
                match locked {
                    Ok(pages) => return act(&pages, &mut self.model.lock().unwrap()),
                    Err(denied) => denied,
                }
            };
            drop(section);
            match denied {
                Denied::Changed => yield_now(),
                Denied::NoRoom => self.pool.images.wait_for_room().unwrap(),
                Denied::Failed(error) => panic!("{error}"),
            }
        }
    }

    fn read(&self, random: &mut Pcg64) {
        let Some(id) = self.any(random) else { return };
        let access = if random.random_ratio(1, 3) { Access::Scan } else { Access::Normal };
        loop {
            let before = self.seed(id);
            let found = self.pool.read(id, access);
            let found = found.as_ref().map(|guard| (guard, seed_of(guard.page(), id)));
            let expected = self.seed(id);
            match found {
                Ok((guard, seed)) if guard.is_valid() => return assert_eq!(seed, expected, "{id:?}"),
                Err(error) => return self.assert_gone(id, before, error),
                Ok(_) => yield_now(),
            }
        }
    }

    fn seed(&self, id: PageId) -> Option<u32> {
        self.model.lock().unwrap().get(&id).copied()
    }

    /// A page that had this seed before it was looked at and could not be read is gone now. Its number may be
    /// another one's, with another seed.
    fn assert_gone(&self, id: PageId, before: Option<u32>, error: &Error) {
        assert!(before.is_none() || self.seed(id) != before, "{id:?}: {error}");
    }

    fn free(&self, random: &mut Pcg64) {
        let Some(id) = self.any(random) else { return };
        let Ok(guard) = self.pool.read(id, Access::Normal) else { return };
        let section = self.pool.section();
        if let Ok(page) = section.lock(&guard) {
            self.model.lock().unwrap().remove(&id);
            section.free(page);
        }
    }

    /// Moves an image, as the cleaner does.
    fn relocate(&self, random: &mut Pcg64) {
        let Some(id) = self.any(random) else { return };
        let Some(old) = self.pool.pages.location(id, false) else { return };
        self.segments.gatherer.write_all().unwrap();
        let copy = OwnPage::new(class_bytes(old.class()) as u32);
        let Ok(Some(seed)) = seed_at(&self.segments, id, old) else { return };
        let header = crate::header::Header {
            checksum: 0,
            image_grains: 0,
            class: old.class() as u8,
            kind: PageKind::Node as u8,
            page: id,
            sequence: 0,
            front_end: 0,
            back_start: 0,
        };
        header.store(copy.page());
        fill(copy.page(), id, seed);
        let Some(appended) = self.append(id, old, copy.page()) else { return };
        self.segments.gatherer.wait_written(appended.unit).unwrap();
        let new = appended.location;
        let moved = self.pool.relocate(id, old, new);
        let _section = self.pool.section();
        self.segments.gatherer.release(if moved { old } else { new });
    }

    fn append(&self, id: PageId, old: Location, page: Page<'_>) -> Option<Appended> {
        match self.segments.gatherer.append(Lifetime::Changing, id, old.class(), page, Some(old)) {
            Ok(appended) => Some(appended),
            Err(NotAppended::NoBuffer | NotAppended::NoSegment) => None,
            Err(NotAppended::Failed(error)) => panic!("{error}"),
        }
    }

    /// Makes checkpoints until no task changes pages any more, and one after that. Returns their number. Each
    /// is exactly the state at its cut.
    pub fn checkpoints(&self) -> usize {
        for count in 1.. {
            let last = self.changing.load(Ordering::SeqCst) == 0;
            let (epoch, expected) = self.checkpoint();
            self.compare(epoch, &expected);
            self.pool.checkpoints().done(epoch);
            self.segments.reclaim.free_pending(epoch);
            if last {
                return count;
            }
            (0..50).for_each(|_| yield_now());
        }
        0
    }

    fn checkpoint(&self) -> (Epoch, Model) {
        let mut expected = Model::new();
        let epoch = self.pool.checkpoints().cut(|| {
            expected = self.model.lock().unwrap().clone();
            self.segments.reclaim.begin_epoch(Epoch(self.pool.epoch().0 + 1));
        });
        // Time passes, so that pages change that are still to be gathered.
        let some: Vec<_> = self.map.lock().unwrap().iter().take(5).map(|(id, at)| (*id, *at)).collect();
        for (id, location) in some {
            assert!(seed_at(&self.segments, id, location).unwrap().is_some());
        }
        self.pool.checkpoints().flush_epoch(epoch).unwrap();
        let mut map = self.map.lock().unwrap();
        for moved in self.pool.checkpoints().take_changes(epoch) {
            match moved.to {
                Some(location) => map.insert(moved.id, location),
                None => map.remove(&moved.id),
            };
        }
        drop(map);
        self.segments.gatherer.write_all().unwrap();
        expected.retain(|id, _| !id.is_volatile());
        (epoch, expected)
    }

    fn compare(&self, epoch: Epoch, expected: &Model) {
        let map = self.map.lock().unwrap().clone();
        assert!(map.keys().eq(expected.keys()), "the pages that there were");
        let mut whole = BTreeMap::new();
        let see = &mut |id, location| {
            whole.insert(id, location);
            Ok(())
        };
        self.pool.checkpoints().snapshot(epoch, see).unwrap();
        assert_eq!(whole.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for ((id, location), seed) in map.iter().zip(expected.values()) {
            assert_eq!(
                seed_at(&self.segments, *id, *location).unwrap(),
                Some(*seed),
                "{id:?} at {location:?}"
            );
            // The cleaner may have moved the image since the cut; it is the same.
            if whole[id] != *location {
                assert_eq!(seed_at(&self.segments, *id, whole[id]).unwrap(), Some(*seed), "{id:?}");
            }
        }
    }

    /// Every page is as expected.
    pub fn check(&self) {
        let model = self.model.lock().unwrap().clone();
        for (id, seed) in &model {
            let guard = self.pool.read(*id, Access::Scan).unwrap();
            assert_eq!(seed_of(guard.page(), *id), Some(*seed), "{id:?}");
            assert!(guard.is_valid());
        }
        let durable = model.keys().filter(|id| !id.is_volatile()).count();
        assert_eq!(self.pool.pages.count(), durable as u64);
    }
}

/// How many times longer than usual histories are.
pub(super) fn scale() -> usize {
    std::env::var("FLASHGRAIN_TEST_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1)
}

#[test]
fn pages_are_what_they_should_be_and_checkpoints_what_they_were() {
    for seed in 0..4 * scale() as u64 {
        println!("seed {seed}");
        let (tasks, steps) = (8, 600);
        let mut world = World::new(BUDGET_BYTES_MIN + (seed << 15), 2);
        let history = History::new(&world.pool, &world.segments, tasks);
        let handles: Vec<_> = (0..tasks)
            .map(|task| {
                let history = Arc::clone(&history);
                world.harness.spawn(task % 2, move || history.run(seed << 8 | task as u64, steps))
            })
            .collect();
        let own = Arc::clone(&history);
        let checkpoints = world.harness.run(move || own.checkpoints());
        handles.into_iter().for_each(|handle| handle.join().unwrap());
        assert!(checkpoints > 3, "{checkpoints}");
        let own = Arc::clone(&history);
        world.harness.run(move || own.check());
        let live: u64 =
            history.map.lock().unwrap().values().map(|location| u64::from(location.length_bytes())).sum();
        assert!(world.segments.usage().live_bytes >= live);
        assert_eq!(world.pool.images.dirty_bytes(), volatile_dirty_bytes(&world.pool));
        assert_eq!(world.pool.images.durable_dirty_bytes(), 0);
        reopen(&mut world, history);
    }
}

fn volatile_dirty_bytes(pool: &Pool) -> u64 {
    let frames = (0..crate::class::CLASSES)
        .flat_map(|class| (0..pool.pages.frames().used(class)).map(move |index| (class, index)));
    frames
        .filter(|(class, index)| {
            let meta = pool.pages.frames().meta(crate::pool::Frame::new(*class, *index));
            meta.page.load(Ordering::Relaxed) != 0 && meta.dirty_epoch.load(Ordering::Relaxed) != 0
        })
        .map(|(class, _)| class_bytes(class))
        .sum()
}

/// Another pool, with the state of the last checkpoint.
fn reopen(world: &mut World, history: Arc<History>) {
    let devices = crate::io_context::Devices::new(Arc::clone(&world.device) as _, None);
    let (executor, poison) = (world.harness.executor().clone(), Poison::default());
    let (segments, pool) = super::world::above(&devices, &executor, &poison, BUDGET_BYTES_MIN);
    let (next_sequence, openings) = world.segments.sequences();
    segments.opening.restore_sequences(next_sequence, &openings);
    let map = history.map.lock().unwrap().clone();
    for (id, location) in &map {
        pool.opening().restoring().restore(*id, Some(*location));
        segments.opening.adopt(*id, *location).unwrap();
    }
    pool.opening().restored(Epoch(7), world.pool.pages.next_page());
    pool.opening().reuse_gaps();
    let again = History::new(&pool, &segments, 1);
    let model = history
        .model
        .lock()
        .unwrap()
        .iter()
        .filter(|(id, _)| !id.is_volatile())
        .map(|(id, seed)| (*id, *seed))
        .collect();
    *again.model.lock().unwrap() = model;
    *again.map.lock().unwrap() = map;
    world.harness.run(move || {
        again.check();
        again.run(1, 200);
        assert_eq!(again.checkpoints(), 1);
        again.check();
    });
}
