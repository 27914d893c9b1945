//! Crash states: everything that a power cut could leave of a store at any moment of its life, opened again.

use std::sync::Arc;

use flashgrain::{CpuCosts, Db, ErrorKind, Simulated};
use flashgrain_device::Device;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::checked_states::CheckedStates;
use super::compare::{Found, compare};
use super::failure::Failure;
use super::life::{Life, device_use_of};
use super::run::Campaign;
use super::trace::trace;
use crate::media::{Choice, Choices, Disk, Event, Moment, Recorder, Tape, Timeline};
use crate::world::{CASES, Content, Counts, Habits, Shape, Shared, quietly, same, small};

/// How crash states are drawn, and those that were looked at.
pub struct Crash {
    /// Workload of the store; drawn for every life if not given.
    pub habits: Option<Habits>,
    /// Selection of the crash states of each moment.
    pub choices: Choices,
    /// States that are looked at in a life, at moments in a row from a random one on.
    pub states_per_life: u64,
    /// Whether it begins in the middle of a life, so that all parts of long ones come up.
    pub begin_anywhere: bool,
    /// Whether only the moments count when the drive has grown and may be shorter again.
    pub only_while_length_uncertain: bool,
    /// Whether only the moments count when the log moves.
    pub only_while_log_moves: bool,
    /// One in this number of states is also worked on, checked, closed and opened again.
    pub deep_every: u64,
    /// In one in this number of states, recovery is cut short, too, at every moment.
    pub again_every: u64,
    /// Crash states that were already tested in any life.
    pub checked: CheckedStates,
}

impl Default for Crash {
    fn default() -> Self {
        let choices = Choices { subsets: 16, tears: 40 };
        let (states_per_life, deep_every, again_every) = (4000, 97, 397);
        Self {
            habits: None,
            choices,
            states_per_life,
            begin_anywhere: true,
            only_while_length_uncertain: false,
            only_while_log_moves: false,
            deep_every,
            again_every,
            checked: CheckedStates::default(),
        }
    }
}

/// Keeps these random numbers apart from the life's.
const STREAM: u64 = 0x0063_7261_7368;

/// Choices in the recoveries that are cut short: there are few uncertain writes.
const AGAIN: Choices = Choices { subsets: 4, tears: 6 };

impl Campaign for Crash {
    fn name(&self) -> &'static str {
        "crash"
    }

    fn habits(&self, seed: u64) -> Habits {
        self.habits.unwrap_or_else(|| Habits::draw(&mut Pcg64::seed_from_u64(seed ^ STREAM)))
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        let (choices, checked) = (self.choices, CheckedStates::default());
        Box::new(Self { habits: Some(habits), choices, checked, begin_anywhere: false, ..*self })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let life = Life::live(seed, self.habits(seed))?;
        self.explore(&life, goes_on)
    }
}

/// Events before and after the superblock that says that the log is elsewhere that are looked at.
const AROUND_MOVES: usize = 60;

impl Crash {
    /// Of stores whose logs move, while they do, and others write meanwhile.
    pub fn about_moves() -> Self {
        let habits = Habits {
            tasks: 8,
            steps: 60,
            keys: 150,
            overflow: 0.3,
            checkpoint: 0.05,
            backup: 0.0,
            grows: 1.0,
            log_moves: 1.0,
            sync: 0.4,
            ..Habits::default()
        };
        let choices = Choices { subsets: 3, tears: 4 };
        Self {
            habits: Some(habits),
            choices,
            begin_anywhere: false,
            only_while_log_moves: true,
            ..Self::default()
        }
    }

    /// Of stores whose logs move to where the device has just grown: its length may be lost, and recovery
    /// moves the log there again.
    pub fn about_moves_into_growth() -> Self {
        Self { only_while_length_uncertain: true, again_every: 3, ..Self::about_moves() }
    }

    /// Of stores that are compacted and whose drives become shorter, while others write.
    pub fn about_cuts() -> Self {
        let habits = Habits {
            tasks: 6,
            steps: 60,
            keys: 150,
            overflow: 0.4,
            checkpoint: 0.05,
            remove_range: 0.1,
            backup: 0.0,
            compact: 0.1,
            grows: 1.0,
            sync: 0.4,
            ..Habits::default()
        };
        let choices = Choices { subsets: 3, tears: 4 };
        let only_while_length_uncertain = true;
        Self {
            habits: Some(habits),
            choices,
            only_while_length_uncertain,
            begin_anywhere: false,
            ..Self::default()
        }
    }

