//! Lives in a row: a store works on after a power cut, and the power fails again.

use std::sync::Arc;

use flashgrain_device::Device;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::crash::{look_at, open};
use super::failure::Failure;
use super::life::{Life, work_on};
use super::run::Campaign;
use crate::media::{Choice, Choices, Disk, Event, Moment, Recorder, Tape, Timeline};
use crate::world::{CASES, Counts, Habits, Shape, Shared, quietly};

/// See the module.
pub struct Lives {
    /// Workload of the stores; drawn for every seed if not given.
    pub habits: Option<Habits>,
    /// States from which a life goes on, of each seed.
    pub begins: usize,
    /// States that are looked at after each life.
    pub ends: usize,
}

impl Default for Lives {
    fn default() -> Self {
        Self { habits: None, begins: 4, ends: 24 }
    }
}

/// Keeps these random numbers apart from the life's.
const STREAM: u64 = 0x006c_6976_6573;

/// Lives after the first one.
const ROUNDS: u64 = 2;

/// States that each beginning is chosen from.
const CANDIDATES: usize = 6;

/// Crash states that are drawn from.
const CHOICES: Choices = Choices { subsets: 6, tears: 6 };

impl Campaign for Lives {
    fn name(&self) -> &'static str {
        "lives"
    }

    fn habits(&self, seed: u64) -> Habits {
        let drawn = || Habits::draw(&mut Pcg64::seed_from_u64(seed ^ STREAM));
        let habits = || match seed % 3 {
            // As no commit waits for durability, much is only in memory when a checkpoint comes.
            1 => Habits { sync: 0.0, ..drawn() },
            // Replaying takes more pages than there is room for, so that some are written meanwhile.
            2 => Habits {
                steps: 120,
                keys: 1000,
                value_bytes: 900,
                overflow: 0.08,
                checkpoint: 0.005,
                ..Habits::default()
            },
            _ => drawn(),
        };
        self.habits.unwrap_or_else(habits)
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        Box::new(Self { habits: Some(habits), ..*self })
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let habits = self.habits(seed);
        let random = &mut Pcg64::seed_from_u64(seed ^ STREAM << 8);
        let life = Life::live(seed, habits)?;
        let mut counts = Counts::default();
        let blank = vec![0; life.shape.bytes() as usize];
        let begin = Timeline::new(blank, life.shape.first_bytes(), Moment::default());
        let candidates = some_of(begin, &life.events, self.begins * CANDIDATES, random);
        for Left { bytes, length_bytes, moment, choice } in self.choose(candidates, &life.shape) {
            if !goes_on() {
                break;
            }
            let case = format!("after event {}, {choice}", moment.position);
            let mut chain = Chain {
                seed,
                habits,
                shape: &life.shape,
                shared: life.shared.clone(),
                bytes,
                length_bytes,
                moment,
            };
            for round in 0..ROUNDS {
                let next =
                    quietly(|| chain.go_on(round, self.ends, random, &mut counts)).and_then(|result| result);
                next.map_err(|what| Failure::new(seed, format!("{case}, life {}", round + 2), what))?;
            }
        }
        Ok(counts)
    }
}

impl Lives {
    /// States from which lives go on: half of them, if there are as many, have a log with a torn end, because
    /// the next log is written over that end.
    fn choose(&self, candidates: Vec<Left>, shape: &Shape) -> Vec<Left> {
        let is_torn = |left: &Left| {
            let disk = Arc::new(Disk::new(left.bytes.clone()).of_bytes(left.length_bytes));
            let opened = quietly(|| open(shape, disk, left.moment));
            let Ok(Ok(Some(simulated))) = opened else { return false };
            let is_torn = simulated.stats().recovery.torn;
            simulated.abandon();
            is_torn
        };
        let (mut torn, mut others) = (Vec::new(), Vec::new());
        for left in candidates {
            let wanted = torn.len() < self.begins / 2 && is_torn(&left);
            if wanted { torn.push(left) } else { others.push(left) }
        }
        // Those of all times, not the first ones.
        let step = (others.len() / (self.begins - torn.len()).max(1)).max(1);
        let count = self.begins - torn.len();
        torn.extend(others.into_iter().step_by(step).take(count));
        torn
    }
}

/// A possible state of a drive after a power cut, and its moment.
struct Left {
    bytes: Vec<u8>,
    length_bytes: u64,
    moment: Moment,
    choice: Choice,
}

