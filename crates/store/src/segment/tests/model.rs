//! Random histories of pages that are changed, freed, checkpointed and cleaned, with power cuts, compared
//! with a map of the expected pages.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use flashgrain_device::Nanos;
use flashgrain_ssdsim::fault::{PowerCut, Survivors};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;
use crate::io_context;

/// The expected state of a page.
#[derive(Clone, Copy)]
struct Kept {
    location: Location,
    unit: UnitSequence,
    class: usize,
    used_bytes: u32,
    version: u32,
}

/// The images that a completed checkpoint refers to.
#[derive(Clone, Default)]
pub(super) struct Durable {
    pages: BTreeMap<u64, Kept>,
    next: Option<UnitSequence>,
    openings: Vec<(u64, UnitSequence)>,
}

struct ModelState {
    pages: BTreeMap<u64, Kept>,
    durable: Durable,
    epoch: u32,
}

/// Plays the pool and the checkpoints.
pub(super) struct Model {
    pub segments: Arc<Segments>,
    executor: Executor,
    own: Weak<Self>,
    state: Mutex<ModelState>,
    checkpointing: AtomicBool,
    /// The dirty bytes that the segments are told of. No volatile page is in memory.
    pub dirty_bytes: AtomicU64,
}

impl Model {
    pub fn new(world: &World, layout: &Layout, durable: Durable) -> Arc<Self> {
        let segments = world.segments(layout);
        segments.reclaim.set_discards(true);
        if let Some(next) = durable.next {
            segments.opening.restore_sequences(next, &durable.openings);
        }
        for (id, kept) in &durable.pages {
            segments.opening.adopt(PageId(*id), kept.location).unwrap();
        }
        let state = ModelState { pages: durable.pages.clone(), durable, epoch: 1 };
        segments.reclaim.begin_epoch(Epoch(1));
        let executor = world.harness.executor().clone();
        let checkpointing = AtomicBool::new(false);
        let model = Arc::new_cyclic(|own| Self {
            segments,
            executor,
            own: Weak::clone(own),
            state: Mutex::new(state),
            checkpointing,
            dirty_bytes: AtomicU64::new(0),
        });
        model.segments.upkeep.set_page_locator(model.own.clone() as Weak<dyn PageLocator>);
        model
    }

