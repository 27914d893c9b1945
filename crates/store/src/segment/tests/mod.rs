//! Segments over a simulated drive.

mod amplification;
pub(crate) mod crowded;
mod failing;
mod growing;
mod model;
mod owned;

use std::collections::BTreeMap;
use std::sync::Arc;

use flashgrain_ssdsim::{SimConfig, SimDevice};

use super::*;
use crate::class::class_bytes;
use crate::epoch::Epoch;
use crate::header::{Header, PageId};
use crate::layout::{Layout, LogExtent, SyncMethod};
use crate::page::OwnPage;
use crate::worker::Harness;

pub(crate) fn layout(placement: Placement) -> Layout {
    Layout {
        sector_bytes: 512,
        unit_bytes: 64 << 10,
        segment_bytes: 256 << 10,
        segments_start_bytes: 1 << 20,
        pack_bytes: 16 << 10,
        first_segment_bytes: 0,
        log: LogExtent { start_bytes: 0, bytes: 0 },
        log_at_creation: LogExtent { start_bytes: 0, bytes: 0 },
        log_bytes_max: 0,
        log_block_bytes: 4096,
        placement,
        sync_method: SyncMethod::Dsync,
        read_ahead_bytes: 0,
        in_flight: 1,
        half_bandwidth_bytes: 0,
        node_bytes: 4096,
    }
}

/// A drive and two workers on the calling thread.
struct World {
    pub sim: Option<Arc<SimDevice>>,
    pub devices: Devices,
    pub harness: Harness,
}

impl World {
    /// The small drive of 32 MiB that the engine's crash tests use.
    pub fn new(seed: u64) -> Self {
        let config =
            SimConfig::from_toml(include_str!("../../engine/tests/drive.toml"), "drive.toml").unwrap();
        Self::over(Arc::new(SimDevice::new(&config, "sim", seed).unwrap()))
    }

    /// After a power cut: handles that were opened before it have seen failures.
    pub fn over(device: Arc<SimDevice>) -> Self {
        let devices = Devices::new(Arc::clone(&device) as _, None);
        let harness = Harness::new(&devices, 2);
        Self { sim: Some(device), devices, harness }
    }

    /// A large and fast one, in its own time.
    pub fn large() -> Self {
        let device = SimDevice::new(&SimConfig::named("905p").unwrap(), "sim:905p", 1).unwrap();
        let devices = Devices::new(Arc::new(device), None);
        let harness = Harness::new(&devices, 2);
        Self { sim: None, devices, harness }
    }

    pub fn segments(&self, layout: &Layout) -> Arc<Segments> {
        let executor = self.harness.executor().clone();
        Segments::new(layout, self.devices.clone(), executor, Poison::default(), &blocks::Undivided).unwrap()
    }
}

/// A page of this class with that much in use; its bytes depend on `seed`.
fn page(id: u64, class: usize, used_bytes: u32, seed: u32) -> OwnPage {
    let own = OwnPage::new(class_bytes(class) as u32);
    let front = (used_bytes / 3).next_multiple_of(4).max(crate::header::PAGE_HEADER_BYTES);
    let back = own.page().len_bytes() - used_bytes.saturating_sub(front) / 4 * 4;
    for at in (0..front).chain(back..own.page().len_bytes()).step_by(4) {
        own.page().set_word(at, seed.wrapping_mul(at | 1));
    }
    let header = Header {
        checksum: 0,
        image_grains: 0,
        class: class as u8,
        kind: 1,
        page: PageId(id),
        sequence: 0,
        front_end: front,
        back_start: back,
    };
    header.store(own.page());
    own
}

/// The used bytes of the page at `location`, as read from the device.
fn read_back(segments: &Segments, location: Location, id: u64) -> Result<Vec<u8>, Error> {
    let memory = flashgrain_device::Arena::new(class_bytes(location.class()) as usize).unwrap();
    // SAFETY: the arena has the bytes of the class and lives until the read is done.
    unsafe { segments.reader.read(location, PageId(id), memory.as_ptr())? };
    // SAFETY: as above; the arena is initialised by the kernel.
    let bytes =
        unsafe { std::slice::from_raw_parts(memory.as_ptr(), class_bytes(location.class()) as usize) };
    Ok(used_of(bytes, id))
}

