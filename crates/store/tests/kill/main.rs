//! `kill -9` at any moment, again and again, with the oracle in another process.
//!
//! A child works on the store, on several threads and in several trees, and says what it is about to do and
//! what was acknowledged as durable; its parent kills it, opens the store and compares. Half of the kills
//! come soon after the child has begun, while it opens the store; and some follow each other without anybody
//! looking in between, so that recoveries are killed, too.
//!
//! `FLASHGRAIN_KILLS=200 FLASHGRAIN_SEED=7 cargo test -p flashgrain --test kill` for a long run,
//! `FLASHGRAIN_KILL_DIR` for another drive, and `FLASHGRAIN_KILL_DEVICE` for a store on a block device or
//! NVMe namespace, whose contents are lost. `FLASHGRAIN_KILL_IO=polled` has completions polled for, `sqpoll`
//! has requests taken by a thread of the kernel. `scripts/power-loss.sh` uses child and oracle for power cuts.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod oracle;
mod work;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use flashgrain::{Db, Error};
use oracle::{Bounds, Oracle};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use work::{ACTORS, copies, copy_path, create, open};

/// Where the child finds its store; its presence says that this process is the child.
const CHILD: &str = "FLASHGRAIN_KILL_CHILD";

/// A store that is only to be opened and compared, within the bounds of each actor in the other variable, as
/// `acknowledged:submitted` with spaces between.
const CHECK: &str = "FLASHGRAIN_KILL_CHECK";
const BOUNDS: &str = "FLASHGRAIN_KILL_BOUNDS";

/// Kills without anybody looking in between, at most.
const KILLS_IN_A_ROW_MAX: u64 = 4;

/// How long a child works at most before it is killed.
const LIFE_MS_MAX: f64 = 700.0;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// What is known of a store from what its children have said.
#[derive(Clone, Default)]
struct Said {
    bounds: [Bounds; ACTORS],
    /// The copy that was begun last, with what was acknowledged then, and what was submitted when it was
    /// complete.
    copy: Option<Copied>,
    /// Whether the last child came to have the store open.
    opened: bool,
    /// What a child found that cannot be.
    wrong: Option<String>,
}

#[derive(Clone)]
struct Copied {
    number: u64,
    bounds: [Bounds; ACTORS],
    complete: bool,
}

impl Copied {
    fn may_contain(&mut self, now: &[Bounds; ACTORS]) {
        self.bounds.iter_mut().zip(now).for_each(|(at, now)| at.submitted = at.submitted.max(now.submitted));
    }
}

impl Said {
    /// Whether the line was the child's.
    fn hear(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, who, number] = words[..] else { return false };
        let (Ok(who), Ok(number)) = (who.parse::<usize>(), number.parse()) else { return false };
        match what {
            "@submits" => self.bounds[who].submitted = number,
            "@acknowledged" => self.bounds[who].acknowledged = number,
            "@found" => {
                self.opened = true;
                let bounds = &mut self.bounds[who];
                if number < bounds.acknowledged || bounds.submitted < number {
                    self.wrong = Some(format!("writer {who}: {bounds}, the child found {number}"));
                }
                *bounds = Bounds { acknowledged: number, submitted: number };
            }
            "@copies" => self.copy = Some(Copied { number, bounds: self.bounds, complete: false }),
            "@copied" => {
                let copy = self.copy.as_mut().unwrap();
                copy.complete = true;
                copy.may_contain(&self.bounds);
            }
            _ => return false,
        }
        true
    }

    /// A copy under way was made of a store that is no more: what the next child finds may be less.
    fn end_of_child(&mut self) {
        if let Some(copy) = self.copy.as_mut().filter(|copy| !copy.complete) {
            copy.may_contain(&self.bounds);
        }
    }
}

/// Lets a child work on the store until it is killed; what it has said by then goes to `said`. Its life
/// begins with its process, or with its first commit.
fn run_child_and_kill(path: &Path, said: &mut Said, life: Duration, from_start: bool) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_store_has_what_it_acknowledged", "--nocapture"])
        .env(CHILD, path)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    said.opened = false;
    let (sender, receiver) = mpsc::channel();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (ended_by_itself, began, other) = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut other = String::new();
            for line in lines.map_while(Result::ok) {
                if !said.hear(&line) {
                    other += &line;
                } else if said.opened {
                    let _nobody_waits_any_more = sender.send(());
                }
            }
            other
        });
        let began = from_start || receiver.recv_timeout(Duration::from_secs(60)).is_ok();
        let (_keep_open, never) = mpsc::channel::<()>();
        let _time_is_up = never.recv_timeout(life);
        let ended_by_itself = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        (ended_by_itself, began, reader.join().unwrap())
    });
    assert!(began && ended_by_itself.is_none(), "the child ended: {ended_by_itself:?} {other}");
}

