//! Requests that fail, of stores whose log may be on a drive of its own: the store may refuse operations, and
//! must not forget acknowledged commits.
//!
//! This campaign covers cases that [faults](super::Faults) cannot: logs on another drive where only one of
//! both fails, drives that lose different things in a power cut, and a power cut in the midst of everything.

use std::time::Duration;

use flashgrain::{CpuCosts, Simulated};
use flashgrain_ssdsim::SimDevice;
use flashgrain_ssdsim::fault::{
    Fault, FaultKind, FlushLoss, Operation, PowerCut, Repeat, Survivors, Trigger,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::crash::look_at;
use super::failure::Failure;
use super::life::begin;
use super::run::Campaign;
use crate::media::{Moment, Tape};
use crate::world::{CASES, Counts, Habits, Shape, Shared, Stop, drive, quietly, small};

/// See the module.
pub struct Errors {
    /// Workload of the stores; drawn for every seed if not given.
    pub habits: Option<Habits>,
}

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x0065_7272;

fn draw(random: &mut Pcg64) -> Fault {
    let nth = |most: u64, random: &mut Pcg64| Trigger::Nth(random.random_range(1..most));
    match random.random_range(0..6) {
        0 => Fault::new(FaultKind::WriteError { done_bytes: random.random_range(0..9) * 512 })
            .at(nth(200, random)),
        1 => Fault::new(FaultKind::NoSpace).at(nth(200, random)).repeat(Repeat::Sticky),
        2 => Fault::new(FaultKind::ReadError { done_bytes: 0 }).at(nth(200, random)),
        kind => {
            let data = [FlushLoss::Dropped, FlushLoss::Undurable, FlushLoss::Kept][kind - 3];
            Fault::new(FaultKind::FlushError { data }).on(Operation::Flush).at(nth(60, random))
        }
    }
}

impl Campaign for Errors {
    fn name(&self) -> &'static str {
        "errors"
    }

    fn habits(&self, seed: u64) -> Habits {
        self.habits.unwrap_or_else(|| Habits::draw(&mut Pcg64::seed_from_u64(seed ^ STREAM)))
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self { habits: Some(habits) })
    }

    fn play(&self, seed: u64, _goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let random = &mut Pcg64::seed_from_u64(seed ^ STREAM << 8);
        let (shape, fault) = (Shape::draw(random), draw(random));
        let case = format!("{:?} at {:?}", fault.kind, fault.at);
        let mut counts = Counts::default();
        counts.add(CASES, 1);
        let habits = self.habits(seed);
        let lived = quietly(|| live(seed, habits, &shape, fault, random, &mut counts));
        lived.and_then(|result| result).map_err(|what| Failure::new(seed, case, what))?;
        Ok(counts)
    }
}

/// Works on a store until the fault stops it, cuts the power, and opens the store again.
fn live(
    seed: u64,
    habits: Habits,
    shape: &Shape,
    fault: Fault,
    random: &mut Pcg64,
    counts: &mut Counts,
) -> Result<(), String> {
    let device = drive(shape.bytes(), seed);
    // A third of all stores have their log on another drive.
    let log = random.random_bool(0.3).then(|| drive(shape.bytes(), seed + 1));
    let store = || match &log {
        Some(log) => small(shape, device.clone()).log_device(log.clone()),
        None => small(shape, device.clone()),
    };
    let shared = Shared::listen(&Tape::default());
    let created = Simulated::create(store(), CpuCosts::default());
    let mut simulated = created.map_err(|error| error.to_string())?;
    simulated.set_schedule(random.random());
    let broken = log.as_ref().filter(|_| random.random()).unwrap_or(&device);
    let fault = broken.inject(fault);
    let tasks = begin(&mut simulated, shape, &shared, habits, seed);
    // The power fails in the middle of half of all lives: a drive that is idle for a while makes everything
    // durable by itself.
    let span = random.random_bool(0.5).then(|| Duration::from_micros(random.random_range(100..60_000)));
    match span {
        Some(span) => simulated.run_for(span),
        None => simulated.run_until_idle(),
    }
    for task in tasks {
        if !task.is_finished() {
            if span.is_some() {
                continue;
            }
            return Err("tasks wait for each other".into());
        }
        match task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            // After the fault it may refuse whatever it likes.
            Ok(()) | Err(Stop::Error(_)) => {}
            Err(Stop::Wrong(what)) => return Err(what),
        }
    }
    counts.add("faults met", broken.fired(fault));
    if span.is_none() {
        let writer = shared.clone();
        // If this checkpoint succeeds, recovery must not need anything that was only in memory.
        let _may_be_refused = simulated.run(move |db| writer.durable(|| db.checkpoint()));
    }
    simulated.abandon();
    [Some(&device), log.as_ref()].into_iter().flatten().for_each(|drive| cut(drive, random));
    let moment = moment_of(&shared);
    let opened = Simulated::open(store(), CpuCosts::default());
    let mut simulated = opened.map_err(|error| format!("refused: {error}"))?;
    let compared = simulated.run(move |db| look_at(db, &shared, moment));
    simulated.abandon();
    compared.map(drop)
}

/// The numbers of the commits of a life that has ended.
fn moment_of(shared: &Shared) -> Moment {
    let history = shared.get();
    let (given, acknowledged) = (history.newest(), history.acknowledged());
    Moment { position: 0, created: true, given, acknowledged }
}

fn cut(device: &SimDevice, random: &mut Pcg64) {
    device.disarm_faults();
    let survivors = [Survivors::None, Survivors::All, Survivors::Random][random.random_range(0..3)].clone();
    device.power_cut(&PowerCut { survivors, seed: random.random(), ..PowerCut::default() });
    device.power_on();
}
