//! Crash states: everything that a power cut could leave of a store at any moment of its life, opened again.

use std::sync::Arc;

use flashgrain::testing::last_commit;
use flashgrain::{CpuCosts, Db, ErrorKind, Simulated};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::failure::{Failure, quietly};
use super::seen::Seen;
use crate::media::{Choice, Choices, Disk, Event, Moment, Recorder, Tape, Timeline};
use crate::world::{Habits, Shape, Shared, Work, drive, same, small};

/// How crash states are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crash {
    /// What the store is used for.
    pub habits: Habits,
    /// Which states of a moment are looked at.
    pub choices: Choices,
    /// One of so many states is also worked on, checked, closed and opened again.
    pub deep_every: u64,
    /// In one of so many, the recovery is cut short, too, in every way.
    pub again_every: u64,
}

impl Default for Crash {
    fn default() -> Self {
        let choices = Choices { subsets: 12, tears: 24 };
        Self { habits: Habits::default(), choices, deep_every: 64, again_every: 256 }
    }
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Distinct states that were recovered.
    pub states: u64,
    /// Of these, those in which a recovery was cut short.
    pub again: u64,
    /// Commits that were replayed.
    pub replayed: u64,
    /// Recoveries that found the log torn.
    pub torn: u64,
    /// Moments.
    pub moments: u64,
}

impl Tally {
    /// Adds what another one has looked at.
    pub fn add(&mut self, other: &Self) {
        self.states += other.states;
        self.again += other.again;
        self.replayed += other.replayed;
        self.torn += other.torn;
        self.moments += other.moments;
    }
}

/// A store's life, as its drive saw it.
pub struct Life {
    /// The seed of everything.
    pub seed: u64,
    /// What store it was.
    pub shape: Shape,
    /// What happened.
    pub events: Vec<Event>,
    /// What was committed.
    pub shared: Shared,
}

/// Has a store live, with all its workers on the calling thread.
///
/// # Errors
/// What it did wrong while nothing else went wrong.
pub fn live(seed: u64, habits: Habits) -> Result<Life, Failure> {
    let fail = |what: String| Failure { what, case: "without a crash".into(), seed };
    let mut random = Pcg64::seed_from_u64(seed);
    let shape = Shape::draw(&mut random);
    let tape = Tape::default();
    let shared = Shared::listen(&tape);
    let device = Recorder::new(drive(shape.bytes(), seed), tape.clone());
    let work = || {
        let store = small(&shape, Arc::new(device));
        let mut simulated =
            Simulated::create(store, CpuCosts::default()).map_err(|error| error.to_string())?;
        tape.note(Event::Created);
        let tasks: Vec<_> = (0..habits.tasks)
            .map(|task| {
                let shared = shared.clone();
                simulated.spawn(move |db| Work::new(db, &shared, habits, seed, task).run())
            })
            .collect();
        simulated.run_until_idle();
        for task in tasks {
            assert!(task.is_finished(), "tasks wait for each other");
            task.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                .map_err(|stop| format!("{stop:?}"))?;
        }
        let checked = shared.clone();
        let verdict =
            simulated.run(move |db| crate::world::check(db, &checked)).map_err(|error| error.to_string())?;
        verdict.map_or(Ok(()), Err)
    };
    quietly(work).and_then(|result| result).map_err(fail)?;
    Ok(Life { seed, shape, events: tape.take(), shared })
}

impl Crash {
    /// Looks at the crash states of a life, as long as `goes_on` says so.
    ///
    /// # Errors
    /// The first promise that was broken.
    pub fn explore(
        &self,
        life: &Life,
        seen: &Seen,
        mut goes_on: impl FnMut(&Tally) -> bool,
    ) -> Result<Tally, Failure> {
        let mut random = Pcg64::seed_from_u64(life.seed ^ 0x00c4_a54e5);
        let mut tally = Tally::default();
        let bytes = vec![0; life.shape.bytes() as usize];
        let mut timeline = Timeline::new(bytes, Moment::default());
        for event in &life.events {
            if !timeline.play(event) || !timeline.moment().created {
                continue;
            }
            tally.moments += 1;
            for choice in self.choices.of(&timeline.uncertain(), &mut random) {
                if !seen.insert(timeline.print(&choice)) {
                    continue;
                }
                tally.states += 1;
                timeline.leave(&choice);
                let state = State { life, moment: timeline.moment(), choice: &choice, disk: timeline.disk() };
                let looked = state.look(&mut tally);
                timeline.disk().back();
                looked?;
            }
            if !goes_on(&tally) {
                break;
            }
        }
        let _ = random.random::<u8>();
        Ok(tally)
    }
}

/// What a power cut has left.
struct State<'a> {
    life: &'a Life,
    moment: Moment,
    choice: &'a Choice,
    disk: &'a Disk,
}

impl State<'_> {
    fn fail(&self, what: String) -> Failure {
        let case = format!("after event {} with {:?}", self.moment.position, self.choice);
        Failure { what, case, seed: self.life.seed }
    }

    /// Opens it.
    fn open(&self) -> Result<Option<Simulated>, String> {
        let store = small(&self.life.shape, Arc::new(self.disk.clone()));
        match Simulated::open(store, CpuCosts::default()) {
            Ok(simulated) => Ok(Some(simulated)),
            Err(error) if error.kind() == ErrorKind::NotFound && !self.moment.created => Ok(None),
            Err(error) => Err(format!("refused: {error}")),
        }
    }

    fn look(&self, tally: &mut Tally) -> Result<(), Failure> {
        let look = || -> Result<(), String> {
            let Some(mut simulated) = self.open()? else { return Ok(()) };
            let recovery = simulated.stats().recovery;
            tally.replayed += recovery.records;
            tally.torn += u64::from(recovery.records == 0);
            let (shared, moment) = (self.life.shared.clone(), self.moment);
            let verdict = simulated.run(move |db| compare(db, &shared, moment));
            simulated.abandon();
            verdict
        };
        quietly(look).and_then(|result| result).map_err(|what| self.fail(what))
    }
}

/// Whether the store contains what it must after a crash at this moment.
fn compare(db: &Db, shared: &Shared, moment: Moment) -> Result<(), String> {
    let last = last_commit(db);
    let Moment { given, acknowledged, .. } = moment;
    if last < acknowledged {
        return Err(format!("lost: recovered are {last} commits, acknowledged were {acknowledged}"));
    }
    if last > given {
        return Err(format!("recovered are {last} commits of only {given}"));
    }
    let mut history = shared.get();
    let verdict = same(db, history.content(last)).map_err(|error| format!("cannot be read: {error}"))?;
    verdict.map_or(Ok(()), |what| Err(format!("of {last} commits ({acknowledged} to {given}), {what}")))
}