    fn state(&self) -> MutexGuard<'_, ModelState> {
        self.state.lock().unwrap()
    }

    pub fn change(&self, id: u64, class: usize, used_bytes: u32) -> Result<(), Error> {
        loop {
            let mut state = self.state();
            let before = state.pages.get(&id).copied();
            let version = before.map_or(1, |before| before.version + 1);
            let own = page(id, class, used_bytes, version);
            let old = before.map(|before| before.location);
            match self.segments.gatherer.append(Lifetime::Changing, PageId(id), class, own.page(), old) {
                Ok(Appended { location, unit }) => {
                    old.inspect(|old| self.segments.gatherer.release(*old));
                    state.pages.insert(id, Kept { location, unit, class, used_bytes, version });
                    return Ok(());
                }
                Err(NotAppended::Failed(error)) => return Err(error),
                Err(NotAppended::NoBuffer | NotAppended::NoSegment) => {}
            }
            drop(state);
            self.segments.upkeep.wait_for_room(Lifetime::Changing)?;
        }
    }

    fn free(&self, id: u64) {
        if let Some(kept) = self.state().pages.remove(&id) {
            self.segments.gatherer.release(kept.location);
        }
    }

    /// Frees the pages that `which` names, by their segment and their id.
    pub fn free_some(&self, which: impl Fn(usize, u64) -> bool) {
        let index = |kept: &Kept| self.segments.space.index_of(kept.location.offset_bytes()).unwrap();
        let pages = self.state().pages.clone();
        pages.iter().filter(|(id, kept)| which(index(kept), **id)).for_each(|(id, _)| self.free(*id));
    }

    /// The durable state, to make another model of.
    pub fn durable(&self) -> Durable {
        self.state().durable.clone()
    }

    pub fn checkpoint(&self) -> Result<(), Error> {
        if self.checkpointing.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let result = self.attempt();
        self.checkpointing.store(false, Ordering::SeqCst);
        result
    }

    fn attempt(&self) -> Result<(), Error> {
        let (pages, epoch) = {
            let mut state = self.state();
            state.epoch += 1;
            self.segments.reclaim.begin_epoch(Epoch(state.epoch));
            (state.pages.clone(), state.epoch - 1)
        };
        self.segments.gatherer.write_all()?;
        io_context::flush(&self.segments.devices, Role::Data)
            .map_err(|failure| self.segments.poison.by(failure.error("flush")))?;
        let (next, openings) = self.segments.sequences();
        self.state().durable = Durable { pages, next: Some(next), openings };
        self.segments.reclaim.free_pending(Epoch(epoch));
        Ok(())
    }

    /// Everything that adds up must add up, at any time.
    fn check(&self) {
        let state = self.state();
        let space = &self.segments.space;
        let mut live = BTreeMap::<usize, u64>::new();
        let current = state.pages.values().map(|kept| kept.location);
        for location in current.chain(self.segments.moves.new_places()) {
            let index = space.index_of(location.offset_bytes()).unwrap();
            *live.entry(index).or_default() += u64::from(location.length_bytes());
        }
        let states: Vec<_> = space.states();
        for (index, state) in states.iter().enumerate() {
            let bytes = live.get(&index).copied().unwrap_or(0);
            assert_eq!(space.live_bytes_of(index), bytes, "segment {index}");
            let may_be_live = matches!(state, space::SegmentState::Open | space::SegmentState::Full);
            assert!(bytes == 0 || may_be_live, "segment {index} is {state:?}");
        }
        assert_eq!(space.live_bytes(), live.values().sum::<u64>());
        for kept in state.durable.pages.values() {
            let index = space.index_of(kept.location.offset_bytes()).unwrap();
            assert!(
                !matches!(states[index], space::SegmentState::Free | space::SegmentState::Freed),
                "segment {index}"
            );
        }
    }

    /// # Errors
    /// Those of a device without power. A wrong page panics.
    fn verify(&self, id: u64, kept: Kept) -> Result<(), Error> {
        let found = match read_back(&self.segments, kept.location, id) {
            Err(error @ Error::Io { .. }) => return Err(error),
            found => found.unwrap(),
        };
        let should_be = used(&page(id, kept.class, kept.used_bytes, kept.version));
        assert!(found == should_be, "page {id}, version {}", kept.version);
        Ok(())
    }

    /// Calls `act` while no checkpoint frees images that pages or the last checkpoint refer to now.
    fn held<T>(&self, act: impl FnOnce() -> T) -> T {
        while self.checkpointing.swap(true, Ordering::SeqCst) {
            // Simulated time passes only while all tasks wait.
            let devices = &self.segments.devices;
            io_context::sleep_until(devices, io_context::now(devices) + Nanos(10_000)).unwrap();
        }
        let result = act();
        self.checkpointing.store(false, Ordering::SeqCst);
        result
    }

    /// The one with the page that has been where it is for the longest time.
    #[cfg(feature = "testing")]
    pub fn oldest_segment(&self) -> usize {
        let (state, layout) = (self.state(), &self.segments.layout);
        let oldest = state.pages.values().min_by_key(|kept| kept.unit).unwrap();
        ((oldest.location.offset_bytes() - layout.segments_start_bytes) / layout.segment_bytes) as usize
    }

    pub fn verify_all(&self) -> Result<(), Error> {
        self.held(|| {
            let pages = self.state().pages.clone();
            pages.into_iter().try_for_each(|(id, kept)| self.verify(id, kept))
        })
    }

    fn verify_durable(&self) -> Result<(), Error> {
        self.held(|| {
            let pages = self.state().durable.pages.clone();
            pages.into_iter().try_for_each(|(id, kept)| self.verify(id, kept))
        })
    }
}

impl PageLocator for Model {
    fn is_at(&self, id: PageId, location: Location) -> bool {
        self.state().pages.get(&id.0).is_some_and(|kept| kept.location == location)
    }

    fn relocate(&self, id: PageId, old: Location, new: Location) -> bool {
        let mut state = self.state();
        let Some(kept) = state.pages.get_mut(&id.0) else { return false };
        let same = kept.location == old;
        if same {
            kept.location = new;
        }
        same
    }

    fn pages_where(&self, wanted: &dyn Fn(Location) -> bool) -> Vec<(PageId, Location)> {
        let state = self.state();
        let there = state.pages.iter().filter(|(_, kept)| wanted(kept.location));
        there.map(|(id, kept)| (PageId(*id), kept.location)).collect()
    }

