//! A store with several lives.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use flashgrain::testing::{
    Early, EarlyLimits, TreesOf, commit_of, early, last_commit, lsm_trees_of, preempt,
};
use flashgrain::{Builder, CpuCosts, Db, Error, LsmOptions, Simulated};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::draw::log_uniform;
use super::feature::{Feature, Features};
use super::full::{Filling, Round};
use super::medium::Medium;
use super::opening::Opening;
use super::rare::copy_on;
use super::site::Site;
use super::slots::{Maker, Slots};
use super::verify::{same, verify};
use super::work::Work;
use crate::media::{Disk, Tape};
use crate::world::{Counts, MixedOperator, Shared, Stop, quietly};

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x7275_6e73;

const FULL_STREAM: u64 = 0x6675_6c6c;

/// Rounds of a store that is kept full.
const ROUNDS_MAX: u64 = 6;

/// Layouts that are drawn before one must be possible.
const TRIES: u32 = 30;

/// Lives of a run, tasks of a life and operations of a task, at most.
const LIVES_MAX: u64 = 4;
const TASKS_MAX: u64 = 10;
const STEPS_MAX: u64 = 400;

/// Operations of all tasks of a life, at most.
const OPERATIONS_MAX: u64 = 800;

/// A task may lose its processor at one in this number of places.
const PREEMPTED_ONE_IN: u32 = 30;

/// One in this number of reads fails, from one run to another.
const READS_PER_ERROR: Range<u64> = 20..3_000;

/// Turns of all workers within which a step of the run ends.
const TURNS_MAX: u64 = 1_000_000;

/// The same of a round of a store that is kept full, which has many operations.
const FULL_TURNS_MAX: u64 = 20_000_000;

const COSTS: CpuCosts = CpuCosts { task_ns: 1000, request_ns: 500, ..CpuCosts::NONE };

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Closed,
    /// After all tasks are done.
    Killed,
    /// While tasks work.
    CutShort,
}

/// A run.
struct Run {
    random: Pcg64,
    features: Features,
    medium: Medium,
    site: Site,
    operator: MixedOperator,
    /// The opening with the most memory so far: trees may need as much as they were made with.
    largest_opening: Opening,
    shared: Shared,
    slots: Slots,
    counts: Counts,
    has_crashed: bool,
}

/// A store with several lives; everything random is drawn from `seed`. Returns the counts of the operations
/// that were done.
///
/// # Errors
/// The first misbehaviour.
pub fn simulated(seed: u64, features: Features) -> Result<Counts, String> {
    let mut random = Pcg64::seed_from_u64(seed ^ STREAM);
    let _eager: TreesOf = lsm_trees_of(LsmOptions::new(), features.has(Feature::EagerJobs));
    let _preempted = features.has(Feature::Preempted).then(|| preempt(random.random(), PREEMPTED_ONE_IN));
    let _early = draw_early(&mut random, features);
    let operator = MixedOperator::default();
    let (site, medium, mut opening, mut store) = make(&mut random, features, &operator)?;
    let slots = Slots::new(&mut random, features);
    let shared = Shared::listen(&Tape::default());
    let counts = Counts::default();
    let mut run = Run {
        random,
        features,
        medium,
        site,
        operator,
        largest_opening: opening,
        shared,
        slots,
        counts,
        has_crashed: false,
    };
    let lives = log_uniform(&mut run.random, 1, LIVES_MAX);
    for life in 0..lives {
        let of_life = |problem: String| format!("life {}, {opening:?}: {problem}", life + 1);
        let end = run.live_and_end(store, opening, life).map_err(of_life)?;
        if features.has(Feature::OtherOpenings) {
            opening = Opening::draw(&mut run.random, features, &run.site);
        }
        store = run
            .open(opening, end)
            .map_err(|problem| format!("after life {}, {end:?}: {problem}", life + 1))?;
    }
    run.end(store, End::Closed)?;
    run.counts.add("lives", lives);
    Ok(run.counts)
}

