//! Queues that fail as a whole, below stores with threads of their own.

use std::sync::Arc;

use flashgrain::testing::Small;
use flashgrain::{Builder, Db, ErrorKind};
use flashgrain_simtest::media::{Disk, FailPlan, Way};

const SEGMENTS: u64 = 24;

fn store(disk: &Disk, plan: &Arc<FailPlan>) -> Builder {
    Db::builder().device(Arc::new(disk.failing(plan))).small(&Small::default())
}

fn disk() -> Disk {
    Disk::new(vec![0; Small::default().bytes(SEGMENTS) as usize])
}

/// What an ordinary thread does with a store: requests of its own, and waiting for those of the workers.
fn live(disk: &Disk, plan: &Arc<FailPlan>) -> Result<(), flashgrain::Error> {
    let db = store(disk, plan).create()?;
    let tree = db.tree("fruit")?;
    for key in 0..40u32 {
        tree.insert(key.to_be_bytes(), vec![key as u8; 2000])?;
    }
    db.checkpoint()?;
    db.check()?;
    db.close()?;
    let db = store(disk, plan).open()?;
    for key in 0..40u32 {
        assert_eq!(db.tree("fruit")?.get(key.to_be_bytes())?.as_deref(), Some(&[key as u8; 2000][..]));
    }
    db.close()
}

/// What was asked for is still under way then, with memory of whoever asked.
#[test]
fn regression_a_thread_waits_for_its_request_although_its_queue_failed_for_a_moment() {
    let plan = FailPlan::none();
    live(&disk(), &plan).unwrap_or_else(|error| panic!("nothing failed: {error}"));
    let asked = plan.asked();
    assert!(asked > 100, "{asked}");
    for nth in (1..=asked).step_by(5) {
        let plan = FailPlan::new(nth, Way::Queue);
        live(&disk(), &plan).unwrap_or_else(|error| panic!("request {nth}: {error}"));
    }
}

/// First the worker's, then that of the thread which opens.
#[test]
fn without_channels_a_store_is_refused_and_nothing_is_lost() {
    let disk = disk();
    live(&disk, &FailPlan::none()).unwrap_or_else(|error| panic!("{error}"));
    for channel in 1..=2 {
        let plan = FailPlan::new(channel, Way::ForEver);
        let refused = store(&disk, &plan).open().err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::Io), "channel {channel}");
    }
    let db = store(&disk, &FailPlan::none()).open().unwrap_or_else(|error| panic!("{error}"));
    let read = db.tree("fruit").and_then(|tree| tree.get(7u32.to_be_bytes()));
    assert_eq!(read.unwrap_or_else(|error| panic!("{error}")).as_deref(), Some(&[7; 2000][..]));
}
