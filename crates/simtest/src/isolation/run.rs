//! Histories of real stores.

use std::sync::Arc;
use std::time::Duration;

use flashgrain::testing::Small;
use flashgrain::{Builder, CpuCosts, Db, Error, Simulated};
use flashgrain_device::MemoryDevice;
use flashgrain_ssdsim::fault::{PowerCut, Survivors};
use flashgrain_ssdsim::{SimConfig, SimDevice};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::history::History;
use super::record::{Recorder, Shape, Trees};
use crate::world::segment_bytes;

/// Workers of simulated stores.
const WORKERS: usize = 3;

fn drive(seed: u64) -> anyhow::Result<Arc<SimDevice>> {
    let config = SimConfig::from_toml(include_str!("drive.toml"), "drive.toml")?;
    Ok(Arc::new(SimDevice::new(&config, "sim:isolation", seed)?))
}

/// A store of few bytes, so that pages come and go.
fn small(device: &Arc<SimDevice>) -> Builder {
    let device = Arc::clone(device);
    let small = Small { segment_bytes: segment_bytes(), ..Small::default() };
    Db::builder().device(device).small(&small).workers(WORKERS).tasks_per_worker(64)
}

/// Sessions as tasks of several workers in virtual time, in an order that is drawn from `seed`. The same
/// seed, the same history.
///
/// # Errors
/// Whatever the store refuses, but conflicts.
pub fn simulated(seed: u64, shape: Shape) -> anyhow::Result<History> {
    let device = drive(seed)?;
    let mut store = Simulated::create(small(&device), CpuCosts::default())?;
    let recorder = Recorder::new(shape);
    let trees = store.run(|db| Trees::of(db).and_then(|trees| trees.fill(db).map(|()| trees)))?;
    store.set_schedule(seed);
    let sessions: Vec<_> = (0..shape.sessions)
        .map(|_| {
            let (recorder, trees) = (recorder.clone(), trees.clone());
            store.spawn(move |db| recorder.session(db, &trees, seed))
        })
        .collect();
    store.run_until_idle();
    for session in sessions {
        anyhow::ensure!(session.is_finished(), "a session waits for ever");
        session.join().map_err(|_| anyhow::anyhow!("a session has panicked"))??;
    }
    let last = recorder.clone();
    store.run(move |db| last.read_all(db, &trees))?;
    Ok(recorder.history())
}

/// The same through `crashes` power cuts; the store is opened again after each. All commits of the history
/// are durable when they return.
///
/// # Errors
/// Whatever the store refuses, opening included.
pub fn crashing(seed: u64, shape: Shape, crashes: usize) -> anyhow::Result<History> {
    let shape = Shape { all_durable: true, ..shape };
    let mut random = Pcg64::seed_from_u64(seed);
    let mut device = drive(seed)?;
    let recorder = Recorder::new(shape);
    let mut store = Simulated::create(small(&device), CpuCosts::default())?;
    store.run(|db| Trees::of(db)?.fill(db))?;
    for crash in 0..=crashes as u64 {
        let trees = store.run(Trees::of)?;
        store.set_schedule(seed << 8 | crash);
        let first = recorder.clone();
        let own = trees.clone();
        store.run(move |db| first.read_all(db, &own))?;
        for _ in 0..shape.sessions {
            let (recorder, trees) = (recorder.clone(), trees.clone());
            // The result of a session that is cut off is not known.
            drop(store.spawn(move |db| recorder.session(db, &trees, seed)));
        }
        if crash < crashes as u64 {
            store.run_for(Duration::from_micros(random.random_range(1..60_000)));
            let survivors =
                [Survivors::None, Survivors::Random, Survivors::All][random.random_range(0..3)].clone();
            let image = device.image().after(&PowerCut { survivors, seed, ..PowerCut::default() });
            store.abandon();
            device = drive(seed)?;
            device.restore(&image)?;
            store = Simulated::open(small(&device), CpuCosts::default())?;
        }
    }
    store.run_until_idle();
    let last = recorder.clone();
    store.run(move |db| Trees::of(db).and_then(|trees| last.read_all(db, &trees)))?;
    Ok(recorder.history())
}

/// Sessions half as tasks of workers and half on ordinary threads, all at the same time. Never the same.
///
/// # Errors
/// Whatever the store refuses, but conflicts.
pub fn threads(seed: u64, shape: Shape) -> anyhow::Result<History> {
    let device = Arc::new(MemoryDevice::new(256 << 20, 0)?);
    let db = Db::builder().device(device).workers(2).cache_bytes(1 << 20).create()?;
    let recorder = Recorder::new(shape);
    let trees = Trees::of(&db)?;
    trees.fill(&db)?;
    let results: Vec<Result<(), Error>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..shape.sessions / 2).map(|_| scope.spawn(|| recorder.session(&db, &trees, seed))).collect();
        let tasks: Vec<_> = (shape.sessions / 2..shape.sessions)
            .map(|_| {
                let (own, recorder, trees) = (db.clone(), recorder.clone(), trees.clone());
                db.spawn(move || recorder.session(&own, &trees, seed))
            })
            .collect();
        let threads = threads.into_iter().map(|thread| thread.join());
        let tasks = tasks.into_iter().map(|task| task.join());
        threads.chain(tasks).map(|result| result.unwrap_or(Err(Error::Closed))).collect()
    });
    results.into_iter().collect::<Result<Vec<()>, _>>()?;
    recorder.read_all(&db, &trees)?;
    drop(trees);
    db.close()?;
    Ok(recorder.history())
}