/// Limits that little work reaches.
fn draw_early(random: &mut Pcg64, features: Features) -> EarlyLimits {
    let mut limits = Early::default();
    if features.has(Feature::EarlyMemtables) {
        limits.memtable_full_one_in = Some(log_uniform(random, 10, 300) as u32);
    }
    if features.has(Feature::StagedCommits) {
        limits.staged_writes = Some(log_uniform(random, 1, 100) as usize);
    }
    early(random.random(), limits)
}

/// A store that is filled, emptied a little, and filled again; everything random is drawn from `seed`.
///
/// # Errors
/// The first misbehaviour.
pub fn filled(seed: u64, features: Features) -> Result<Counts, String> {
    let mut random = Pcg64::seed_from_u64(seed ^ FULL_STREAM);
    let _early = draw_early(&mut random, features);
    let operator = MixedOperator::default();
    let (site, medium, opening, mut store) = make(&mut random, features, &operator)?;
    store.set_turns_max(FULL_TURNS_MAX);
    let slots = Slots::new(&mut random, features);
    let shared = Shared::listen(&Tape::default());
    let mut run = Run {
        random,
        features,
        medium,
        site,
        operator,
        largest_opening: opening,
        shared,
        slots,
        counts: Counts::default(),
        has_crashed: false,
    };
    let rounds = log_uniform(&mut run.random, 1, ROUNDS_MAX);
    let value_bytes = log_uniform(&mut run.random, run.site.bytes / 4000, run.site.bytes / 200);
    for number in 0..rounds {
        let filled = quietly(|| run.fill(&mut store, value_bytes, number == 0)).and_then(|result| result);
        run.slots.forget();
        if let Err(problem) = filled {
            store.abandon();
            return Err(format!("round {}, {opening:?}: {problem}", number + 1));
        }
        run.end(store, End::Closed)?;
        store = run
            .open(opening, End::Closed)
            .map_err(|problem| format!("after round {}: {problem}", number + 1))?;
        store.set_turns_max(FULL_TURNS_MAX);
    }
    run.end(store, End::Closed)?;
    run.counts.add("rounds", rounds);
    Ok(run.counts)
}

/// A new store, of a layout that it takes.
fn make(
    random: &mut Pcg64,
    features: Features,
    operator: &MixedOperator,
) -> Result<(Site, Medium, Opening, Simulated), String> {
    for attempt in 0..TRIES {
        let site = Site::draw(random, features);
        let opening = Opening::draw(random, features, &site);
        let medium = Medium::new(random, features, &site);
        let builder = medium.of(opening.of(site.builder(), operator), features);
        match Simulated::create(builder, CpuCosts::default()) {
            Ok(mut store) => {
                store.set_turns_max(TURNS_MAX);
                return Ok((site, medium, opening, store));
            }
            // The numbers do not fit together.
            Err(Error::Options(_)) => {}
            Err(error) => return Err(format!("a new store, {site}, attempt {attempt}: {error}")),
        }
    }
    Err("no layout is taken".into())
}

impl Run {
    fn builder(&self, opening: Opening) -> Builder {
        self.medium.of(opening.of(self.site.builder(), &self.operator), self.features)
    }

    /// A life, and its end.
    fn live_and_end(&mut self, mut store: Simulated, opening: Opening, life: u64) -> Result<End, String> {
        let lived = quietly(|| self.live(&mut store, opening, life)).and_then(|result| result);
        // No handle may outlive the store.
        self.slots.forget();
        let ended = match lived {
            Ok(end) => self.end(store, end),
            Err(problem) => {
                store.abandon();
                Err(problem)
            }
        };
        let copies = std::mem::take(&mut self.shared.get().copies);
        let end = ended?;
        self.check_copies(copies)?;
        Ok(end)
    }

