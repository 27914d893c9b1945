//! Power cuts below the VFS and below volumes: drawn lives of databases are recorded as they reach a medium,
//! and cut anywhere; of what was not synced, anything may be left, torn between sectors. After that, each
//! database is whole, and has all transactions that were acknowledged and at most the one that was under way.
//!
//! `FLASHGRAIN_LIVES` lives (60 in files and 30 on volumes) from the seed `FLASHGRAIN_SEED` (1), with
//! `FLASHGRAIN_IMAGES` cuts each (12). Some recoveries are cut as well.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod device;
mod files;
mod life;
mod medium;
mod tape;

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Once, RwLock};

use flashgrain_sqlite_vfs::VFS_NAME;
use rand::RngExt as _;
use rand_pcg::Pcg64;
use rusqlite::{Connection, ffi};

use life::{Life, Records};
use medium::Place;
use tape::{Event, Image, cut};

type EntryPoint = unsafe extern "C" fn(*mut c_void, *mut *mut c_char, *const c_void) -> c_int;

type SqlitesEntryPoint =
    unsafe extern "C" fn(*mut ffi::sqlite3, *mut *mut c_char, *const ffi::sqlite3_api_routines) -> c_int;

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        files::register();
        let entry: EntryPoint = flashgrain_sqlite_vfs::auto_extension;
        // SAFETY: it is an entry point of an extension; only the pointers' types have other names there.
        let code = unsafe {
            let entry = std::mem::transmute::<EntryPoint, SqlitesEntryPoint>(entry);
            ffi::sqlite3_auto_extension(Some(entry))
        };
        assert_eq!(code, 0);
        Connection::open_in_memory().unwrap();
    });
}

/// SQLite's page caches have a pool in common, so that it writes pages out at other moments if others are in
/// use.
static ALONE: RwLock<()> = RwLock::new(());

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// The last acknowledged and the last submitted transaction.
fn bounds(events: &[Event]) -> (usize, usize) {
    events.iter().fold((0, 0), |(least, most), event| match event {
        Event::Acknowledged(number) => (*number, most),
        Event::Submitted(number) => (least, *number),
        _ => (least, most),
    })
}

/// The number of events before a cut: anywhere, while a database is made, or just before a sync, where most
/// is unsynced.
fn point(events: &[Event], random: &mut Pcg64) -> usize {
    let all = if random.random_range(0..4) == 0 { events.len().min(40) } else { events.len() };
    let point = random.random_range(0..=all);
    let next_sync = || events[point..].iter().position(|event| matches!(event, Event::Sync(_)));
    if random.random() { next_sync().map_or(point, |distance| point + distance) } else { point }
}

/// Cuts a recorded life at a drawn place, and compares; now and then, recovery is cut, too.
fn cut_and_compare(
    life: &Life,
    place: &Place,
    (before, events): (&Image, &[Event]),
    states: &[Records],
    random: &mut Pcg64,
    told: &str,
) {
    let point = point(events, random);
    let (least, most) = bounds(&events[..point]);
    let is_torn = random.random();
    let image = cut(before, &events[..point], is_torn, random);
    let told = format!("{told}, cut at {point} of {}", events.len());
    if random.random_range(0..4) > 0 {
        life.compare(&place.holding(image), states, least, most, &told);
        return;
    }
    let recovered = place.holding(image.clone());
    life.recover(&recovered);
    let events = recovered.tape();
    let point = self::point(&events, random);
    let again = cut(&image, &events[..point], is_torn, random);
    drop(recovered);
    life.compare(&place.holding(again), states, least, most, &format!("{told}, and at {point} of recovery"));
}

fn lives(count: u64, members: &[u32]) {
    register();
    let _others = ALONE.read();
    let first = number("FLASHGRAIN_SEED", 1);
    let images = number("FLASHGRAIN_IMAGES", 12);
    for seed in first..first + number("FLASHGRAIN_LIVES", count) {
        let (life, mut random) = Life::draw(seed);
        let place = Place::new(members[random.random_range(0..members.len())]);
        let before = place.empty();
        let medium = place.holding(before.clone());
        let states = life.live(&medium, &mut random);
        let events = medium.tape();
        drop(medium);
        for image in 0..images {
            let told = format!("seed {seed}, image {image}");
            cut_and_compare(&life, &place, (&before, &events), &states, &mut random, &told);
        }
    }
}

#[test]
fn files_keep_what_was_acknowledged() {
    lives(60, &[0]);
}

#[test]
fn volumes_keep_what_was_acknowledged() {
    lives(30, &[1, 3]);
}

/// Plain databases are none of the VFS's business: what reaches the one behind it is the same call for call,
/// flag for flag and byte for byte.
#[test]
fn plain_databases_pass_untouched() {
    register();
    let _alone = ALONE.write();
    let place = Place::new(0);
    for seed in 1..=30 {
        let [direct, through] = ["recorder", VFS_NAME].map(|vfs| {
            files::load(Image::default());
            let (life, mut random) = Life::draw(seed);
            let life = life.plain();
            life.live(&place.files(vfs), &mut random);
            // Journals have numbers that SQLite draws.
            (files::calls(), files::databases())
        });
        let differs = direct.0.iter().zip(&through.0).find(|(direct, through)| direct != through);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(direct.0.len(), through.0.len(), "seed {seed}");
        assert!(direct.0.len() > 20 && !direct.1.is_empty());
        assert!(direct.1 == through.1, "seed {seed}");
    }
}
