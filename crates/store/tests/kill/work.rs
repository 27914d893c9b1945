//! What the child does to the store until it is killed, all of it known beforehand: what is in the store
//! follows from how far each of its threads came.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use flashgrain::{BackendKind, Builder, Db, Durability, Error, Readable, Tree, TreeOptions};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Threads that commit in the child, each on keys of its own.
pub const WRITERS: usize = 4;

/// The thread that loads a tree and removes its records again, in the words that the child says; the ones
/// before are the writers.
pub const SWEEPER: usize = WRITERS;

/// All that say how far they are.
pub const ACTORS: usize = WRITERS + 1;

/// Trees that the commits of writers are spread over.
pub const TREES: usize = 3;

/// Records that the sweeper loads: several steps, so that a crash leaves part of them.
pub const SWEPT_RECORDS: u64 = 3000;

/// Keys of a writer in each tree.
const KEYS: u64 = 2000;

/// Keys that a range takes up at most; fewer records than one commit takes.
const RANGE_KEYS_MAX: u64 = 300;

/// Operations of a commit, at most.
const OPERATIONS_MAX: u64 = 6;

/// One commit of a writer.
pub struct Commit {
    /// It is not acknowledged before it is durable.
    pub durable: bool,
    /// Keys from the first to before the second that are removed before anything is put: tree and keys.
    pub range: Option<(usize, String, String)>,
    /// Tree, key and new value.
    pub writes: BTreeMap<(usize, String), Option<Vec<u8>>>,
}

/// The commit of that number, from 1, of a writer; the same whenever it is made.
pub fn commit(writer: usize, number: u64) -> Commit {
    let mut random = Pcg64::seed_from_u64((writer as u64) << 48 | number);
    let range = random.random_bool(0.05).then(|| {
        let from = random.random_range(0..KEYS);
        (
            random.random_range(0..TREES),
            key(writer, from),
            key(writer, from + random.random_range(1..=RANGE_KEYS_MAX)),
        )
    });
    let mut writes = BTreeMap::new();
    for _ in 0..random.random_range(1..=OPERATIONS_MAX) {
        let place = (random.random_range(0..TREES), key(writer, random.random_range(0..KEYS)));
        let value = random.random_bool(0.8).then(|| {
            let length = match random.random_range(0..1000) {
                // Now and then a value that does not fit into a page, or not into a write unit.
                0 => random.random_range(100_000..400_000),
                1..20 => random.random_range(2_000..40_000),
                _ => random.random_range(0..400),
            };
            let mut bytes = vec![0; length];
            random.fill(&mut bytes[..]);
            bytes
        });
        writes.insert(place, value);
    }
    writes.insert((number as usize % TREES, counter_key(writer)), Some(number.to_le_bytes().to_vec()));
    Commit { durable: random.random_bool(0.7), range, writes }
}

/// Whether a commit also takes the next ticket of all writers', which shows the order of their commits.
pub fn takes_ticket(number: u64) -> bool {
    number.is_multiple_of(5)
}

fn key(writer: usize, number: u64) -> String {
    format!("{writer}/{number:05}")
}

/// Where a writer keeps the number of its last commit; the largest of all trees' is it.
fn counter_key(writer: usize) -> String {
    format!("{writer}/commits")
}

/// What a swept record of a generation holds.
pub fn swept(generation: u64) -> [u8; 100] {
    let mut value = [generation as u8; 100];
    value[..8].copy_from_slice(&generation.to_le_bytes());
    value
}

