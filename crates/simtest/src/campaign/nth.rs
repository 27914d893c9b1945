//! The n-th request fails, for every n of a life: making a store or recovering one, commits, checkpoints,
//! cleaning, growing, backups, closing, and opening again.

use std::sync::Arc;

use flashgrain::testing::Troubled;
use flashgrain::{Builder, CpuCosts, Error, ErrorKind, Simulated};
use flashgrain_device::Device;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::base::Base;
use super::compare::{Found, compare};
use super::failure::Failure;
use super::life::begin;
use super::outcomes::outcomes;
use super::run::Campaign;
use crate::media::{Disk, FailPlan, Tape, Way};
use crate::world::{CASES, Counts, Habits, Shape, Shared, Work, quietly, small};

/// See the module. A case is a request and a way to fail.
pub struct Nth {
    /// Workload of the stores; drawn if not given.
    pub habits: Option<Habits>,
    /// One of this number of requests fails.
    pub every: u64,
}

impl Default for Nth {
    fn default() -> Self {
        Self { habits: None, every: 1 }
    }
}

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x006e_7468;

/// Steps of a task before a crash: there must be something that is not in memory afterwards.
const BASE_STEPS: u32 = 60;

/// Steps of a task when a store was opened again.
const LATER_STEPS: u32 = 2;

impl Campaign for Nth {
    fn name(&self) -> &'static str {
        "nth"
    }

    fn habits(&self, seed: u64) -> Habits {
        let drawn = || Habits::draw(&mut Pcg64::seed_from_u64(seed ^ STREAM));
        self.habits.unwrap_or_else(|| Habits {
            tasks: 3,
            steps: 10,
            checkpoint: 0.08,
            snapshot: 0.08,
            // Enough old versions not to be in memory, in some lives.
            behind: [1, 1, 40][seed as usize / 2 % 3],
            drop_tree: 0.08,
            long: [0.0, 0.2][seed as usize / 2 % 2],
            single: 0.5,
            remove_range: 0.08,
            load: 0.05,
            backup: 0.05,
            upkeep: 0.08,
            ..drawn()
        })
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self { habits: Some(habits), ..*self })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let habits = self.habits(seed);
        let start = Start::draw(seed, habits)?;
        let mut counts = Counts::default();
        let plan = FailPlan::none();
        let played = Life::of(&start, habits, seed, &mut counts).play(&plan);
        played.map_err(|what| Failure::new(seed, "while nothing failed", what))?;
        for nth in (1 + seed % self.every..=plan.asked()).step_by(self.every as usize) {
            for way in Way::ALL {
                counts.add(CASES, 1);
                let played = Life::of(&start, habits, seed, &mut counts).play(&FailPlan::new(nth, way));
                let how = way.what();
                played.map_err(|what| Failure::new(seed, format!("request {nth} {how}"), what))?;
            }
            if !goes_on() {
                break;
            }
        }
        Ok(counts)
    }
}

/// The state in which a life begins.
pub(super) struct Start {
    shape: Shape,
    data: Disk,
    /// If it is not on the other one.
    log: Option<Disk>,
    /// The store that is there and how many commits it has; none was made yet otherwise.
    crashed: Option<(Base, u64)>,
}

impl Start {
    /// Half of them where a power cut has left a store.
    pub fn draw(seed: u64, habits: Habits) -> Result<Self, Failure> {
        match seed % 2 {
            0 => Self::after_crash(seed, habits),
            _ => Ok(Self::new_store(seed, habits)),
        }
    }

    fn after_crash(seed: u64, habits: Habits) -> Result<Self, Failure> {
        let base = Base::make(seed, Habits { steps: BASE_STEPS, backup: 0.0, checkpoint: 0.02, ..habits })?;
        let before = base.open().map_err(|what| Failure::new(seed, "before any fault", what))?;
        let mut bytes = vec![0; base.shape.bytes() as usize];
        base.image.read(0, &mut bytes);
        let (shape, data) = (base.shape.clone(), Disk::new(bytes));
        Ok(Self { shape, data, log: None, crashed: Some((base, before)) })
    }

    fn new_store(seed: u64, habits: Habits) -> Self {
        let mut random = Pcg64::seed_from_u64(seed ^ STREAM << 8);
        let shape = Shape::draw(&mut random);
        let shape = if random.random_bool(habits.grows.max(0.5)) { shape.growing() } else { shape };
        let blank = || Disk::new(vec![0; shape.bytes() as usize]);
        let striped = |is: bool| if is { blank().striped() } else { blank() };
        let data = striped(random.random());
        let log = random.random::<bool>().then(|| striped(random.random()));
        Self { shape, data, log, crashed: None }
    }
}

/// A store's life, which begins there.
pub(super) struct Life<'a> {
    start: &'a Start,
    /// The store's drive, as long as it is by now.
    data: Disk,
    habits: Habits,
    seed: u64,
    counts: &'a mut Counts,
}

impl<'a> Life<'a> {
    /// One that begins as if there had been no other.
    pub fn of(start: &'a Start, habits: Habits, seed: u64, counts: &'a mut Counts) -> Self {
        start.data.back();
        start.log.iter().for_each(Disk::back);
        Self { start, data: start.data.of_bytes(start.shape.first_bytes()), habits, seed, counts }
    }

    /// Plays a life with failures, and checks the store afterwards.
    pub fn play(self, plan: &Arc<FailPlan>) -> Result<(), String> {
        self.play_with(plan, None).map(drop)
    }

