//! Three ways to make the appends of many groups durable from async code, on one store: the numbers of
//! decision note 69. A group appends 128 bytes to a tree of its own, waits until they are durable, and
//! appends again.
//!
//! ```text
//! cargo run --release -p flashgrain_raft --example durable_appends -- FOLDER
//! ```

use std::sync::Arc;
use std::time::Duration;

use flashgrain::{Db, Durability, Error, Tree};
use flashgrain_device::clock;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

const APPENDS: u64 = 4000;
const ENTRY: [u8; 128] = [7; 128];

#[derive(Clone, Copy, Debug)]
enum Way {
    /// Each append is a durable commit on one of the runtime's blocking threads.
    BlockingThread,
    /// Each append is a durable commit in a task of the store.
    StoreTask,
    /// Appends are commits that do not wait, and one thread flushes for all of them.
    Flusher,
}

type Told = oneshot::Sender<()>;

fn append(db: &Db, tree: &Tree, index: u64, durability: Durability) -> Result<(), Error> {
    let mut batch = db.batch().durability(durability);
    batch.insert(tree, index.to_be_bytes(), ENTRY)?;
    batch.commit()
}

async fn group(
    db: Db,
    tree: Tree,
    way: Way,
    appends: u64,
    flusher: mpsc::UnboundedSender<Told>,
) -> anyhow::Result<()> {
    for index in 0..appends {
        let (db, tree) = (db.clone(), tree.clone());
        match way {
            Way::BlockingThread => {
                spawn_blocking(move || append(&db, &tree, index, Durability::Sync)).await??;
            }
            Way::StoreTask => {
                let spawner = db.clone();
                let task = spawner.spawn(move || append(&db, &tree, index, Durability::Sync));
                task.await.map_err(|_| anyhow::anyhow!("the task panicked"))??;
            }
            Way::Flusher => {
                spawn_blocking(move || append(&db, &tree, index, Durability::None)).await??;
                let (told, is_durable) = oneshot::channel();
                flusher.send(told)?;
                is_durable.await?;
            }
        }
    }
    Ok(())
}

fn flush(db: &Db, mut requests: mpsc::UnboundedReceiver<Told>) {
    while let Some(first) = requests.blocking_recv() {
        let mut waiting = vec![first];
        while let Ok(next) = requests.try_recv() {
            waiting.push(next);
        }
        if db.sync().is_err() {
            return;
        }
        for told in waiting {
            // A group that has failed needs no answer.
            let _ = told.send(());
        }
    }
}

async fn measure(folder: &std::path::Path, way: Way, groups: u64) -> anyhow::Result<()> {
    let db = Db::create(folder.join(format!("{way:?}{groups}")))?;
    let (flusher, requests) = mpsc::unbounded_channel();
    let flushed = db.clone();
    let thread = std::thread::spawn(move || flush(&flushed, requests));
    let trees = db.trees((0..groups).map(|group| format!("g{group}.log")))?;
    let (before, start) = (db.stats().log, clock::now());
    let appends = APPENDS / groups;
    let spawn = |tree| tokio::spawn(group(db.clone(), tree, way, appends, flusher.clone()));
    for task in trees.into_iter().map(spawn).collect::<Vec<_>>() {
        task.await??;
    }
    let (elapsed, after) = (Duration::from_nanos(clock::now().0 - start.0), db.stats().log);
    drop(flusher);
    thread.join().map_err(|_| anyhow::anyhow!("the flusher panicked"))?;
    println!(
        "{way:?}, {groups} groups: {} appends, {} flushes, {:.0} appends/s",
        after.records - before.records,
        after.syncs - before.syncs,
        (after.records - before.records) as f64 / elapsed.as_secs_f64(),
    );
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).ok_or_else(|| anyhow::anyhow!("name a folder"))?;
    let folder = Arc::new(tempfile::tempdir_in(folder)?);
    for groups in [1, 8, 64] {
        for way in [Way::BlockingThread, Way::StoreTask, Way::Flusher] {
            measure(folder.path(), way, groups).await?;
        }
    }
    Ok(())
}
