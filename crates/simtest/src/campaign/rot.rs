//! Bit rot: every bit of a store of one mebibyte, superblocks, labels, log and page table included.

use std::sync::Arc;

use flashgrain::{CpuCosts, Simulated};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::compare::{Found, compare};
use super::counts::{CASES, Counts};
use super::failure::{Failure, quietly};
use super::faults::is_typed;
use super::life::work_on;
use super::run::Campaign;
use crate::media::{Disk, SECTOR_BYTES, Tape};
use crate::world::{Habits, Shape, Shared, small};

/// See the module. A seed is a sector, and a case one of its bits. Sectors are counted through one store after the other: every second one was closed, the others were left as a kill leaves them when all is
/// durable, so that they are recovered from their logs.
pub struct Rot {
    /// What stores are used for.
    pub habits: Habits,
    /// One of so many bits flips, the first sector's first one and so on.
    pub every: u64,
}

/// Bytes of each store.
const STORE_BYTES: u64 = 1 << 20;

/// Sectors of each.
const SECTORS: u64 = STORE_BYTES / SECTOR_BYTES as u64;

impl Default for Rot {
    fn default() -> Self {
        let usual = Habits { backup: 0.0, ..Habits::default() };
        Self { habits: usual, every: 1 }
    }
}

impl Campaign for Rot {
    fn name(&self) -> &'static str {
        "rot"
    }

    fn habits(&self, _: u64) -> Habits {
        self.habits
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self { habits, every: self.every })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let (store, sector) = (seed / SECTORS, seed % SECTORS);
        let is_closed = store.is_multiple_of(2);
        let made = quietly(|| make(store, self.habits, is_closed)).and_then(|result| result);
        let (shape, disk, shared) =
            made.map_err(|what| Failure::new(seed, "while nothing went wrong", what))?;
        let mut counts = Counts::default();
        let bits = SECTOR_BYTES as u64 * 8;
        let first = (sector * bits).next_multiple_of(self.every);
        for bit in (first..(sector + 1) * bits).step_by(self.every as usize) {
            if !goes_on() {
                break;
            }
            disk.back();
            disk.flip(bit);
            counts.add(CASES, 1);
            let looked = quietly(|| look(&shape, &disk, &shared, &mut counts)).and_then(|result| result);
            looked.map_err(|what| {
                let place = shape.place(bit / 8);
                Failure::new(seed, format!("bit {} of byte {} ({place})", bit % 8, bit / 8), what)
            })?;
        }
        Ok(counts)
    }
}

/// A store that was used.
fn make(seed: u64, habits: Habits, is_closed: bool) -> Result<(Shape, Disk, Shared), String> {
    let shape = Shape::of_bytes(STORE_BYTES, &mut Pcg64::seed_from_u64(seed));
    let disk = Disk::new(vec![0; STORE_BYTES as usize]);
    let shared = Shared::listen(&Tape::default());
    let store = small(&shape, Arc::new(disk.clone()));
    let mut store = Simulated::create(store, CpuCosts::default()).map_err(|error| error.to_string())?;
    work_on(&mut store, &shape, &shared, habits, seed)?;
    let synced = shared.clone();
    store.run(move |db| synced.durable(|| db.sync())).map_err(|error| error.to_string())?;
    store.run_until_idle();
    if is_closed {
        drop(store);
    } else {
        store.abandon();
    }
    disk.mark();
    Ok((shape, disk, shared))
}

fn look(shape: &Shape, disk: &Disk, shared: &Shared, counts: &mut Counts) -> Result<(), String> {
    let mut store = match Simulated::open(small(shape, Arc::new(disk.clone())), CpuCosts::default()) {
        Ok(store) => store,
        Err(error) if is_typed(&error) => {
            counts.add("found when opened", 1);
            return Ok(());
        }
        Err(error) => return Err(format!("refused: {error}")),
    };
    let (bounds, looked) = (shared.bounds(), shared.clone());
    let found = store.run(move |db| compare(db, &looked, bounds));
    store.abandon();
    match found {
        Found::Right(_) => counts.add("harmless", 1),
        Found::Unreadable(_, error) if is_typed(&error) => counts.add("found when read", 1),
        found => return Err(found.to_string()),
    }
    Ok(())
}