/// The parts of a page that are used, without its header.
fn used_of(page: &[u8], id: u64) -> Vec<u8> {
    let header = Header::decode(page).unwrap();
    assert_eq!(header.page, PageId(id));
    [&page[32..header.front_end as usize], &page[header.back_start as usize..]].concat()
}

fn used(own: &OwnPage) -> Vec<u8> {
    let (header, page) = (Header::of(own.page()), own.page());
    let mut bytes = Vec::new();
    page.copy_to(32, header.front_end - 32, &mut bytes);
    page.copy_to(header.back_start, page.len_bytes() - header.back_start, &mut bytes);
    bytes
}

/// The awaited change comes between the look and the queue, and wakes only the waiters in the queue.
#[test]
fn who_waits_looks_once_more_when_he_is_in_the_queue() {
    let mut world = World::new(1);
    let segments = world.segments(&layout(Placement::OutOfPlace));
    let looks = world.harness.run(move || {
        let mut looks = 0;
        let waited = segments.changes.wait_until(|| {
            looks += 1;
            if looks == 1 {
                segments.changes.wake_all();
            }
            Ok(looks > 1)
        });
        waited.map(|()| looks).unwrap()
    });
    assert_eq!(looks, 2);
}

/// A page table that begins in a segment which is full by now goes on to need it.
#[test]
fn the_page_tables_first_segment_stays_when_those_before_it_are_free() {
    let mut world = World::new(1);
    let layout = layout(Placement::OutOfPlace);
    let segments = world.segments(&layout);
    world.harness.run(move || {
        let mut first_of = BTreeMap::new();
        for id in 1.. {
            let own = page(id, 0, 4000, 1);
            let appended = segments.gatherer.append(Lifetime::Map, PageId(id), 0, own.page(), None);
            let Ok(Appended { location, .. }) = appended else {
                segments.upkeep.wait_for_room(Lifetime::Map).unwrap();
                continue;
            };
            first_of.entry(location.offset_bytes() / layout.segment_bytes).or_insert(location);
            if first_of.len() == 4 {
                break;
            }
        }
        segments.gatherer.write_all().unwrap();
        let firsts: Vec<Location> = first_of.into_values().collect();
        let full = segments.usage().map;
        segments.reclaim.release_map_before(firsts[1]);
        assert_eq!(full - segments.usage().map, 1);
    });
}

#[test]
fn what_was_appended_is_read_back() {
    for placement in [Placement::OutOfPlace, Placement::InPlace] {
        let mut world = World::new(1);
        let segments = world.segments(&layout(placement));
        let own = Arc::clone(&segments);
        world.harness.run(move || {
            let pages: Vec<OwnPage> = (0..500)
                .map(|id| {
                    page(id + 1, id as usize % 4, 100 + id as u32 * 7919 % (4000 << (id % 4)), id as u32)
                })
                .collect();
            let mut places = Vec::new();
            for own_page in &pages {
                let header = Header::of(own_page.page());
                let appended = loop {
                    match own.gatherer.append(
                        Lifetime::Changing,
                        header.page,
                        header.class.into(),
                        own_page.page(),
                        None,
                    ) {
                        Ok(appended) => break appended,
                        Err(NotAppended::NoBuffer) => own.upkeep.wait_for_room(Lifetime::Changing).unwrap(),
                        Err(other) => panic!("{other:?}"),
                    }
                };
                places.push(appended);
            }
            own.gatherer.write_all().unwrap();
            for (own_page, appended) in pages.iter().zip(places) {
                assert!(own.gatherer.is_written(appended.unit));
                let id = Header::of(own_page.page()).page.0;
                assert_eq!(read_back(&own, appended.location, id).unwrap(), used(own_page));
            }
        });
        let (usage, written) = (segments.usage(), segments.written());
        assert_eq!(written.by_stream_bytes[0], written.full_unit_bytes + written.partial_unit_bytes);
        if placement == Placement::OutOfPlace {
            assert!(
                written.partial_unit_bytes <= 64 << 10 && written.write_amplification() < 0.75,
                "{written:?}"
            );
            assert!(usage.live_bytes < written.by_stream_bytes[0]);
        }
    }
}

