//! Requests and queues that fail below stores with threads of their own.

use std::sync::Arc;

use flashgrain::testing::Small;
use flashgrain::{Builder, CpuCosts, Db, Error, ErrorKind, Simulated};
use flashgrain_simtest::media::{Disk, FailPlan, Way};

const SEGMENTS: u64 = 24;

/// Records of a life.
const RECORDS: u32 = 40;

/// One of so many requests fails, so that the tests are short.
const STRIDE: usize = 13;

/// A store's drives.
struct Drives {
    data: Disk,
    log: Option<Disk>,
}

impl Drives {
    fn new(has_own_log: bool) -> Self {
        let blank = || Disk::new(vec![0; Small::default().bytes(SEGMENTS) as usize]);
        Self { data: blank(), log: has_own_log.then(blank) }
    }

    fn store(&self, plan: &Arc<FailPlan>) -> Builder {
        let store = Db::builder().device(Arc::new(self.data.failing(plan))).small(&Small::default());
        match &self.log {
            Some(log) => store.log_device(Arc::new(log.failing(plan))),
            None => store,
        }
    }
}

fn value(key: u32) -> Vec<u8> {
    vec![key as u8; 2000]
}

/// Uses a store as an ordinary thread does: with requests of its own, and waiting for those of the workers.
/// It counts the commits that are acknowledged.
fn live(drives: &Drives, plan: &Arc<FailPlan>, acknowledged: &mut u32) -> Result<(), Error> {
    let db = drives.store(plan).create()?;
    let tree = db.tree("fruit")?;
    for key in 0..RECORDS {
        match key % 2 {
            0 => tree.insert(key.to_be_bytes(), value(key))?,
            _ => db.transaction(|transaction| transaction.insert(&tree, key.to_be_bytes(), value(key)))?,
        }
        *acknowledged += 1;
    }
    db.checkpoint()?;
    db.check()?;
    db.close()?;
    let db = drives.store(plan).open_or_create()?;
    for key in 0..RECORDS {
        assert_eq!(db.tree("fruit")?.get(key.to_be_bytes())?.as_deref(), Some(&value(key)[..]));
    }
    db.close()
}

/// The requests of a life to which nothing happens.
fn requests(has_own_log: bool) -> u64 {
    let plan = FailPlan::none();
    let lived = live(&Drives::new(has_own_log), &plan, &mut 0);
    lived.unwrap_or_else(|error| panic!("nothing failed: {error}"));
    assert!(plan.asked() > 100, "{}", plan.asked());
    plan.asked()
}

/// The request is still under way then, and uses the memory of the thread that made it.
#[test]
fn regression_a_thread_waits_for_its_request_although_its_queue_failed_for_a_moment() {
    for has_own_log in [false, true] {
        for (way, first) in [(Way::Queue, 1), (Way::Sleep, 4)] {
            for nth in (first..=requests(has_own_log)).step_by(STRIDE) {
                let lived = live(&Drives::new(has_own_log), &FailPlan::new(nth, way), &mut 0);
                lived.unwrap_or_else(|error| panic!("request {nth} {}: {error}", way.what()));
            }
        }
    }
}

#[test]
fn whatever_request_fails_is_reported_and_nothing_acknowledged_is_lost() {
    for has_own_log in [false, true] {
        for (way, first) in [(Way::Once, 1), (Way::ForEver, 5), (Way::Refused, 9)] {
            for nth in (first..=requests(has_own_log)).step_by(STRIDE) {
                let (drives, mut acknowledged) = (Drives::new(has_own_log), 0);
                let what = format!("request {nth} {}, log {has_own_log}", way.what());
                if let Err(error) = live(&drives, &FailPlan::new(nth, way), &mut acknowledged) {
                    assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned), "{what}: {error}");
                }
                let db = match drives.store(&FailPlan::none()).open() {
                    Err(error) if acknowledged == 0 && error.kind() == ErrorKind::NotFound => continue,
                    opened => opened.unwrap_or_else(|error| panic!("{what}: {error}")),
                };
                for key in 0..acknowledged {
                    let read = db.tree("fruit").and_then(|tree| tree.get(key.to_be_bytes()));
                    let read = read.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_eq!(read.as_deref(), Some(&value(key)[..]), "{what}, key {key}");
                }
            }
        }
    }
}

