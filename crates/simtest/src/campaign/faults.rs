//! Faults: a store meets them while it is opened and used; afterwards its content is checked.
//!
//! This campaign covers cases that [errors](super::Errors) cannot: all kinds of faults, also while a store is
//! opened and recovered, and lives after the one that has met them.

use std::sync::Arc;

use flashgrain::{CpuCosts, Simulated};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::base::Base;
use super::compare::{Found, compare};
use super::failure::Failure;
use super::kind::{Allowed, Kind};
use super::life::begin;
use super::outcomes::{is_typed, outcomes};
use super::run::Campaign;
use crate::media::random_cut;
use crate::world::{CASES, Counts, Habits, Shared, quietly, small};

/// One kind of fault.
pub struct Faults {
    /// Kind of fault.
    pub kind: Kind,
    /// Workload of the stores; drawn if not given.
    pub habits: Option<Habits>,
    /// Cases that begin with the same store.
    pub cases_per_seed: u64,
}

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x0066_6175_6c74;

/// Commands of a life in which a fault may strike.
const COMMANDS: u64 = 120;

impl Faults {
    /// The campaign for this kind.
    pub fn new(kind: Kind) -> Self {
        Self { kind, habits: None, cases_per_seed: 32 }
    }
}

impl Campaign for Faults {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn habits(&self, seed: u64) -> Habits {
        let drawn = || Habits::draw(&mut Pcg64::seed_from_u64(seed ^ STREAM));
        self.habits.unwrap_or_else(|| Habits { snapshot: 0.15, steps: 20, ..drawn() })
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self { habits: Some(habits), ..*self })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let habits = self.habits(seed);
        let mut base = Base::make(seed, habits)?;
        let fail = |case: String, what: String| Failure::new(seed, case, what);
        let before = base.open().map_err(|what| fail("before any fault".into(), what))?;
        if self.kind == Kind::FlipAtRest {
            // Recovery cannot tell a bit flip in the last commits of the log after a crash from a torn tail;
            // the flips therefore begin with the image after the next opening.
            base.image = base.device.image();
        }
        let mut counts = Counts::default();
        for number in 0..self.cases_per_seed {
            if !goes_on() {
                break;
            }
            let random = Pcg64::seed_from_u64(seed << 16 ^ number);
            let mut case = Case { base: &base, kind: self.kind, habits, random };
            counts.add(CASES, 1);
            let played = quietly(|| case.play(before, &mut counts)).and_then(|result| result);
            base.device.disarm_faults();
            played.map_err(|what| fail(format!("case {number} of {}", self.kind.name()), what))?;
        }
        Ok(counts)
    }
}

struct Case<'a> {
    base: &'a Base,
    kind: Kind,
    habits: Habits,
    random: Pcg64,
}

/// How a life ended.
struct Ended {
    /// Commits that the store had when it was opened, if it was.
    opened_with: Option<u64>,
}

impl Case<'_> {
    /// A life with the fault, one without, and a last look.
    fn play(&mut self, before: u64, counts: &mut Counts) -> Result<(), String> {
        let Self { base, kind, .. } = *self;
        let device = &base.device;
        device.restore(&base.image).map_err(|error| error.to_string())?;
        let faults = kind.draw(base.shape.bytes(), COMMANDS, &mut self.random);
        let ids: Vec<_> = faults.into_iter().map(|fault| device.inject(fault)).collect();
        let shared = base.shared.fork();
        shared.get().forget_after(before);
        let during = Allowed { damage: true, loss: kind.allowed().loss };
        let mut simulated = None;
        let first = self.live(&shared, during, &mut simulated, counts)?;
        self.end(simulated);
        let struck: u64 = ids.into_iter().map(|id| device.fired(id)).sum();
        counts.add("struck", u64::from(struck > 0 || kind == Kind::Kill));
        counts.add("refused to open during the fault", u64::from(first.opened_with.is_none()));
        let mut simulated = None;
        let second = self.live(&shared, kind.allowed(), &mut simulated, counts)?;
        counts.add("found damaged", u64::from(second.opened_with.is_none()));
        self.end(simulated);
        if second.opened_with.is_some() && self.random.random_bool(0.3) {
            self.live(&shared, kind.allowed(), &mut None, counts)?;
        }
        Ok(())
    }

    /// Opens the store, compares, and works on it; it is in `simulated` then.
    fn live(
        &mut self,
        shared: &Shared,
        allowed: Allowed,
        simulated: &mut Option<Simulated>,
        counts: &mut Counts,
    ) -> Result<Ended, String> {
        let Base { shape, device, .. } = self.base;
        let store = match Simulated::open(small(shape, Arc::clone(device) as _), CpuCosts::default()) {
            Ok(store) => simulated.insert(store),
            Err(error) if allowed.damage && is_typed(&error) => return Ok(Ended { opened_with: None }),
            Err(error) => return Err(format!("refused: {error}")),
        };
        let (bounds, looked) = (shared.bounds(), shared.clone());
        let found = store.run(move |db| compare(db, &looked, bounds));
        let last = match found {
            Found::Right(last) => last,
            Found::Unreadable(last, error) if allowed.damage && is_typed(&error) => {
                counts.add("damage was read", 1);
                last
            }
            Found::Lost(last) if allowed.loss => {
                counts.add("lost by the drive", 1);
                last
            }
            found => return Err(found.to_string()),
        };
        shared.get().forget_after(last);
        store.set_schedule(self.random.random());
        self.work(store, shared, allowed)?;
        Ok(Ended { opened_with: Some(last) })
    }

    fn work(&mut self, store: &mut Simulated, shared: &Shared, allowed: Allowed) -> Result<(), String> {
        let seed = self.random.random();
        let habits = Habits { tasks: self.habits.tasks.min(3), steps: 6, backup: 0.0, ..self.habits };
        let tasks = begin(store, &self.base.shape, shared, habits, seed);
        store.run_until_idle();
        outcomes(tasks, |error| allowed.damage && is_typed(error)).map(drop)
    }

    /// The process ends, and perhaps the power fails. Faults are over.
    fn end(&mut self, simulated: Option<Simulated>) {
        let device = &self.base.device;
        if self.kind.ends_with_power_cut(&mut self.random) {
            device.power_cut(&random_cut(&mut self.random));
        }
        match simulated {
            // Closing is work, too, and may fail.
            Some(simulated) if self.random.random_bool(0.3) => drop(simulated),
            Some(simulated) => simulated.abandon(),
            None => {}
        }
        device.disarm_faults();
        device.power_on();
    }
}