    /// Looks at crash states of a life.
    ///
    /// # Errors
    /// The first promise that was broken.
    pub fn explore(&self, life: &Life, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let random = &mut Pcg64::seed_from_u64(life.seed ^ STREAM << 8);
        let mut counts = life.counts.clone();
        let mut timeline =
            Timeline::new(vec![0; life.shape.bytes() as usize], life.shape.first_bytes(), Moment::default());
        let begin = if self.begin_anywhere { random.random_range(0..life.events.len()) } else { 0 };
        let moves = if self.only_while_log_moves { life.log_moves() } else { Vec::new() };
        for (position, event) in life.events.iter().enumerate() {
            let moves_now = moves.iter().any(|at| at.abs_diff(position) < AROUND_MOVES);
            let is_looked_at = (timeline.is_length_uncertain() || !self.only_while_length_uncertain)
                && (moves_now || !self.only_while_log_moves);
            check_length(life, &timeline, event)?;
            let is_enough = counts.cases() >= self.states_per_life;
            if timeline.play(event) && position >= begin && is_looked_at && !is_enough {
                counts.add("moments", 1);
                self.look_at(life, &mut timeline, random, &mut counts)?;
                if !goes_on() {
                    break;
                }
            }
        }
        Ok(counts)
    }

    fn look_at(
        &self,
        life: &Life,
        timeline: &mut Timeline,
        random: &mut Pcg64,
        counts: &mut Counts,
    ) -> Result<(), Failure> {
        let moment = timeline.moment();
        let mut choices = self.choices.of(&timeline.uncertain(), random);
        if timeline.is_length_uncertain() {
            let shorter = choices.clone().into_iter().map(|choice| Choice { is_shorter: true, ..choice });
            choices.extend(shorter);
        }
        for choice in choices {
            if !self.checked.insert(timeline.print(&choice)) {
                continue;
            }
            counts.add(CASES, 1);
            let disk = timeline.leave(&choice);
            let (deep, again) =
                (random.random_range(0..self.deep_every) == 0, random.random_range(0..self.again_every) == 0);
            let state = CrashState { life, moment, disk };
            let looked = match (deep, again && moment.created) {
                (_, true) => self.cut_short(&state, random, counts),
                (deep, _) => state.look(deep, counts),
            };
            timeline.disk().back();
            looked.map_err(|what| {
                let case = format!("after event {}, {choice}", moment.position);
                let trace = trace(
                    &life.shape,
                    &life.events[..moment.position],
                    &timeline.uncertain_numbers(),
                    &choice,
                );
                Failure { trace, ..Failure::new(life.seed, case, what) }
            })?;
        }
        Ok(())
    }

    /// Cuts the recovery of a store short, at each of its moments: all commits that the first recovery found
    /// must still be there.
    fn cut_short(
        &self,
        state: &CrashState<'_>,
        random: &mut Pcg64,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let life = state.life;
        let bytes = state.disk.bytes();
        let length = state.disk.capacity_bytes();
        let tape = Tape::default();
        let device =
            Arc::new(Recorder::new(Arc::new(state.disk.of_bytes(bytes.len() as u64)), length, tape.clone()));
        let (shared, moment) = (life.shared.clone(), state.moment);
        let first = || -> Result<u64, String> {
            let Some(mut simulated) = open(&life.shape, device, moment)? else { return Ok(0) };
            let last = simulated.run(move |db| look_at(db, &shared, moment))?;
            // A checkpoint of the replayed commits.
            simulated.run_until_idle();
            simulated.abandon();
            Ok(last)
        };
        let last = quietly(first).and_then(|result| result)?;
        let events = tape.take();
        let mut timeline = Timeline::new(
            bytes,
            length,
            Moment { position: 0, created: true, given: last, acknowledged: last },
        );
        for event in &events {
            if !timeline.play(event) {
                continue;
            }
            for choice in AGAIN.of(&timeline.uncertain(), random) {
                if !self.checked.insert(timeline.print(&choice)) {
                    continue;
                }
                counts.add(CASES, 1);
                counts.add("in recoveries", 1);
                let disk = timeline.leave(&choice);
                let looked = CrashState { life, moment: timeline.moment(), disk }.look(false, counts);
                timeline.disk().back();
                looked.map_err(|problem| {
                    format!(
                        "cut short again at event {} of the recovery, {choice}: {problem}",
                        timeline.moment().position
                    )
                })?;
            }
        }
        Ok(())
    }
}