/// First the worker's, then that of the thread which opens.
#[test]
fn without_channels_a_store_is_refused_and_nothing_is_lost() {
    let drives = Drives::new(false);
    live(&drives, &FailPlan::none(), &mut 0).unwrap_or_else(|error| panic!("{error}"));
    for channel in 1..=2 {
        let plan = FailPlan::new(channel, Way::ForEver);
        let refused = drives.store(&plan).open().err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::Io), "channel {channel}");
    }
    let db = drives.store(&FailPlan::none()).open().unwrap_or_else(|error| panic!("{error}"));
    let read = db.tree("fruit").and_then(|tree| tree.get(7u32.to_be_bytes()));
    assert_eq!(read.unwrap_or_else(|error| panic!("{error}")).as_deref(), Some(&value(7)[..]));
}

/// Each request of making a store that grows: the drive cannot be marked, or made as large as the store is at
/// first.
#[test]
fn a_store_that_could_not_be_made_can_be_made_later() {
    let segments = |count| Disk::new(vec![0; Small::default().bytes(count) as usize]);
    for nth in 1.. {
        let (disk, plan) =
            (segments(SEGMENTS).of_bytes(Small::default().bytes(1)), FailPlan::new(nth, Way::Once));
        let store = |plan| {
            let drive = Arc::new(disk.failing(plan));
            Db::builder().device(drive).small(&Small::default()).growable(true)
        };
        let made = Simulated::create(store(&plan), CpuCosts::default()).map(drop);
        if plan.is_harmless() {
            made.unwrap_or_else(|error| panic!("nothing failed: {error}"));
            assert!(nth > 20, "{nth}");
            break;
        }
        if let Err(error) = made {
            assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned), "request {nth}: {error}");
        }
        let made = Simulated::create(store(&FailPlan::none()), CpuCosts::default());
        made.map(drop).unwrap_or_else(|error| panic!("after request {nth} had failed: {error}"));
    }
}

/// The first requests to the drive of a copy, made by the threads of the copy: its source goes on, and can be
/// copied later.
#[test]
fn a_copy_that_could_not_be_made_can_be_made_later() {
    let source = Drives::new(false);
    let db = source.store(&FailPlan::none()).create().unwrap_or_else(|error| panic!("{error}"));
    let tree = db.tree("fruit").unwrap_or_else(|error| panic!("{error}"));
    tree.insert("apple", "red").unwrap_or_else(|error| panic!("{error}"));
    for nth in 1..6 {
        let (copy, plan) = (Drives::new(false), FailPlan::new(nth, Way::Once));
        if let Err(error) = db.backup(copy.store(&plan)) {
            assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned), "request {nth}: {error}");
        }
        db.backup(copy.store(&FailPlan::none()))
            .unwrap_or_else(|error| panic!("after request {nth}: {error}"));
        let copied = copy.store(&FailPlan::none()).open().unwrap_or_else(|error| panic!("{error}"));
        let value = copied.tree("fruit").and_then(|tree| tree.get("apple"));
        assert_eq!(value.unwrap_or_else(|error| panic!("{error}")).as_deref(), Some(&b"red"[..]));
    }
}

/// A simulated store whose queue fails for a moment at its 60th request.
fn simulate(retries: u32) {
    let (drives, plan) = (Drives::new(false), FailPlan::new(60, Way::Queue));
    let store = drives.store(&plan).step_retries(retries);
    let simulated = Simulated::create(store, CpuCosts::default());
    let mut simulated = simulated.unwrap_or_else(|error| panic!("{error}"));
    let lived = simulated.run(|db| {
        let tree = db.tree("fruit")?;
        (0..100u32).try_for_each(|key| tree.insert(key.to_be_bytes(), value(key)))
    });
    lived.unwrap_or_else(|error| panic!("{error}"));
    assert!(plan.asked() > 60);
}

#[test]
#[should_panic(expected = "step a worker")]
fn a_simulated_worker_whose_queue_fails_panics() {
    simulate(0);
}

#[test]
fn a_simulated_worker_whose_queue_fails_steps_again_where_it_may() {
    simulate(1);
}