#[test]
fn images_that_lie_together_are_read_together_but_for_those_that_are_not_what_they_should_be() {
    let mut world = World::new(1);
    let segments = world.segments(&layout(Placement::OutOfPlace));
    let own = Arc::clone(&segments);
    world.harness.run(move || {
        let pages: Vec<OwnPage> = (0..100_u32)
            .map(|id| page(u64::from(id) + 1, id as usize % 4, 100 + id * 7919 % (4000 << (id % 4)), id))
            .collect();
        let append = |own_page: &OwnPage| {
            let header = Header::of(own_page.page());
            own.gatherer
                .append(Lifetime::Changing, header.page, header.class.into(), own_page.page(), None)
                .unwrap()
                .location
        };
        let places: Vec<Location> = pages.iter().map(append).collect();
        own.gatherer.write_all().unwrap();
        for (first, near) in places.windows(5).enumerate() {
            let mut memory: Vec<_> = near
                .iter()
                .map(|location| {
                    flashgrain_device::Arena::new(class_bytes(location.class()) as usize).unwrap()
                })
                .collect();
            let wrong = first % 6;
            let id = |place: usize| (first + place + 1) as u64;
            let images: Vec<_> = (0..5)
                .map(|place| {
                    let asked = id(place) + 1000 * u64::from(place == wrong);
                    (near[place], PageId(asked), memory[place].as_ptr())
                })
                .collect();
            // SAFETY: each arena has the bytes of its class, and lives until the read is done.
            let are_read = unsafe { own.reader.read_together(&images) };
            for (place, is_read) in are_read.into_iter().enumerate() {
                assert_eq!(is_read, place != wrong, "{place} behind {first}");
                if is_read {
                    let length = class_bytes(near[place].class()) as usize;
                    assert_eq!(
                        used_of(&memory[place].bytes_mut()[..length], id(place)),
                        used(&pages[first + place])
                    );
                }
            }
        }
    });
}

/// The most units that are on their way to a fast drive at a time while pages are gathered that no caller
/// waits for.
fn most_on_their_way(is_paced: bool) -> usize {
    let mut world = World::large();
    let segments = world.segments(&layout(Placement::OutOfPlace));
    world.harness.run(move || {
        let mut most = 0;
        for id in 1..2000 {
            let own = page(id, 0, 4000, id as u32);
            while let Err(NotAppended::NoBuffer) =
                segments.gatherer.append(Lifetime::Changing, PageId(id), 0, own.page(), None)
            {
                segments.upkeep.wait_for_room(Lifetime::Changing).unwrap();
            }
            most = most.max(segments.buffers.on_their_way());
            if is_paced {
                segments.upkeep.pace().unwrap();
            }
        }
        segments.gatherer.write_all().unwrap();
        most
    })
}

#[test]
fn who_is_paced_leaves_the_drive_to_those_who_read() {
    let paced = upkeep::PACED_BYTES / u64::from(layout(Placement::OutOfPlace).unit_bytes);
    let (most, unpaced) = (most_on_their_way(true) as u64, most_on_their_way(false) as u64);
    assert!(most <= paced + 1 && unpaced > 2 * paced, "{most} units, {unpaced} if nobody waits");
}

/// A record that is replayed may refer to a value that a later one replaces: its place is free then.
#[test]
fn what_was_held_for_the_replay_and_has_no_page_is_free_after_the_next_checkpoint() {
    let world = World::new(1);
    let layout = layout(Placement::OutOfPlace);
    let segments = world.segments(&layout);
    segments.reclaim.begin_epoch(Epoch(3));
    let before = segments.usage();
    let place = |segment: u64| Location::new((1 << 20) + segment * (256 << 10), 4096, 0);
    (0..4).for_each(|segment| segments.opening.hold(place(segment)).unwrap());
    segments.opening.adopt(PageId(1), place(3)).unwrap();
    assert_eq!(segments.usage().free, before.free - 4);
    segments.opening.let_go();
    segments.reclaim.free_pending(Epoch(2));
    assert_eq!((segments.usage().free, segments.usage().pending), (before.free - 4, 3));
    segments.reclaim.free_pending(Epoch(3));
    assert_eq!((segments.usage().free, segments.usage().pending), (before.free - 1, 0));
}