/// The number in a record of this test.
pub fn number_in(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// The trees of a store.
pub struct Trees {
    /// The writers' records.
    pub written: Vec<Tree>,
    /// Writer and number of the commit that took a ticket.
    pub tickets: Tree,
    /// What the sweeper loads and removes, and which generation it is at.
    pub swept: Tree,
    pub generation: Tree,
}

impl Trees {
    pub fn of(db: &Db) -> Self {
        let nodes = |bytes| TreeOptions::new().node_bytes(bytes);
        let written = |tree: usize| db.tree_with(&format!("written {tree}"), &nodes(4096 << tree)).unwrap();
        Self {
            written: (0..TREES).map(written).collect(),
            tickets: db.tree("tickets").unwrap(),
            swept: db.tree("swept").unwrap(),
            generation: db.tree("generation").unwrap(),
        }
    }

    /// How many commits of `writer` the store has.
    pub fn commits_of(&self, writer: usize) -> u64 {
        let count = |tree: &Tree| tree.get(counter_key(writer)).unwrap().map_or(0, |value| number_in(&value));
        self.written.iter().map(count).max().unwrap()
    }
}

/// Little memory and little log, so that eviction, cleaning, checkpoints and growth go on all the time.
pub fn open(path: &Path) -> Result<Db, Error> {
    builder(path).open_or_create()
}

/// A new store, whatever is there.
pub fn create(path: &Path) -> Result<Db, Error> {
    builder(path).create()
}

fn builder(path: &Path) -> Builder {
    let builder = Db::builder()
        .path(path)
        .destroy_contents_of(path)
        .cache_bytes(2 << 20)
        .recovery_log_bytes(4 << 20)
        .workers(2);
    let asked = std::env::var("FLASHGRAIN_KILL_IO").unwrap_or_default();
    let builder = builder.poll_completions(asked == "polled");
    let builder = if asked == "sqpoll" { builder.backend(BackendKind::IoUringSqpoll) } else { builder };
    builder.segment_bytes(1 << 20).write_unit_bytes(128 << 10)
}

/// Where the copy of that number is made.
pub fn copy_path(store: &Path, number: u64) -> PathBuf {
    store.with_file_name(format!("copy-{number}"))
}

/// The copies that there are.
pub fn copies(store: &Path) -> Vec<u64> {
    let number = |name: &str| name.strip_prefix("copy-")?.parse().ok();
    let entries = std::fs::read_dir(store.parent().unwrap()).unwrap();
    entries.filter_map(|entry| number(entry.unwrap().file_name().to_str()?)).collect()
}

/// One write system call, so that lines of several threads do not mix and nothing stays behind in a buffer.
fn say(what: &str, who: usize, number: u64) {
    let line = format!("\n@{what} {who} {number}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

fn write_forever(db: &Db, trees: &Trees, writer: usize) -> Result<(), Error> {
    for number in trees.commits_of(writer) + 1.. {
        let commit = commit(writer, number);
        say("submits", writer, number);
        loop {
            match do_commit(db, trees, writer, number, &commit) {
                Err(Error::Conflict) => {}
                result => break result?,
            }
        }
        if commit.durable {
            say("acknowledged", writer, number);
        } else if number.is_multiple_of(16) {
            db.sync()?;
            say("acknowledged", writer, number);
        }
    }
    Ok(())
}

fn do_commit(db: &Db, trees: &Trees, writer: usize, number: u64, commit: &Commit) -> Result<(), Error> {
    let durability = if commit.durable { Durability::Sync } else { Durability::Buffered };
    if !takes_ticket(number) && commit.range.is_none() {
        let mut batch = db.batch().durability(durability);
        for ((tree, key), value) in &commit.writes {
            match value {
                Some(value) => batch.insert(&trees.written[*tree], key, value.clone())?,
                None => batch.remove(&trees.written[*tree], key)?,
            }
        }
        return batch.commit();
    }
    let mut transaction = db.begin()?;
    transaction.set_durability(durability);
    if let Some((tree, from, to)) = &commit.range {
        transaction.remove_range::<&String>(&trees.written[*tree], from..to)?;
    }
    for ((tree, key), value) in &commit.writes {
        match value {
            Some(value) => transaction.insert(&trees.written[*tree], key, value.clone())?,
            None => transaction.remove(&trees.written[*tree], key)?,
        }
    }
    if takes_ticket(number) {
        let last = transaction.last_key_value(&trees.tickets)?;
        let ticket = last.map_or(0, |(key, _)| u64::from_be_bytes(key[..].try_into().unwrap())) + 1;
        let holder = [number.to_le_bytes(), (writer as u64).to_le_bytes()].concat();
        transaction.insert(&trees.tickets, ticket.to_be_bytes(), holder)?;
    }
    transaction.commit()
}

/// Step 2g loads generation g, step 2g + 1 removes it.
fn sweep_forever(trees: &Trees) -> Result<(), Error> {
    let last = trees.generation.get("at")?.map_or(0, |value| number_in(&value));
    if let Some((_, value)) = trees.swept.first_key_value()? {
        remove_swept(trees, number_in(&value))?;
    }
    for generation in last + 1.. {
        trees.generation.insert("at", generation.to_le_bytes())?;
        say("submits", SWEEPER, 2 * generation);
        trees.swept.load((0..SWEPT_RECORDS).map(|record| (record.to_be_bytes(), swept(generation))))?;
        say("acknowledged", SWEEPER, 2 * generation);
        remove_swept(trees, generation)?;
    }
    Ok(())
}

fn remove_swept(trees: &Trees, generation: u64) -> Result<(), Error> {
    say("submits", SWEEPER, 2 * generation + 1);
    trees.swept.remove_range::<&[u8]>(..)?;
    say("acknowledged", SWEEPER, 2 * generation + 1);
    Ok(())
}

/// Checkpoints and backups, with pauses in which others get on.
fn copy_forever(db: &Db, path: &Path) -> Result<(), Error> {
    let (_keep_open, never) = mpsc::channel::<()>();
    let last = copies(path).into_iter().max().unwrap_or(0);
    for number in last + 1.. {
        for _ in 0..3 {
            let _time_is_up = never.recv_timeout(Duration::from_millis(10));
            db.checkpoint()?;
        }
        say("copies", 0, number);
        db.backup(Db::builder().path(copy_path(path, number)).cache_bytes(1 << 20).workers(1))?;
        say("copied", 0, number);
        if number > last + 1 {
            std::fs::remove_dir_all(copy_path(path, number - 1)).unwrap();
        }
    }
    Ok(())
}

/// Works on the store until it is killed.
pub fn work(path: &Path) {
    let db = open(path).unwrap();
    let trees = Trees::of(&db);
    for writer in 0..WRITERS {
        say("found", writer, trees.commits_of(writer));
    }
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, trees) = (&db, &trees);
            scope.spawn(move || write_forever(db, trees, writer).unwrap());
        }
        scope.spawn(|| sweep_forever(&trees).unwrap());
        scope.spawn(|| copy_forever(&db, path).unwrap());
    });
}
