//! Processes that open and make stores at the same time, that are killed while they do, and that are forked.
//!
//! `FLASHGRAIN_ROUNDS=200 cargo test -p flashgrain --test opening` for a long run.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod forks;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use flashgrain::{Builder, Db, Error};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// What this process is to do, if it is a child.
const CHILD: &str = "FLASHGRAIN_OPENING_CHILD";

/// Where.
const PLACE: &str = "FLASHGRAIN_OPENING_PLACE";

/// What a store is made of.
const KINDS: [&str; 3] = ["one", "log", "striped"];

fn rounds(default: u64) -> u64 {
    std::env::var("FLASHGRAIN_ROUNDS").map_or(default, |text| text.parse().unwrap())
}

/// On a disk: `/tmp` may be in memory.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn builder(place: &Path, kind: &str) -> Builder {
    let small = Db::builder().cache_bytes(4 << 20).workers(1).recovery_log_bytes(1 << 20);
    let small = small.size_bytes_max(16 << 20).path(place.join("data"));
    match kind {
        "log" => small.log_path(place.join("log")),
        "striped" => small.path(place.join("other")),
        _ => small,
    }
}

/// This test again, as a child with a job; it begins when it is told to.
fn start(job: &str, place: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, job)
        .env(PLACE, place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test of its own: what the children of the others do.
#[test]
fn child() {
    let (Ok(job), Ok(place)) = (std::env::var(CHILD), std::env::var(PLACE)) else { return };
    let (kind, name) = job.split_once(' ').unwrap();
    println!("@ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    if name == "limited" {
        return limited(Path::new(&place), kind);
    }
    match builder(Path::new(&place), kind).open_or_create() {
        Ok(db) => {
            if name == "made" {
                println!("@made");
                std::io::stdin().read_line(&mut line).unwrap();
            }
            db.tree("t").unwrap().insert(name, "acknowledged").unwrap();
            println!("@acknowledged {name}");
            db.close().unwrap();
        }
        Err(Error::Locked { .. }) => println!("@locked"),
        Err(error) => println!("@failed {error}"),
    }
}

/// The next line that the child has for us.
fn hear(from: &mut impl BufRead) -> Option<String> {
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        if let Some(said) = line.trim_end().split_once('@') {
            return Some(said.1.to_owned());
        }
    }
}

#[test]
fn of_processes_that_start_at_once_one_makes_the_store_and_the_others_are_locked_out() {
    for round in 0..rounds(12) {
        let folder = folder();
        let kind = KINDS[round as usize % KINDS.len()];
        let count = if round % 2 == 0 { 3 } else { 6 };
        let mut children: Vec<(Child, _)> = (0..count)
            .map(|index| {
                let mut child = start(&format!("{kind} p{index}"), folder.path());
                let mut said = BufReader::new(child.stdout.take().unwrap());
                assert_eq!(hear(&mut said).unwrap(), "ready");
                (child, said)
            })
            .collect();
        for (child, _) in &mut children {
            child.stdin.take().unwrap().write_all(b"\n").unwrap();
        }
        let mut acknowledged = Vec::new();
        for (child, said) in &mut children {
            let answer = hear(said).unwrap();
            match answer.split_once(' ') {
                Some(("acknowledged", name)) => acknowledged.push(name.to_owned()),
                _ => assert_eq!(answer, "locked", "round {round}, {kind}"),
            }
            while hear(said).is_some() {}
            assert!(child.wait().unwrap().success());
        }
        assert!(!acknowledged.is_empty(), "round {round}, {kind}: nobody got the store");
        let db = builder(folder.path(), kind).open().unwrap();
        let tree = db.tree("t").unwrap();
        for name in acknowledged {
            assert!(tree.contains_key(&name).unwrap(), "round {round}, {kind}: {name} was lost");
        }
    }
}

#[test]
fn a_store_whose_making_was_killed_at_any_moment_is_made_again_by_whoever_wants_it() {
    let seed = std::env::var("FLASHGRAIN_SEED").map_or(1, |text| text.parse().unwrap());
    println!("seed {seed}");
    let mut random = Pcg64::seed_from_u64(seed);
    for round in 0..rounds(12) {
        for kind in KINDS {
            let folder = folder();
            let mut child = start(&format!("{kind} made"), folder.path());
            let mut said = BufReader::new(child.stdout.take().unwrap());
            assert_eq!(hear(&mut said).unwrap(), "ready");
            child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
            // How far it comes depends on the machine; what is asserted does not.
            let us = random.random_range(0..30_000);
            let (_stop, stopped) = std::sync::mpsc::channel::<()>();
            let _over = stopped.recv_timeout(std::time::Duration::from_micros(us));
            child.kill().unwrap();
            child.wait().unwrap();
            let was_made = hear(&mut said).is_some();
            let is_there = || builder(folder.path(), kind).open();
            match is_there() {
                Ok(db) => db.close().unwrap(),
                Err(Error::NotAStore { .. }) if !was_made => {}
                Err(error) => panic!("round {round}, {kind}, after {us} us: {error}"),
            }
            match round % 2 {
                0 => builder(folder.path(), kind).open_or_create().unwrap().close().unwrap(),
                _ => match builder(folder.path(), kind).create() {
                    Ok(db) => db.close().unwrap(),
                    Err(Error::Exists { .. }) => {}
                    Err(error) => panic!("round {round}, {kind}, after {us} us: {error}"),
                },
            }
            is_there().unwrap().close().unwrap();
        }
    }
}

/// As `ulimit -f` does.
fn limit_file_bytes(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel reads one `rlimit`.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

/// The process may not have longer files for a while, and does not ignore the signal that says so.
fn limited(place: &Path, kind: &str) {
    limit_file_bytes(1 << 20);
    let error = builder(place, kind).create().unwrap_err();
    assert!(error.to_string().contains("ulimit -f"), "{error}");
    limit_file_bytes(libc::RLIM_INFINITY);
    let grows = || Db::builder().cache_bytes(4 << 20).workers(1).recovery_log_bytes(1 << 20);
    let path = place.join("data");
    let db = grows().path(&path).create().unwrap();
    let tree = db.tree("t").unwrap();
    let file_bytes = || std::fs::metadata(path.join(flashgrain::DATA_FILE)).unwrap().len();
    limit_file_bytes(file_bytes());
    let value = vec![7; 1 << 20];
    let full = (0_u64..).find_map(|key| Some((key, tree.insert(key.to_be_bytes(), &value).err()?)));
    let (next, error) = full.unwrap();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    let before = file_bytes();
    limit_file_bytes(libc::RLIM_INFINITY);
    let room = (0..100).any(|_| {
        db.sleep_until(db.now() + std::time::Duration::from_millis(50)).unwrap();
        tree.insert(next.to_be_bytes(), &value).is_ok()
    });
    assert!(room && file_bytes() > before, "full for good");
    drop(tree);
    db.close().unwrap();
    limit_file_bytes(before);
    let error = grows().path(&path).open().unwrap_err();
    assert!(error.to_string().contains("ulimit -f"), "{error}");
    println!("@passed");
}

#[test]
fn a_limit_on_files_fills_a_store_ends_no_program_and_is_forgotten_when_it_is_lifted() {
    let folder = folder();
    let mut child = start("one limited", folder.path());
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(hear(&mut said).unwrap(), "ready");
    assert_eq!(hear(&mut said).as_deref(), Some("passed"));
    assert!(child.wait().unwrap().success());
}