/// So many things that may be left of a drive after moments of a life, all moments as likely; now and then
/// all that happened, so that a store that was closed is one of those that go on.
fn some_of(mut timeline: Timeline, events: &[Event], count: usize, random: &mut Pcg64) -> Vec<Left> {
    let last = events.len().saturating_sub(1);
    let place = |random: &mut Pcg64| match random.random_range(0..5) {
        0 => last,
        // States soon after recovery matter most.
        1 | 2 => random.random_range(0..=last / 10),
        _ => random.random_range(0..=last),
    };
    let mut places: Vec<usize> = (0..count).map(|_| place(random)).collect();
    places.sort_unstable();
    let mut places = places.into_iter().peekable();
    let mut left = Vec::new();
    for (position, event) in events.iter().enumerate() {
        timeline.play(event);
        while places.next_if(|place| *place <= position && timeline.moment().created).is_some() {
            let choice = some_choice(&timeline, random);
            let disk = timeline.leave(&choice);
            let (bytes, length_bytes, moment) = (disk.bytes(), disk.capacity_bytes(), timeline.moment());
            left.push(Left { bytes, length_bytes, moment, choice });
            timeline.disk().back();
        }
    }
    left
}

fn some_choice(timeline: &Timeline, random: &mut Pcg64) -> Choice {
    let mut choices = CHOICES.of(&timeline.uncertain(), random);
    let index = random.random_range(0..choices.len());
    choices.swap_remove(index)
}

/// A store that dies again and again.
struct Chain<'a> {
    seed: u64,
    habits: Habits,
    shape: &'a Shape,
    shared: Shared,
    /// Content of the drive after the last power cut.
    bytes: Vec<u8>,
    /// How much of that is there until the drive grows.
    length_bytes: u64,
    moment: Moment,
}

impl Chain<'_> {
    /// Recovers a copy of the store and returns its last commit; the next life does not begin with this copy,
    /// because it does not wait until everything was compared, and because recovery ends with a checkpoint.
    fn look(&self) -> Result<Option<u64>, String> {
        let disk = Arc::new(Disk::new(self.bytes.clone()).of_bytes(self.length_bytes));
        let Some(mut simulated) = open(self.shape, disk, self.moment)? else { return Ok(None) };
        let (shared, moment) = (self.shared.clone(), self.moment);
        let looked = simulated.run(move |db| look_at(db, &shared, moment));
        simulated.abandon();
        looked.map(Some)
    }

    /// Recovers, works, and checks the states that a power cut may then leave; one of these states is where
    /// the next life begins.
    fn go_on(
        &mut self,
        round: u64,
        ends: usize,
        random: &mut Pcg64,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let Some(last) = self.look()? else { return Ok(()) };
        let content = self.shared.get().content(last);
        let tape = Tape::default();
        self.shared = Shared::go_on(&tape, last, content);
        let disk = Disk::new(self.bytes.clone());
        let device = Arc::new(Recorder::new(Arc::new(disk), self.length_bytes, tape.clone()));
        let Some(mut simulated) = open(self.shape, device, self.moment)? else { return Ok(()) };
        simulated.set_schedule(random.random());
        self.moment = Moment { position: 0, created: true, given: last, acknowledged: last };
        // Few steps: of interest are states after recovery, and a power cut before much of them is
        // overwritten.
        let few = Habits { steps: self.habits.steps / 4 + 2, ..self.habits };
        let habits = if random.random() { few } else { Habits { tasks: 2, steps: 3, ..few } };
        work_on(&mut simulated, self.shape, &self.shared, habits, self.seed ^ (round + 1) << 40)?;
        simulated.abandon();
        let events = tape.take();
        let mut next = None;
        let begin = Timeline::new(self.bytes.clone(), self.length_bytes, self.moment);
        for Left { bytes, length_bytes, moment, choice } in some_of(begin, &events, ends, random) {
            counts.add(CASES, 1);
            let problem = |problem| format!("after event {} of it, {choice}: {problem}", moment.position);
            let disk = Arc::new(Disk::new(bytes.clone()).of_bytes(length_bytes));
            let opened = open(&self.shape.frugal(), disk, moment).map_err(problem)?;
            let Some(mut simulated) = opened else { continue };
            let shared = self.shared.clone();
            let compared = simulated.run(move |db| look_at(db, &shared, moment));
            simulated.abandon();
            compared.map_err(problem)?;
            // Any of them.
            if next.is_none() || random.random_bool(0.2) {
                next = Some((bytes, length_bytes, moment));
            }
        }
        if let Some((bytes, length_bytes, moment)) = next {
            (self.bytes, self.length_bytes, self.moment) = (bytes, length_bytes, moment);
        }
        Ok(())
    }
}
