//! The cases. `FLASHGRAIN_CASES` of them for each store (1,500), from the seed `FLASHGRAIN_SEED` (1);
//! `FLASHGRAIN_CASE` runs that one alone and says more.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Write, stderr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Once};
use std::time::Duration;
use std::{env, thread};

use flashgrain::{Db, Error, ErrorKind, Iter, Simulated};
use flashgrain_fuzz_targets::allocation;
use flashgrain_ssdsim::{Image, SimDevice};
use rand_pcg::Pcg64;

use super::find::find;
use super::spoil::spoil;
use super::world::{self, Left, long_key, short_key};

const CASES: u64 = 1500;

/// No case takes a thousandth of this, so what takes longer does not end.
const PATIENCE: Duration = Duration::from_secs(30);

fn setting(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: a number, not `{text}`")))
}

thread_local! {
    /// Panics of this thread, caught by whom ever.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// A panic in a task of the background would only poison the store.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.with_borrow_mut(|panics| panics.push(panic.to_string()));
            before(panic);
        }));
    });
}

/// Ends the process if it is not told of another case in time: nothing else ends a loop that never waits.
fn watch() -> Sender<String> {
    let (sender, receiver) = channel::<String>();
    thread::spawn(move || {
        let mut under_way = String::new();
        loop {
            match receiver.recv_timeout(PATIENCE) {
                Ok(next) => under_way = next,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    // Not what tests have captured.
                    let _told =
                        writeln!(stderr(), "{under_way}: has not ended after {} s", PATIENCE.as_secs());
                    std::process::abort();
                }
            }
        }
    });
    sender
}

fn bytes_of(image: &Image, drive: &SimDevice) -> Vec<u8> {
    use flashgrain_device::Device;
    let mut bytes = vec![0; drive.capacity_bytes() as usize];
    image.read(0, &mut bytes);
    bytes
}

/// How cases end, by what they end with.
type Ends = BTreeMap<String, u64>;

fn run(left: Left) -> Ends {
    note_panics();
    allocation::limit();
    let (seed, only) = (setting("FLASHGRAIN_SEED").unwrap_or(1), setting("FLASHGRAIN_CASE"));
    let cases = setting("FLASHGRAIN_CASES").unwrap_or(CASES);
    let (watched, drive, whole) = (watch(), world::drive(), world::image(left));
    let bytes = bytes_of(&whole, &drive);
    let structures = find(&bytes);
    let mut ends = Ends::new();
    for case in only.map_or(0..cases, |case| case..case + 1) {
        let mut random = Pcg64::new(seed.into(), case.into());
        let mut spoilt = bytes.clone();
        let what = spoil(&mut random, &mut spoilt, &structures);
        let name = format!("{left:?} store, FLASHGRAIN_SEED={seed} FLASHGRAIN_CASE={case} ({what})");
        if only.is_some() {
            eprintln!("{name}");
        }
        allocation::note_case(case);
        let _watcher_is_there = watched.send(name.clone());
        put_changes(&whole, &bytes, &spoilt, &drive);
        let end = one(&drive);
        if only.is_some() {
            eprintln!("{end:?}");
        }
        let panics = PANICS.take();
        assert!(panics.is_empty(), "{name}: {}", panics.join("\n"));
        *ends.entry(end).or_default() += 1;
    }
    eprintln!("{left:?}: {ends:#?}");
    ends
}

/// The drive has the bytes of `spoilt`.
fn put_changes(whole: &Image, bytes: &[u8], spoilt: &[u8], drive: &SimDevice) {
    let mut image = whole.clone();
    for (index, (old, new)) in bytes.chunks(512).zip(spoilt.chunks(512)).enumerate() {
        if old != new {
            image.write(index as u64 * 512, new);
        }
    }
    drive.restore(&image).unwrap();
}