    fn want_checkpoint(&self) {
        if let Some(own) = self.own.upgrade() {
            self.executor.spawn(move || drop(own.checkpoint()));
        }
    }

    fn dirty(&self) -> Dirty {
        Dirty { bytes: self.dirty_bytes.load(Ordering::Relaxed), durable_bytes: 0 }
    }
}

/// Small segments at the end of the drive: 64 of them.
pub(super) fn small(world: &World) -> Layout {
    let segment_bytes = 64 << 10;
    let capacity = world.devices.device(Role::Data).capacity_bytes();
    Layout {
        unit_bytes: 16 << 10,
        pack_bytes: 8 << 10,
        segment_bytes,
        segments_start_bytes: capacity - 64 * segment_bytes,
        ..layout(Placement::OutOfPlace)
    }
}

/// Changes pages so that about half of the space are live, most often those with low numbers. It ends early
/// if the power is cut.
fn history(model: &Model, steps: u64, random: &mut Pcg64) -> Result<(), Error> {
    for _ in 0..steps {
        let id = 1 + (random.random_range(0.0..1.0f64).powi(3) * 700.0) as u64;
        match random.random_range(0..100) {
            0..80 => {
                let class = id as usize % 3;
                model.change(id, class, random.random_range(60..(3000 << class)))?;
            }
            80..85 => model.free(id),
            85..99 => {
                let kept = model.state().pages.get(&id).copied();
                if let Some(kept) = kept.filter(|kept| model.segments.gatherer.is_written(kept.unit)) {
                    model.verify(id, kept)?;
                }
            }
            _ => model.checkpoint()?,
        }
        model.check();
    }
    Ok(())
}

