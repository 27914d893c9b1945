//! Bytes that no store ever wrote, under right checksums, give an error when they are opened or read, never a
//! panic, a wait without an end or an allocation that no store of this size needs.

use std::sync::Arc;

use super::world::{create, drive, open, options, world};
use crate::checkpoint::map::{Change, MapPageLocation, Writer, page_id};
use crate::checkpoint::{MapHead, Superblock, slots};
use crate::class::class_bytes;
use crate::engine::Engine;
use crate::header::PageId;
use crate::index::Write;
use crate::layout::{Placement, SyncMethod};
use crate::log::{Durability, LogRecord, Lsn, Timestamp};
use crate::segment::{Lifetime, Location, NotAppended, UnitSequence};
use crate::txn::Operation;
use crate::{Error, ErrorKind};

/// The result of opening a store after `spoil`.
fn opened_after(spoil: impl FnOnce(&Engine) + Send + 'static) -> Result<(), Error> {
    let device = drive(1);
    let (mut harness, given) = world(&device, 1, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    harness.run(move || spoil(&engine));
    drop(harness);
    let (mut harness, given) = world(&device, 1, options());
    let opened = open(&mut harness, given);
    opened.map(drop)
}

/// Makes the present state the one that the store is opened from.
fn save(engine: &Engine, change: impl FnOnce(&mut Superblock)) {
    let mut superblock = engine.superblock();
    superblock.generation += 1;
    change(&mut superblock);
    slots::save(&engine.parts().devices, &superblock).unwrap();
}

/// A page more at the end of the map's chain.
fn with_change(change: Change) -> Result<(), Error> {
    opened_after(move |engine| {
        let segments = &engine.parts().segments;
        let head = engine.superblock().state.map.unwrap();
        assert_eq!(head.first_serial, head.last_serial, "a chain of one page");
        let priors = vec![MapPageLocation { serial: head.last_serial, location: head.last }];
        let mut write = |serial, page: crate::page::Page<'_>| {
            segments
                .gatherer
                .append(Lifetime::Map, page_id(serial), 0, page, None)
                .map(|appended| appended.location)
                .map_err(|why| match why {
                    NotAppended::Failed(error) => error,
                    why => panic!("{why:?}"),
                })
        };
        let mut writer = Writer::new(class_bytes(0) as u32, priors, head.last_serial + 1);
        writer.push(change, &mut write).unwrap();
        let (places, _) = writer.finish(&mut write).unwrap();
        segments.gatherer.write_all().unwrap();
        let MapPageLocation { serial: last_serial, location: last } = places[0];
        save(engine, |superblock| superblock.state.map = Some(MapHead { last, last_serial, ..head }));
    })
}

#[track_caller]
fn is_corrupt(result: Result<(), Error>, text: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

/// A byte after all of the drive's segments.
const BEHIND_BYTES: u64 = 1 << 48;

#[test]
fn a_map_of_what_there_is_not_is_refused() {
    let at = |offset_bytes, length_bytes| Location::new(offset_bytes, length_bytes, 0);
    with_change(Change::Segment(0, UnitSequence(1))).unwrap();
    is_corrupt(with_change(Change::Page(PageId(1 << 39), Some(at(2 << 20, 4096)))), "pages below");
    is_corrupt(with_change(Change::Segment(1 << 40, UnitSequence(1))), "segments below");
    is_corrupt(with_change(Change::Page(PageId(1), Some(at(BEHIND_BYTES, 4096)))), "outside");
    is_corrupt(with_change(Change::Page(PageId(1), Some(at(512, 4096)))), "outside");
    // From one segment into the next.
    is_corrupt(with_change(Change::Page(PageId(1), Some(at((1 << 20) + (64 << 10) - 512, 4096)))), "outside");
}

#[test]
fn a_map_that_is_nowhere_is_refused() {
    is_corrupt(
        opened_after(|engine| {
            save(engine, |superblock| {
                let map = superblock.state.map.as_mut().unwrap();
                map.last = Location::new(BEHIND_BYTES, 4096, 0);
            });
        }),
        "outside",
    );
}

/// Their places would be too short for the pages when they are written again.
#[test]
fn images_of_parts_of_pages_are_refused_where_pages_stay_in_place() {
    let in_place = opened_after(|engine| {
        save(engine, |superblock| {
            superblock.layout.placement = Placement::InPlace;
            superblock.closed = true;
        });
    });
    is_corrupt(in_place, "stays in its place");
}

/// A commit of an overflow value of one page.
fn with_overflow(
    page: u64,
    location: impl FnOnce(u64) -> u64 + Send + 'static,
    epoch: u64,
) -> Result<(), Error> {
    opened_after(move |engine| {
        let whole = Location::new((1 << 20) + (512 << 10), 4096, 0);
        let mut reference = [&1_u64.to_le_bytes()[..], &[0; 4], &[0, 1, 0, 0], &page.to_le_bytes()].concat();
        reference.extend(epoch.to_le_bytes());
        reference.extend(1_u32.to_le_bytes());
        reference.extend([page, location(whole.bits())].map(u64::to_le_bytes).concat());
        let tree = engine.trees().named("apples").unwrap().entry.id;
        let mut record = Vec::new();
        Operation::PutOverflow { tree, key: b"key", reference: &reference }.encode(&mut record);
        let log = &engine.parts().log;
        let logged = log.append(&record).unwrap();
        log.wait(logged.end, Durability::Sync).unwrap();
    })
}

#[test]
fn a_log_that_names_pages_and_places_that_no_store_had_is_refused() {
    let (page, epoch) = (1000, 3);
    with_overflow(page, |whole| whole, epoch).unwrap();
    is_corrupt(with_overflow(1 << 39, |whole| whole, epoch), "pages below");
    is_corrupt(with_overflow(u64::MAX, |whole| whole, epoch), "pages below");
    is_corrupt(with_overflow(page, |whole| whole, u64::from(u32::MAX)), "epoch");
    is_corrupt(with_overflow(page, |whole| whole, u64::MAX), "epoch");
    is_corrupt(with_overflow(page, |_| Location::new(BEHIND_BYTES, 4096, 0).bits(), epoch), "outside");
    // Size classes that do not exist.
    is_corrupt(with_overflow(page, |whole| whole | 15 << 15, epoch), "its pages in the log");
    is_corrupt(with_overflow(page, |_| 0, epoch), "its pages in the log");
}

/// No reader waits until a commit that was never made can be seen.
#[test]
fn a_record_from_the_future_is_read_at_once() {
    let device = drive(1);
    let (mut harness, given) = world(&device, 1, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    let read = Arc::new(std::sync::Mutex::new(None));
    let (reading, note) = (Arc::clone(&engine), Arc::clone(&read));
    let _ends = harness.spawn(0, move || {
        let tree = reading.trees().named("apples").unwrap();
        let record = LogRecord { start: Lsn(0), timestamp: Timestamp(1 << 50) };
        tree.tree.index.reapply(b"apple", Write::Put(b"red"), record).unwrap();
        let mut found = Vec::new();
        let version = reading.transactions().get(&tree.tree, b"apple", None, &mut found).unwrap();
        *note.lock().unwrap() = Some((version.unwrap().timestamp(), found));
    });
    harness.run_until_idle();
    assert_eq!(*read.lock().unwrap(), Some((Timestamp(1 << 50), b"red".to_vec())));
}
