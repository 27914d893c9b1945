//! A store that nobody uses does nothing: its threads sleep without waking up. In a process of its own, as it
//! counts what all threads do.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc;
use std::time::Duration;

use flashgrain::{Db, Durability};

/// How long nothing may happen.
const WINDOW: Duration = Duration::from_secs(2);

/// Windows until then at most: checkpoints and the cleaner end what they began.
const WINDOWS_MAX: usize = 15;

fn pass(span: Duration) {
    let (_keep_open, never) = mpsc::channel::<()>();
    let _time_is_up = never.recv_timeout(span);
}

/// How often each thread of the store has given up its processor, by itself or not, and the process' ticks.
fn activity() -> (BTreeMap<String, u64>, u64) {
    let mut switches = BTreeMap::new();
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let Ok(status) = fs::read_to_string(task.unwrap().path().join("status")) else { continue };
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0").trim();
        if field("Name:").starts_with("flashgrain") {
            let count = |name: &str| field(name).parse::<u64>().unwrap();
            let sum = count("voluntary_ctxt_switches:") + count("nonvoluntary_ctxt_switches:");
            switches.insert(field("Name:").to_owned() + field("Pid:"), sum);
        }
    }
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    (switches, fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap())
}

#[test]
fn a_store_that_nobody_uses_does_nothing() {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let on_disk = Db::builder().path(folder.path()).cache_bytes(4 << 20).workers(2).create().unwrap();
    let in_memory = Db::in_memory(4 << 20).unwrap();
    for db in [&on_disk, &in_memory] {
        let tree = db.tree("t").unwrap();
        let _snapshot = db.snapshot().unwrap();
        for number in 0..20_000_u32 {
            let durability = [Durability::None, Durability::Buffered][usize::from(number % 50 == 0)];
            let mut batch = db.batch().durability(durability);
            batch.insert(&tree, (number % 7000).to_be_bytes(), [7; 300]).unwrap();
            batch.remove(&tree, (number / 2).to_be_bytes()).unwrap();
            batch.commit().unwrap();
        }
        let task = db.spawn(move || tree.iter().unwrap().count());
        assert!(task.join().unwrap() > 0);
    }
    for window in 1.. {
        let before = activity();
        assert!(before.0.len() >= 3, "{before:?}");
        pass(WINDOW);
        let after = activity();
        if before.0 == after.0 && after.1 - before.1 <= 1 {
            return;
        }
        assert!(window < WINDOWS_MAX, "still busy after {window} windows: {before:?} {after:?}");
    }
}