fn seeds() -> u64 {
    std::env::var("FLASHGRAIN_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(4)
}

#[test]
fn pages_survive_cleaning_checkpoints_and_power_cuts() {
    for seed in 0..seeds() {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut durable = Durable::default();
        let mut world = World::new(seed);
        let sim = world.sim.clone().unwrap();
        let layout = small(&world);
        let mut cleaned = 0;
        for _ in 0..4 {
            let model = Model::new(&world, &layout, std::mem::take(&mut durable));
            let own = Arc::clone(&model);
            let mut changes = Pcg64::seed_from_u64(random.random());
            let ended = world.harness.spawn(0, move || {
                own.verify_durable()?;
                own.check();
                history(&own, 1500, &mut changes)?;
                own.verify_durable()
            });
            let turns = random.random_range(0..40_000);
            let mut cut = false;
            for turn in 0.. {
                if turn == turns && !ended.is_finished() {
                    cut = true;
                    let survivors = Survivors::Random;
                    sim.power_cut(&PowerCut {
                        survivors,
                        in_flight: true,
                        seed: turn,
                        ..PowerCut::default()
                    });
                }
                if !world.harness.turn() {
                    break;
                }
            }
            let need = model.segments.space.need(Dirty::default());
            assert_eq!(
                world.harness.unfinished(),
                0,
                "seed {seed}: tasks wait: {need:?} {:?}",
                model.segments.usage()
            );
            let ended = ended.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            assert!(cut || ended.is_ok(), "seed {seed}: {ended:?}");
            cleaned += model.segments.written().cleaned_segments;
            durable = model.durable();
            sim.power_on();
            world = World::over(Arc::clone(&sim));
        }
        assert!(cleaned > 50, "seed {seed}: {cleaned} segments cleaned");
    }
}

#[test]
fn a_full_store_takes_pages_again_when_some_are_freed() {
    let mut world = World::new(1);
    let layout = small(&world);
    let model = Model::new(&world, &layout, Durable::default());
    let own = Arc::clone(&model);
    world.harness.run(move || {
        for _ in 0..3 {
            let first_refused = (1..).find(|id| match own.change(*id, 0, 2000) {
                Ok(()) => false,
                Err(Error::Full { .. }) => true,
                Err(other) => panic!("{other:?}"),
            });
            own.check();
            // Nothing is lost, and more than four fifths of the space were used.
            let live = own.segments.usage().live_bytes;
            assert!(live > 64 * (64 << 10) * 4 / 5, "{live} bytes");
            own.verify_durable().unwrap();
            let last = first_refused.unwrap();
            (1..last).filter(|id| id % 3 > 0).for_each(|id| own.free(id));
            own.checkpoint().unwrap();
        }
    });
}

/// Two pages of this size leave a gap in each unit: more than the cleaner thinks worth its while, and nothing
/// that it could win.
#[test]
fn regression_a_full_store_whose_pages_leave_gaps_comes_to_rest() {
    let mut world = World::new(1);
    let layout = small(&world);
    let model = Model::new(&world, &layout, Durable::default());
    let own = Arc::clone(&model);
    world.harness.run(move || {
        assert!((1..).any(|id| own.change(id, 2, 7000).is_err()));
        // With that many dirty bytes, free segments are as few as in an emergency.
        own.dirty_bytes.store(128 << 10, Ordering::Relaxed);
        own.checkpoint().unwrap();
        own.segments.upkeep.tend(true);
    });
    world.harness.run_until_idle();
    let written = model.segments.written();
    assert!(written.cleaned_segments > 0, "each segment is tried once");
    model.segments.upkeep.tend(true);
    world.harness.run_until_idle();
    assert_eq!(model.segments.written().moved_images, written.moved_images);
    // No checkpoint writes dirty pages, so that no writer waits for one.
    let own = Arc::clone(&model);
    let refused = world.harness.run(move || (1..100).find_map(|id| own.change(id, 2, 7000).err()));
    assert!(matches!(refused, Some(Error::Full { .. })), "{refused:?}");
}

/// A store that is opened only for a change or two takes one segment for them, not one for each lifetime.
#[test]
fn regression_what_was_written_before_a_store_was_opened_is_gathered_together() {
    let mut world = World::new(1);
    let layout = small(&world);
    let model = Model::new(&world, &layout, Durable::default());
    let own = Arc::clone(&model);
    world.harness.run(move || {
        (1..=600).for_each(|id| own.change(id, 0, 2000).unwrap());
        own.checkpoint().unwrap();
    });
    model.segments.upkeep.stop();
    let model = Model::new(&world, &layout, model.durable());
    let own = Arc::clone(&model);
    world.harness.run(move || {
        let ages = [1, 600].map(|id| own.segments.space.known_age_at(own.state().pages[&id].location));
        assert_eq!(ages, [None; 2]);
        let free = own.segments.usage().free;
        [1, 600].iter().for_each(|id| own.change(*id, 0, 2000).unwrap());
        assert_eq!(own.segments.usage().free, free - 1);
        // From now on they are told apart.
        let location = own.state().pages[&1].location;
        assert!(own.segments.space.known_age_at(location).is_some());
        [1, 2].iter().for_each(|id| own.change(*id, 0, 2000).unwrap());
        assert_eq!(own.segments.usage().free, free - 2);
    });
}

#[test]
fn damaged_headers_and_images_are_survived_by_the_cleaner() {
    let mut world = World::new(1);
    let layout = small(&world);
    let model = Model::new(&world, &layout, Durable::default());
    let own = Arc::clone(&model);
    let damaged = world.harness.run(move || {
        for id in 1..=600 {
            own.change(id, 0, 2000).unwrap();
        }
        own.checkpoint().unwrap();
        let [header_of, body_of] = [10, 200].map(|id| own.state().pages[&id]);
        let devices = &own.segments.devices;
        // The header of one page is damaged, so that those after it in its unit are not found; another page
        // has a wrong byte.
        for (location, byte) in [(header_of.location, 4), (body_of.location, 300)] {
            let (offset, length, skipped) = location.span(512);
            let mut block = io_context::Block::new(length as usize).unwrap();
            block.read(devices, Role::Data, offset).unwrap();
            block.bytes()[skipped as usize + byte] ^= 0x5a;
            block.write(devices, Role::Data, offset).unwrap();
        }
        let mut random = Pcg64::seed_from_u64(1);
        for _ in 0..6000 {
            let id = random.random_range(1..=600);
            // So that little else stays in the segments of these two.
            if id != 10 && id != 200 {
                own.change(id, 0, 2000).unwrap();
            }
            own.check();
        }
        own.held(|| {
            own.segments.gatherer.write_all().unwrap();
            let pages = own.state().pages.clone();
            let lost =
                |(id, kept): (u64, Kept)| read_back(&own.segments, kept.location, id).err().map(|_| id);
            pages.into_iter().filter_map(lost).collect::<Vec<_>>()
        })
    });
    // The others were moved or stay readable.
    assert_eq!(damaged, [10, 200]);
    assert_eq!(model.segments.usage().damaged, 2);
    assert!(model.segments.written().cleaned_segments > 20);
}