/// Opens the copy that was made last, and removes all. One that is not complete cannot be opened, or is a
/// store all the same.
fn check_copy(path: &Path, copied: Option<Copied>) {
    if let Some(Copied { number, mut bounds, complete }) = copied {
        match Db::open(copy_path(path, number)) {
            Ok(db) => Oracle::default().accept(&db, &mut bounds).unwrap(),
            Err(error) => {
                assert!(!complete && matches!(error, Error::NotAStore { .. }), "copy {number}: {error}")
            }
        }
    }
    for number in copies(path) {
        std::fs::remove_dir_all(copy_path(path, number)).unwrap();
    }
}

/// Opens a store after a power cut and compares it: what `scripts/power-loss.sh` asks.
fn check(path: &Path) {
    let mut bounds = [Bounds::default(); ACTORS];
    let given = std::env::var(BOUNDS).unwrap();
    for (bounds, given) in bounds.iter_mut().zip(given.split(' ')) {
        let (acknowledged, submitted) = given.split_once(':').unwrap();
        *bounds =
            Bounds { acknowledged: acknowledged.parse().unwrap(), submitted: submitted.parse().unwrap() };
    }
    let mut oracle = Oracle::default();
    let db = open(path).unwrap();
    oracle.accept(&db, &mut bounds).unwrap();
    println!("@commits {}", oracle.commits());
}

#[test]
fn a_killed_store_has_what_it_acknowledged() {
    if let Some(path) = std::env::var_os(CHILD) {
        return work::work(Path::new(&path));
    }
    if let Some(path) = std::env::var_os(CHECK) {
        return check(Path::new(&path));
    }
    let kills = number("FLASHGRAIN_KILLS", 24);
    let seed = number("FLASHGRAIN_SEED", 1);
    println!("seed {seed}, {kills} kills");
    let mut random = Pcg64::seed_from_u64(seed);
    let folder = match std::env::var_os("FLASHGRAIN_KILL_DIR") {
        Some(directory) => tempfile::tempdir_in(PathBuf::from(directory)).unwrap(),
        None => tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
    };
    let path = folder.path().join("store");
    let device = std::env::var_os("FLASHGRAIN_KILL_DEVICE");
    if let Some(device) = &device {
        std::os::unix::fs::symlink(device, &path).unwrap();
        // A store that an earlier run has left there is not this run's.
        create(&path).unwrap().close().unwrap();
    }
    let mut oracle = Oracle::default();
    let mut said = Said::default();
    let (mut done, mut looks, mut while_opening) = (0, 0, 0);
    while done < kills {
        let in_a_row = random.random_range(1..=KILLS_IN_A_ROW_MAX).min(kills - done);
        for _ in 0..in_a_row {
            // As many short lives as long ones; the shortest end before the store is open.
            let life = Duration::from_secs_f64(LIFE_MS_MAX.powf(random.random()) / 1e3);
            run_child_and_kill(&path, &mut said, life, random.random_bool(0.5));
            said.end_of_child();
            while_opening += u64::from(!said.opened);
        }
        done += in_a_row;
        looks += 1;
        let db = open(&path).unwrap();
        let wrong = said.wrong.take().map_or(Ok(()), Err);
        if let Err(what) = wrong.and_then(|()| oracle.accept(&db, &mut said.bounds)) {
            panic!("after kill {done} of seed {seed}: {what}; the store is in {}", folder.keep().display());
        }
        check_copy(&path, said.copy.take());
        // Half of the rounds go on after a clean end, the others after yet another crash.
        if random.random_bool(0.5) {
            db.close().unwrap();
        }
    }
    let files = std::fs::read_dir(&path).into_iter().flatten();
    let bytes = files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>();
    assert_eq!(bytes > 0, device.is_none());
    println!(
        "{} commits survived {kills} kills, {while_opening} of them while the store was opened; looked {looks} times; {} MiB of files",
        oracle.commits(),
        bytes >> 20
    );
}
