//! `kill -9` in the middle of commits, again and again, with the oracle in another process.
//!
//! A child works on the store and says what it is about to commit and what was acknowledged as durable; its parent kills it, opens the store and compares.
//! `FLASHGRAIN_KILLS=200 FLASHGRAIN_SEED=7 cargo test -p flashgrain --test kill` for a long run, `FLASHGRAIN_KILL_DIR` for another drive.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use flashgrain::{Db, Durability, Error, Tree};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Where the child finds its store; its presence says that this process is the child.
const CHILD: &str = "FLASHGRAIN_KILL_CHILD";

/// Threads that commit in the child, each on keys of its own.
const WRITERS: u64 = 4;

/// Keys of a writer.
const KEYS: u64 = 3000;

/// Operations of a commit, at most.
const OPERATIONS_MAX: u64 = 6;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// A writer's commits are the same whenever they are made: what is in the store follows from how many were.
fn operations(writer: u64, commit: u64) -> Vec<(String, Option<Vec<u8>>)> {
    let mut random = Pcg64::seed_from_u64(writer << 48 | commit);
    let count = random.random_range(1..=OPERATIONS_MAX);
    let mut chosen = BTreeMap::new();
    for _ in 0..count {
        let key = format!("{writer}/{:05}", random.random_range(0..KEYS));
        let value = random.random_bool(0.8).then(|| {
            // Now and then a value that does not fit into a page.
            let length = if random.random_bool(0.01) { 20_000 } else { random.random_range(0..400) };
            let mut bytes = vec![0; length];
            random.fill(&mut bytes[..]);
            bytes
        });
        chosen.insert(key, value);
    }
    chosen.into_iter().collect()
}

fn counter_key(writer: u64) -> String {
    format!("{writer}/commits")
}

/// How many commits of `writer` the store has.
fn commits_in(tree: &Tree, writer: u64) -> u64 {
    tree.get(counter_key(writer))
        .unwrap()
        .map_or(0, |value| u64::from_le_bytes(value.as_slice().try_into().unwrap()))
}

fn open(path: &Path) -> Db {
    // Little memory and little log, so that eviction, cleaning and checkpoints go on all the time.
    let builder = Db::builder().path(path).cache_bytes(2 << 20).recovery_log_bytes(4 << 20).workers(2);
    builder.open_or_create().unwrap()
}

fn say(what: &str, writer: u64, commit: u64) {
    // One write system call, so that lines of several threads do not mix and nothing stays behind in a buffer.
    let line = format!("\n@{what} {writer} {commit}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

fn write_forever(db: &Db, tree: &Tree, writer: u64) -> Result<(), Error> {
    for commit in commits_in(tree, writer) + 1.. {
        let durable = commit % 3 != 0;
        let mut batch = db.batch().durability(if durable { Durability::Sync } else { Durability::Buffered });
        for (key, value) in operations(writer, commit) {
            match value {
                Some(value) => batch.insert(tree, key, value)?,
                None => batch.remove(tree, key)?,
            }
        }
        batch.insert(tree, counter_key(writer), commit.to_le_bytes())?;
        say("submits", writer, commit);
        batch.commit()?;
        if durable {
            say("acknowledged", writer, commit);
        }
    }
    Ok(())
}

/// What the child says until it is killed: how many commits each writer had acknowledged and submitted.
fn run_child_and_kill(path: &Path, after: Duration) -> BTreeMap<u64, (u64, u64)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_store_has_what_it_acknowledged", "--nocapture"])
        .env(CHILD, path)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (sender, receiver) = mpsc::channel();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let reader = std::thread::spawn(move || {
        let mut said: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut other = String::new();
        for line in lines.map_while(Result::ok) {
            let words: Vec<&str> = line.split(' ').collect();
            let [what @ ("@submits" | "@acknowledged"), writer, commit] = words[..] else {
                other += &line;
                continue;
            };
            let _nobody_waits_any_more = sender.send(());
            let (acknowledged, submitted) = said.entry(writer.parse().unwrap()).or_default();
            *(if what == "@submits" { submitted } else { acknowledged }) = commit.parse().unwrap();
        }
        (said, other)
    });
    // The clock begins with the first commit, however long opening takes.
    let began = receiver.recv_timeout(Duration::from_secs(60));
    let (_keep_open, never) = mpsc::channel::<()>();
    let _time_is_up = never.recv_timeout(after);
    let ended_by_itself = child.try_wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let (said, other) = reader.join().unwrap();
    assert!(began.is_ok() && ended_by_itself.is_none(), "the child ended: {ended_by_itself:?} {other}");
    said
}

#[test]
fn a_killed_store_has_what_it_acknowledged() {
    if let Some(path) = std::env::var_os(CHILD) {
        let db = open(Path::new(&path));
        let tree = db.tree("kill").unwrap();
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (db, tree) = (&db, &tree);
                scope.spawn(move || write_forever(db, tree, writer).unwrap());
            }
        });
        return;
    }
    let kills = number("FLASHGRAIN_KILLS", 8);
    let seed = number("FLASHGRAIN_SEED", 1);
    println!("seed {seed}, {kills} kills");
    let mut random = Pcg64::seed_from_u64(seed);
    let folder = match std::env::var_os("FLASHGRAIN_KILL_DIR") {
        Some(directory) => tempfile::tempdir_in(PathBuf::from(directory)).unwrap(),
        None => tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
    };
    let path = folder.path().join("store");
    let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut done = [0; WRITERS as usize];
    for kill in 0..kills {
        let said = run_child_and_kill(&path, Duration::from_millis(random.random_range(20..600)));
        let db = open(&path);
        let tree = db.tree("kill").unwrap();
        for (writer, (acknowledged, submitted)) in said {
            let recovered = commits_in(&tree, writer);
            assert!(
                acknowledged <= recovered && recovered <= submitted,
                "kill {kill}, seed {seed}, writer {writer}: {acknowledged} acknowledged, {recovered} recovered, {submitted} submitted"
            );
            for commit in done[writer as usize] + 1..=recovered {
                for (key, value) in operations(writer, commit) {
                    match value {
                        Some(value) => drop(model.insert(key, value)),
                        None => drop(model.remove(&key)),
                    }
                }
            }
            done[writer as usize] = recovered;
            if recovered > 0 {
                model.insert(counter_key(writer), recovered.to_le_bytes().to_vec());
            }
        }
        let mut expected = model.iter();
        for found in tree.iter().unwrap() {
            let (key, value) = found.unwrap();
            let (model_key, model_value) = expected.next().expect("nothing more than was committed");
            assert!(
                key.as_slice() == model_key.as_bytes() && value.as_slice() == model_value.as_slice(),
                "kill {kill}, seed {seed}: {:?} of {} bytes where {model_key:?} of {} was committed",
                String::from_utf8_lossy(key.as_slice()),
                value.as_slice().len(),
                model_value.len()
            );
        }
        assert_eq!(expected.next(), None, "kill {kill}, seed {seed}");
        db.check().unwrap();
        // Half of the rounds go on after a clean end, the others after yet another crash.
        if random.random_bool(0.5) {
            db.close().unwrap();
        }
    }
    println!("{} commits survived {kills} kills", done.iter().sum::<u64>());
}