/// Opens and uses the store, and returns the outcome in words.
fn one(drive: &Arc<SimDevice>) -> String {
    let opened = catch_unwind(AssertUnwindSafe(|| world::open(drive)));
    let mut store = match opened {
        Ok(Ok(store)) => store,
        Ok(Err(error)) => return told("open", &error),
        Err(_) => return "a panic".into(),
    };
    let used = catch_unwind(AssertUnwindSafe(|| use_it(&mut store)));
    // A store that failed must not be closed: its close might panic again.
    store.abandon();
    used.unwrap_or_else(|_| "a panic".into())
}

fn use_it(store: &mut Simulated) -> String {
    let read = store.run(read_everything);
    let checked = store.run(|db| db.check());
    let changed = store.run(change);
    store.run_until_idle();
    let again = store.run(|db| read_everything(db).and(db.check().map(drop)).and(db.reclaim().map(drop)));
    let first = [("read", read), ("check", checked.map(drop)), ("change", changed), ("again", again)];
    let failed = first.into_iter().find_map(|(doing, result)| Some(told(doing, &result.err()?)));
    failed.unwrap_or_else(|| "fine".into())
}

fn told(doing: &str, error: &Error) -> String {
    assert!(!error.to_string().is_empty());
    format!("{doing}: {:?}", error.kind())
}

/// As much as can be read, whatever of it fails; the first error.
fn read_everything(db: &Db) -> Result<(), Error> {
    let mut result = Ok(());
    for name in db.tree_names() {
        let tree = db.existing_tree(&name)?;
        let all = |mut iter: Iter| iter.try_for_each(|record| record.map(drop));
        let forward = tree.iter().and_then(all);
        let backward = tree.iter().and_then(|iter| iter.rev().try_for_each(|record| record.map(drop)));
        result = result.and(forward).and(backward);
        for number in (0..world::SHORT).step_by(11) {
            result = result.and(tree.get(short_key(number)).map(drop));
            result = result.and(tree.get(long_key(number % world::LONG)).map(drop));
        }
    }
    result
}

/// Writes of all sorts, whatever of them fails; the first error.
fn change(db: &Db) -> Result<(), Error> {
    let mut result = Ok(());
    for name in db.tree_names() {
        let tree = db.existing_tree(&name)?;
        for number in (0..world::SHORT).step_by(5) {
            result = result.and(tree.insert(short_key(number), [number as u8; 90]));
            result = result.and(tree.remove(short_key(number + 2)));
            result = result.and(tree.insert(long_key(number % world::LONG), "other"));
        }
        result = result.and(tree.insert("large/1", world::overflow_value(4)));
        result = result.and(tree.remove("large/2"));
    }
    result.and(db.checkpoint()).and(db.drop_tree("wide"))
}

/// Cases must differ: some are refused, some found when they are read, and some do no harm.
fn are_of_all_sorts(ends: &Ends) {
    if setting("FLASHGRAIN_CASE").is_none() {
        let corrupt = format!("{:?}", ErrorKind::Corrupt);
        for start in ["open: ", "read: "] {
            let is_one = |end: &&String| end.starts_with(start) && end.ends_with(&corrupt);
            assert!(ends.keys().any(|end| is_one(&end)), "none ends with `{start}{corrupt}`: {ends:?}");
        }
        assert!(ends.contains_key("fine"), "{ends:?}");
    }
}

#[test]
fn nonsense_in_a_closed_store_is_an_error() {
    are_of_all_sorts(&run(Left::Closed));
}

#[test]
fn nonsense_in_an_abandoned_store_is_an_error() {
    are_of_all_sorts(&run(Left::Abandoned));
}

/// Nothing spoilt: nothing is wrong.
#[test]
fn the_stores_themselves_are_sound() {
    note_panics();
    for left in [Left::Closed, Left::Abandoned] {
        let (drive, image) = (world::drive(), world::image(left));
        let other = world::image(left);
        assert!(image.same_bytes(&other), "the same every time");
        drive.restore(&image).unwrap();
        assert_eq!(one(&drive), "fine");
        assert_eq!(PANICS.take(), Vec::<String>::new());
    }
}