    /// A round of a store that is kept full.
    fn fill(&mut self, store: &mut Simulated, value_bytes: u64, is_first: bool) -> Result<(), String> {
        store.set_schedule(self.random.random());
        let maker = self.maker();
        let mut random = Pcg64::seed_from_u64(self.random.random());
        let shared = self.shared.clone();
        let round = store.run(move |db| -> Result<Round, Stop> {
            if is_first && let Some(defining) = maker.slots.define(0) {
                defining.set(maker.make(db, &mut random, "0 of 0", None)?);
            }
            let Some(slot) = maker.slots.get(0) else { return Err(Error::Closed.into()) };
            Filling { db: db.clone(), shared, slot, random, value_bytes }.round()
        });
        let round = round.map_err(text)?;
        self.counts.add("inserts", round.inserted);
        self.counts.add("removals", round.removed);
        self.counts.add("times full", round.was_full.into());
        self.verify(store).map_err(text)
    }

    fn maker(&self) -> Maker {
        Maker {
            site: self.site.clone(),
            features: self.features,
            shared: self.shared.clone(),
            slots: self.slots.clone(),
        }
    }

    /// Has tasks work, and verifies the content, unless they are cut short.
    fn live(&mut self, store: &mut Simulated, opening: Opening, life: u64) -> Result<End, String> {
        let maker = self.maker();
        let random = &mut self.random;
        store.set_schedule(random.random());
        let cut = random.random_bool(0.6) && self.features.has(Feature::PowerCuts)
            || random.random_bool(0.4) && self.features.has(Feature::Kills);
        let costs = cut || self.features.has(Feature::CpuCosts);
        store.set_costs(if costs { COSTS } else { CpuCosts::default() });
        let tasks = log_uniform(random, 1, TASKS_MAX);
        let steps = log_uniform(random, 10, STEPS_MAX).min(OPERATIONS_MAX / tasks);
        let reads_fail = self.features.has(Feature::ReadErrors);
        if reads_fail {
            self.medium.fail_reads(log_uniform(random, READS_PER_ERROR.start, READS_PER_ERROR.end));
            // Pages that could not be freed stay allocated, as after a crash.
            self.has_crashed = true;
        }
        let is_alone = tasks == 1;
        let tasks: Vec<_> = (0..tasks)
            .map(|task| {
                let (maker, operator) = (maker.clone(), self.operator.clone());
                let seed = random.random::<u64>() / 1000 * 1000 + life * 100 + task;
                store.spawn(move |db| {
                    Work::new(db, &maker, &operator, opening.durability, (seed, is_alone)).run(steps)
                })
            })
            .collect();
        if cut {
            let span = log_uniform(random, 100, 300_000);
            store.run_for(Duration::from_micros(span));
        } else {
            store.run_until_idle();
        }
        for task in tasks {
            if task.is_finished() {
                let done = task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                self.counts.add_all(&done.map_err(text)?);
            } else if !cut {
                return Err("tasks wait for each other".into());
            }
        }
        self.operator.set_failing(false);
        if reads_fail {
            self.medium.heal();
        }
        if let Some(number) = self.shared.get().unannounced() {
            return Err(format!("the campaign is wrong: nothing announced the changes of commit {number}"));
        }
        if cut {
            return Ok(End::CutShort);
        }
        if reads_fail && !store.run(sees_all) {
            return Ok(End::Killed);
        }
        match self.verify(store) {
            // Once reads have failed, the store may refuse any call until it is opened again.
            Err(Stop::Error(_)) if reads_fail => return Ok(End::Killed),
            verified => verified.map_err(text)?,
        }
        let kills = self.features.has(Feature::Kills) && self.random.random();
        Ok(if kills { End::Killed } else { End::Closed })
    }

    fn verify(&mut self, store: &mut Simulated) -> Result<(), Stop> {
        let (shared, slots, has_crashed) = (self.shared.clone(), self.slots.clone(), self.has_crashed);
        let mut random = Pcg64::seed_from_u64(self.random.random());
        store.run(move |db| verify(db, &shared, &slots, &mut random, has_crashed))
    }