/// A superblock must not rely on a length of the drive that a power cut may take back: were it the only thing
/// that is kept, the store would be refused.
fn check_length(life: &Life, timeline: &Timeline, event: &Event) -> Result<(), Failure> {
    match device_use_of(event) {
        Some(device) if device.data_bytes > timeline.certain_bytes() => {
            let case = format!("before event {}", timeline.moment().position);
            let certain = timeline.certain_bytes();
            let what = format!("a superblock relies on {} bytes, {certain} are certain", device.data_bytes);
            Err(Failure::new(life.seed, case, what))
        }
        _ => Ok(()),
    }
}

/// The state of a drive after a power cut.
struct CrashState<'a> {
    life: &'a Life,
    moment: Moment,
    disk: Disk,
}

impl CrashState<'_> {
    fn look(&self, deep: bool, counts: &mut Counts) -> Result<(), String> {
        let (shape, moment) = (&self.life.shape, self.moment);
        let mut look = || -> Result<(), String> {
            let shape = if moment.position.is_multiple_of(2) { shape.frugal() } else { shape.clone() };
            let Some(mut simulated) = open(&shape, Arc::new(self.disk.clone()), moment)? else {
                counts.add("not yet created", 1);
                return Ok(());
            };
            let recovery = simulated.stats().recovery;
            counts.add("commits replayed", recovery.records);
            counts.add("torn logs", u64::from(recovery.torn));
            let shared = self.life.shared.clone();
            let last = simulated.run(move |db| look_at(db, &shared, moment))?;
            if deep {
                counts.add("worked on", 1);
                let content = Content::clone(&self.life.shared.get().content(last));
                work_on(simulated, self, content)
            } else {
                simulated.abandon();
                Ok(())
            }
        };
        quietly(&mut look).and_then(|result| result)
    }
}

/// Opens a store after a power cut at a moment; `None` if there was no store yet.
pub(super) fn open(
    shape: &Shape,
    device: Arc<dyn Device>,
    moment: Moment,
) -> Result<Option<Simulated>, String> {
    match Simulated::open(small(shape, device), CpuCosts::default()) {
        Ok(simulated) => Ok(Some(simulated)),
        Err(error) if error.kind() == ErrorKind::NotFound && !moment.created => Ok(None),
        Err(error) => Err(format!("refused: {error}")),
    }
}

/// Whether the content is one that the store may have after a crash at this moment. It returns the last
/// commit in it.
pub(super) fn look_at(db: &Db, shared: &Shared, moment: Moment) -> Result<u64, String> {
    match compare(db, shared, (moment.acknowledged, moment.given)) {
        Found::Right(last) => Ok(last),
        found => Err(found.to_string()),
    }
}

/// Records that are written to a recovered store: enough to use segments again.
const MORE_RECORDS: u32 = 60;

/// The tree that they are in.
const MORE: &str = "more";

/// Goes on with a recovered store, closes it, and opens it again.
fn work_on(mut simulated: Simulated, state: &CrashState<'_>, mut content: Content) -> Result<(), String> {
    let text = |error: flashgrain::Error| error.to_string();
    simulated.run(|db| db.check()).map_err(text)?;
    let written = simulated.run(|db| {
        let tree = db.tree(MORE)?;
        let mut written = Vec::new();
        for number in 0..MORE_RECORDS {
            let (key, value) = (vec![number as u8; 3], vec![number as u8; 700]);
            match tree.insert(&key, &value) {
                // A small device may be full.
                Err(flashgrain::Error::Full { .. }) => break,
                ended => ended?,
            }
            written.push((key, value));
            if number % 20 == 10 {
                match db.checkpoint() {
                    Ok(()) | Err(flashgrain::Error::Full { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(written)
    });
    content.insert(MORE.into(), written.map_err(|error| format!("went on: {error}"))?.into_iter().collect());
    drop(simulated);
    let opened = open(&state.life.shape, Arc::new(state.disk.clone()), state.moment)?;
    let Some(mut simulated) = opened else { return Err("there is no store after it was closed".into()) };
    let verdict = simulated.run(move |db| {
        db.check()?;
        same(db, &content)
    });
    simulated.abandon();
    match verdict.map_err(text)? {
        None => Ok(()),
        Some(problem) => Err(format!("after more work and a close, {problem}")),
    }
}