    /// The same with trouble inside of the store, if there is to be some; how many occasions for it there
    /// were.
    pub fn play_with(mut self, plan: &Arc<FailPlan>, troubled: Option<Troubled>) -> Result<u64, String> {
        let shared = match &self.start.crashed {
            None => Shared::listen(&Tape::default()),
            Some((base, before)) => {
                let shared = base.shared.fork();
                shared.get().forget_after(*before);
                shared
            }
        };
        let live = quietly(|| self.live(plan, &shared)).and_then(|result| result);
        let occasions = troubled.as_ref().map_or(0, Troubled::asked);
        drop(troubled);
        let is_made = live?;
        quietly(|| self.look(&shared, is_made)).and_then(|result| result)?;
        Ok(occasions)
    }

    /// The store, on drives that fail if there is a plan.
    fn store(&self, plan: Option<&Arc<FailPlan>>) -> Builder {
        let drive = |disk: &Disk| -> Arc<dyn Device> {
            Arc::new(plan.map_or_else(|| disk.clone(), |plan| disk.failing(plan)))
        };
        // Workers retry like those on threads of their own when their queue fails for a moment; with other
        // kinds of failures they do not retry.
        let retries = plan.map_or(0, |plan| u32::from(plan.way() == Way::Queue));
        let store = small(&self.start.shape, drive(&self.data)).step_retries(retries);
        match &self.start.log {
            None => store,
            Some(log) => store.log_device(drive(log)),
        }
    }

    /// Whether there is a store in the end.
    fn live(&mut self, plan: &Arc<FailPlan>, shared: &Shared) -> Result<bool, String> {
        let failing = self.store(Some(plan));
        let (begun, is_made) = match self.start.crashed {
            Some(_) => (Simulated::open(failing, CpuCosts::default()), true),
            None => (Simulated::create(failing, CpuCosts::default()), false),
        };
        let Some(store) = self.unless_refused(begun, plan, "refused to begin")? else { return Ok(is_made) };
        self.work(store, plan, shared, self.habits.steps)?;
        let again = Simulated::open(self.store(Some(plan)), CpuCosts::default());
        let Some(mut store) = self.unless_refused(again, plan, "refused to open again")? else {
            return Ok(true);
        };
        let (bounds, looked) = (shared.bounds(), shared.clone());
        match store.run(move |db| compare(db, &looked, bounds)) {
            Found::Right(last) => shared.get().forget_after(last),
            Found::Unreadable(last, error) if may_say(plan, &error) => shared.get().forget_after(last),
            found => return Err(format!("when it was opened again, {found}")),
        }
        self.work(store, plan, shared, LATER_STEPS)?;
        Ok(true)
    }

    fn unless_refused(
        &mut self,
        store: Result<Simulated, Error>,
        plan: &FailPlan,
        what: &'static str,
    ) -> Result<Option<Simulated>, String> {
        match store {
            Ok(store) => Ok(Some(store)),
            Err(error) if may_say(plan, &error) => {
                self.counts.add(what, 1);
                Ok(None)
            }
            Err(error) => Err(format!("refused: {error}")),
        }
    }

    /// Uses a store and closes it, both of which may fail.
    fn work(
        &mut self,
        mut store: Simulated,
        plan: &Arc<FailPlan>,
        shared: &Shared,
        steps: u32,
    ) -> Result<(), String> {
        let shape = Shape { fails: Some(Arc::clone(plan)), ..self.start.shape.clone() };
        let (habits, seed) = (Habits { steps, ..self.habits }, self.seed);
        store.set_schedule(seed);
        let tasks = begin(&mut store, &shape, shared, habits, seed);
        store.run_until_idle();
        let errors = outcomes(tasks, |error| may_say(plan, error))?;
        self.counts.add("tasks that ended with an error", errors);
        let shared = shared.clone();
        let closed = store.run(move |db| Work::new(db, &shape, &shared, habits, seed, habits.tasks).close());
        match closed {
            Ok(()) => Ok(()),
            Err(error) if may_say(plan, &error) => {
                self.counts.add("refused to close", 1);
                Ok(())
            }
            Err(error) => Err(format!("when it was closed: {error}")),
        }
    }

    /// Nothing fails any more.
    fn look(&mut self, shared: &Shared, is_made: bool) -> Result<(), String> {
        let open = || Simulated::open(self.store(None), CpuCosts::default());
        let mut store = match open() {
            // A store whose creation was not completed is no store, and can be created again.
            Err(error) if !is_made && error.kind() == ErrorKind::NotFound => {
                Simulated::create(self.store(None), CpuCosts::default())
                    .map_err(|error| format!("cannot be made afterwards: {error}"))?
            }
            opened => opened.map_err(|error| format!("refused afterwards: {error}"))?,
        };
        let (bounds, looked) = (shared.bounds(), shared.clone());
        let found = store.run(move |db| compare(db, &looked, bounds));
        store.abandon();
        match found {
            Found::Right(_) => Ok(()),
            found => Err(format!("afterwards, {found}")),
        }
    }
}

/// Errors that a store may report after a failed request: never that bytes are damaged, or that something is
/// missing.
fn may_say(plan: &FailPlan, error: &Error) -> bool {
    use ErrorKind::{Io, Poisoned, TreeFailed};
    !plan.is_harmless() && matches!(error.kind(), Io | Poisoned | TreeFailed)
}
