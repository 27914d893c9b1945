//! Bit rot: every bit of a store of one mebibyte, superblocks, labels, log and page table included.
//!
//! This campaign covers cases that [decay](super::Decay) leaves out: it tries every bit.

use std::sync::{Arc, Mutex, PoisonError};

use flashgrain::{CpuCosts, Simulated};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::compare::{Found, compare};
use super::failure::Failure;
use super::life::work_on;
use super::outcomes::is_typed;
use super::run::Campaign;
use crate::media::{Disk, SECTOR_BYTES, Tape};
use crate::world::{CASES, Counts, Habits, Shape, Shared, quietly, small};

/// See the module. A seed is a sector, and a case one of its bits. Sectors are counted through one store
/// after the other: every second one was closed, the others were left as a kill leaves them when all is
/// durable, so that they are recovered from their logs. Looking at a store takes the same steps each time, so
/// that bits of sectors that are not read then need no look of their own.
pub struct Rot {
    /// Workload of the stores.
    pub habits: Habits,
    /// One in this number of bits flips, the first sector's first one and so on.
    pub every: u64,
    /// Stores that were made and that no thread is testing.
    idle: Mutex<Vec<Made>>,
}

/// A store that was used.
struct Made {
    number: u64,
    shape: Shape,
    disk: Disk,
    shared: Shared,
    /// Sectors that are read when it is looked at.
    is_read: Vec<bool>,
}

/// Bytes of each store.
const STORE_BYTES: u64 = 1 << 20;

/// Sectors of each.
const SECTORS: u64 = STORE_BYTES / SECTOR_BYTES as u64;

impl Default for Rot {
    fn default() -> Self {
        let usual = Habits { backup: 0.0, ..Habits::default() };
        Self { habits: usual, every: 1, idle: Mutex::default() }
    }
}

impl Rot {
    /// Flips one in this number of bits.
    pub fn every(every: u64) -> Self {
        Self { every, ..Self::default() }
    }

    /// Takes a store that no other thread is testing.
    fn take(&self, number: u64) -> Result<Made, String> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let place = idle.iter().position(|made| made.number == number);
        if let Some(place) = place {
            return Ok(idle.swap_remove(place));
        }
        // Seeds follow each other: the ones before are no more needed.
        idle.retain(|made| made.number + 1 >= number);
        drop(idle);
        quietly(|| make(number, self.habits)).and_then(|result| result)
    }

    fn give_back(&self, made: Made) {
        made.disk.back();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(made);
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
        Box::new(Self { habits, ..Self::every(self.every) })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let (number, sector) = (seed / SECTORS, seed % SECTORS);
        let made = self.take(number).map_err(|what| Failure::new(seed, "while nothing went wrong", what))?;
        let bits = SECTOR_BYTES as u64 * 8;
        let first = (sector * bits).next_multiple_of(self.every);
        let mut counts = Counts::default();
        for bit in (first..(sector + 1) * bits).step_by(self.every as usize) {
            if !goes_on() {
                break;
            }
            counts.add(CASES, 1);
            if !made.is_read[sector as usize] {
                counts.add("never read", 1);
                continue;
            }
            made.disk.back();
            made.disk.flip(bit);
            made.look(&mut counts).map_err(|what| {
                let place = made.shape.place(bit / 8);
                Failure::new(seed, format!("bit {} of byte {} ({place})", bit % 8, bit / 8), what)
            })?;
        }
        self.give_back(made);
        Ok(counts)
    }
}

fn make(number: u64, habits: Habits) -> Result<Made, String> {
    let (seed, is_closed) = (number, number.is_multiple_of(2));
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
    disk.take_reads();
    let mut made = Made { number, shape, disk, shared, is_read: Vec::new() };
    made.look(&mut Counts::default())?;
    made.is_read = made.disk.take_reads();
    made.disk.back();
    Ok(made)
}

impl Made {
    /// Opens it and reads everything.
    fn look(&self, counts: &mut Counts) -> Result<(), String> {
        quietly(|| look(self, counts)).and_then(|result| result)
    }
}

fn look(made: &Made, counts: &mut Counts) -> Result<(), String> {
    let Made { shape, disk, shared, .. } = made;
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
