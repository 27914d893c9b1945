//! A store that was used and then lost its power: where many cases begin.

use std::sync::Arc;
use std::time::Duration;

use flashgrain::{CpuCosts, Simulated};
use flashgrain_ssdsim::{Image, SimDevice};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::compare::{Found, compare};
use super::failure::Failure;
use super::life::{begin, work_on};
use crate::media::{Tape, random_cut};
use crate::world::{Habits, Shape, Shared, drive, quietly, small};

/// See the module.
pub struct Base {
    /// Shape of the store.
    pub shape: Shape,
    /// Its drive.
    pub device: Arc<SimDevice>,
    /// Content of the drive after the crash.
    pub image: Image,
    /// History of the commits.
    pub shared: Shared,
}

impl Base {
    /// Opens the store after the crash. It returns the number of its commits: from now on, none of them may
    /// be missing.
    ///
    /// # Errors
    /// A promise that was broken.
    pub fn open(&self) -> Result<u64, String> {
        let store = small(&self.shape, Arc::clone(&self.device) as _);
        let opened = Simulated::open(store, CpuCosts::default());
        let mut simulated = opened.map_err(|error| format!("refused: {error}"))?;
        let (bounds, shared) = (self.shared.bounds(), self.shared.clone());
        let found = simulated.run(move |db| compare(db, &shared, bounds));
        simulated.abandon();
        match found {
            Found::Right(last) => Ok(last),
            found => Err(found.to_string()),
        }
    }

    /// Runs a store and lets it crash, so that there is something to recover.
    ///
    /// # Errors
    /// A misbehaviour of the store without any fault.
    pub fn make(seed: u64, habits: Habits) -> Result<Self, Failure> {
        let mut random = Pcg64::seed_from_u64(seed);
        let shape = Shape::draw(&mut random);
        let device = drive(shape.bytes(), seed);
        let shared = Shared::listen(&Tape::default());
        let work = || -> Result<(), String> {
            let store = small(&shape, Arc::clone(&device) as _);
            let mut simulated =
                Simulated::create(store, CpuCosts::default()).map_err(|error| error.to_string())?;
            simulated.set_schedule(random.random());
            if random.random() {
                work_on(&mut simulated, &shape, &shared, habits, seed)?;
            } else {
                // In the middle of it all, as a log at rest has no torn end.
                let _cut_short = begin(&mut simulated, &shape, &shared, habits, seed);
                simulated.run_for(Duration::from_micros(random.random_range(100..60_000)));
            }
            device.power_cut(&random_cut(&mut random));
            simulated.abandon();
            Ok(())
        };
        let made = quietly(work).and_then(|result| result);
        made.map_err(|what| Failure::new(seed, "while nothing went wrong", what))?;
        device.power_on();
        let image = device.image();
        // The state that the cut left is checked by the code that opens the store.
        Ok(Self { shape, device, image, shared })
    }
}