    /// Ends a life; how it ended.
    fn end(&mut self, mut store: Simulated, mut end: End) -> Result<End, String> {
        self.slots.forget();
        if end == End::Closed {
            let shared = self.shared.clone();
            let closed = quietly(|| store.run(move |db| shared.durable(|| db.clone().close())));
            match closed {
                Ok(Ok(())) => {}
                // The store may have refused all since a read failed.
                Ok(Err(_)) if self.features.has(Feature::ReadErrors) => end = End::Killed,
                failed => {
                    store.abandon();
                    let what = failed.and_then(|closed| closed.map_err(text)).err().unwrap_or_default();
                    return Err(format!("closing: {what}"));
                }
            }
        }
        if end == End::CutShort && self.features.has(Feature::PowerCuts) {
            self.medium.power_cut(&mut self.random);
        }
        store.abandon();
        self.medium.power_on();
        self.has_crashed |= end != End::Closed;
        Ok(end)
    }

    /// Opens the store, and compares it with its history.
    fn open(&mut self, opening: Opening, end: End) -> Result<Simulated, String> {
        let open = |opening| Simulated::open(self.builder(opening), CpuCosts::default());
        let opened = match open(opening) {
            // Trees may need more memory than the least.
            Err(Error::Options(_)) => open(self.largest_opening),
            opened => {
                if opening.cache_bytes > self.largest_opening.cache_bytes {
                    self.largest_opening = opening;
                }
                opened
            }
        };
        let mut store = opened.map_err(|error| format!("refused with {opening:?}: {error}"))?;
        store.set_turns_max(TURNS_MAX);
        let (acknowledged, newest) = self.shared.bounds();
        let last = store.run(last_commit);
        let least = if end == End::Closed { newest } else { acknowledged };
        if !(least..=newest).contains(&last) {
            return Err(format!("opened with {last} commits, not {least} to {newest}"));
        }
        let content = self.shared.get().content(last);
        self.shared = Shared::go_on(&Tape::default(), last, Arc::clone(&content));
        let slots = self.slots.clone();
        let mut random = Pcg64::seed_from_u64(self.random.random());
        let compared = store.run(move |db| {
            slots.attach(db, &content)?;
            same(db, &content, &slots, &mut random)?;
            Ok::<_, Stop>(db.check().map(drop)?)
        });
        if let Err(stop) = compared {
            self.slots.forget();
            store.abandon();
            return Err(stop.to_string());
        }
        Ok(store)
    }

    /// Whether each backup equals a state of the store between its beginning and its end.
    fn check_copies(&mut self, copies: Vec<(Disk, RangeInclusive<u64>)>) -> Result<(), String> {
        for (disk, between) in copies {
            let builder = copy_on(&disk, self.features.has(Feature::PublicLayout))
                .merge_operator(self.operator.clone());
            let opened = Simulated::open(builder, CpuCosts::default());
            let mut copy = opened.map_err(|error| format!("a backup cannot be opened: {error}"))?;
            let contents: Vec<_> = between.map(|number| self.shared.get().content(number)).collect();
            let (slots, seed) = (self.slots.clone(), self.random.random());
            let is_one = copy.run(move |db: &Db| {
                let mut last = Ok(());
                for content in contents {
                    last = same(db, &content, &slots, &mut Pcg64::seed_from_u64(seed));
                    if !matches!(last, Err(Stop::Wrong(_))) {
                        break;
                    }
                }
                last
            });
            is_one.map_err(|stop| format!("a backup differs from the store: {stop}"))?;
            copy.abandon();
            self.counts.add("copies", 1);
        }
        Ok(())
    }
}

/// Whether every commit of the log can be seen. One that failed while it was applied never can, nor can later
/// ones.
fn sees_all(db: &Db) -> bool {
    db.snapshot().is_ok_and(|snapshot| commit_of(&snapshot) == last_commit(db))
}

fn text(what: impl std::fmt::Display) -> String {
    what.to_string()
}
