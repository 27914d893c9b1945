//! The n-th request fails, once or from then on, for every n of a life: opening, recovery, commits, checkpoints, cleaning, backups, closing.

use std::sync::Arc;

use flashgrain::{CpuCosts, Simulated};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::base::Base;
use super::compare::{Found, compare};
use super::counts::{CASES, Counts};
use super::failure::{Failure, quietly};
use super::faults::{is_typed, outcomes};
use super::run::Campaign;
use crate::media::{Disk, FailPlan};
use crate::world::{Habits, Shape, Shared, Work, small};

/// See the module. A case is a request and a way to fail.
#[derive(Default)]
pub struct Nth {
    /// What stores are used for; drawn if not given.
    pub habits: Option<Habits>,
}

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x006e_7468;

impl Campaign for Nth {
    fn name(&self) -> &'static str {
        "nth"
    }

    fn habits(&self, seed: u64) -> Habits {
        let drawn = || Habits::draw(&mut Pcg64::seed_from_u64(seed ^ STREAM));
        self.habits.unwrap_or_else(|| Habits {
            tasks: 3,
            steps: 10,
            checkpoint: 0.1,
            backup: 0.05,
            ..drawn()
        })
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self { habits: Some(habits) })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let habits = self.habits(seed);
        let base = Base::make(seed, Habits { steps: habits.steps * 2, backup: 0.0, ..habits })?;
        let before = base.open().map_err(|what| Failure::new(seed, "before any fault", what))?;
        let mut bytes = vec![0; base.shape.bytes() as usize];
        base.image.read(0, &mut bytes);
        let disk = Disk::new(bytes);
        let mut counts = Counts::default();
        let mut life = Life { base: &base, before, disk, habits, seed, counts: &mut counts };
        let plan = FailPlan::none();
        let played = life.play(&plan);
        played.map_err(|what| Failure::new(seed, "while nothing failed", what))?;
        for nth in 1..=plan.asked() {
            for sticky in [false, true] {
                life.disk.back();
                life.counts.add(CASES, 1);
                let played = life.play(&FailPlan::new(nth, sticky));
                played.map_err(|what| {
                    let later = if sticky { " and all later ones" } else { "" };
                    Failure::new(seed, format!("request {nth}{later} failed"), what)
                })?;
            }
            if !goes_on() {
                break;
            }
        }
        Ok(counts)
    }
}

struct Life<'a> {
    base: &'a Base,
    before: u64,
    disk: Disk,
    habits: Habits,
    seed: u64,
    counts: &'a mut Counts,
}

impl Life<'_> {
    /// A life with failures, and what is there afterwards.
    fn play(&mut self, plan: &Arc<FailPlan>) -> Result<(), String> {
        let shared = self.base.shared.fork();
        shared.get().forget_after(self.before);
        let live = quietly(|| self.live(plan, &shared)).and_then(|result| result);
        live?;
        quietly(|| self.look(&shared)).and_then(|result| result)
    }

    fn live(&mut self, plan: &Arc<FailPlan>, shared: &Shared) -> Result<(), String> {
        let shape = Shape { fails: Some(Arc::clone(plan)), ..self.base.shape.clone() };
        let device = Arc::new(self.disk.failing(plan));
        let mut store = match Simulated::open(small(&shape, device), CpuCosts::default()) {
            Ok(store) => store,
            Err(error) if is_typed(&error) => {
                self.counts.add("refused to open", 1);
                return Ok(());
            }
            Err(error) => return Err(format!("refused: {error}")),
        };
        store.set_schedule(self.seed);
        let tasks: Vec<_> = (0..self.habits.tasks)
            .map(|task| {
                let (shape, shared, habits, seed) = (shape.clone(), shared.clone(), self.habits, self.seed);
                store.spawn(move |db| Work::new(db, &shape, &shared, habits, seed, task).run())
            })
            .collect();
        store.run_until_idle();
        let errors = outcomes(tasks, true)?;
        self.counts.add("tasks that ended with an error", errors);
        // It is closed, which may fail, too.
        drop(store);
        Ok(())
    }

    fn look(&mut self, shared: &Shared) -> Result<(), String> {
        let device = Arc::new(self.disk.clone());
        let opened = Simulated::open(small(&self.base.shape, device), CpuCosts::default());
        let mut store = opened.map_err(|error| format!("refused afterwards: {error}"))?;
        let (bounds, looked) = (shared.bounds(), shared.clone());
        let found = store.run(move |db| compare(db, &looked, bounds));
        store.abandon();
        match found {
            Found::Right(_) => Ok(()),
            found => Err(format!("afterwards, {found}")),
        }
    }
}
