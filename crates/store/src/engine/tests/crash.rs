//! The contract: with k commits acknowledged as durable and n submitted, recovery yields the state after
//! exactly j commits in order, k <= j <= n.
//!
//! A store is worked on by tasks on several workers. In one test the drive's bytes are noted now and then, as
//! a power cut would find them; afterwards, when every commit's number is known, each of these states is cut
//! in several ways, opened and compared. In the other the power fails at an event of the drive, so that the
//! store meets errors wherever it is, its creation included. Either way, the story goes on from the recovered
//! state, for several lives.
//!
//! FLASHGRAIN_CRASH_SEEDS is the number of stories, FLASHGRAIN_CRASH_FIRST the first one's seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use flashgrain_ssdsim::fault::{Fault, FaultKind, PowerCut, Survivors, Tear, Trigger};
use flashgrain_ssdsim::{Image, SimDevice};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::world::{
    Content, Oracle, Work, content, create, drive, make_trees, open, options, own_key, world,
};
use crate::Error;
use crate::engine::Engine;
use crate::layout::SyncMethod;
use crate::worker::Harness;

const LIVES: u64 = 3;
const TASKS: u64 = 12;
const COMMITS: u32 = 60;

/// States that are looked at in each life.
const STATES: usize = 10;

/// The drive at a moment, and the commits that had been acknowledged by then.
struct Moment {
    image: Image,
    durable: u64,
    given: u64,
}

/// Counts of the states that crashes hit, to check that they tested something.
#[derive(Debug, Default)]
struct Coverage {
    states: u64,
    replayed: u64,
    torn: u64,
    checkpoints: u64,
    evicted_bytes: u64,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn seeds(default: u64) -> std::ops::Range<u64> {
    let first = number("FLASHGRAIN_CRASH_FIRST", 0);
    first..first + number("FLASHGRAIN_CRASH_SEEDS", default)
}

fn random_cut(random: &mut Pcg64) -> PowerCut {
    let survivors = match random.random_range(0..6) {
        0 => Survivors::None,
        1 => Survivors::All,
        2 => Survivors::First(random.random_range(0..30)),
        3 => Survivors::AllBut(random.random_range(0..30)),
        _ => Survivors::Random,
    };
    let tear = match random.random_range(0..4) {
        0 => Tear::Whole,
        1 => Tear::Shorn { unit_bytes: 4096 },
        2 => Tear::Shorn { unit_bytes: 512 },
        _ => Tear::Prefix { unit_bytes: 512 },
    };
    PowerCut { survivors, tear, in_flight: random.random_bool(0.7), seed: random.random() }
}

/// A story's store, and all that was ever committed to it.
struct Story {
    seed: u64,
    random: Pcg64,
    workers: usize,
    sync_method: SyncMethod,
    life: u64,
    oracle: Arc<Mutex<Oracle>>,
    coverage: Coverage,
}

impl Story {
    fn new(seed: u64) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        let workers = random.random_range(1..4);
        let sync_method =
            [SyncMethod::Dsync, SyncMethod::LinkedFlush, SyncMethod::Fdatasync][random.random_range(0..3)];
        Self {
            seed,
            random,
            workers,
            sync_method,
            life: 0,
            oracle: Arc::default(),
            coverage: Coverage::default(),
        }
    }

    /// Has tasks begin to work on a store.
    fn begin(&mut self, harness: &Harness, engine: &Arc<Engine>, all_marked: bool) {
        self.life += 1;
        for task in 0..TASKS {
            let work = Work {
                engine: Arc::clone(engine),
                oracle: Arc::clone(&self.oracle),
                task,
                life: self.seed << 8 | self.life,
                commits: COMMITS,
                all_marked,
            };
            let _goes_on = harness.spawn(task as usize % self.workers, move || work.run());
        }
    }

    fn end(&mut self, harness: &Harness, engine: &Engine) {
        assert_eq!(harness.unfinished(), 0, "seed {}: tasks wait for each other", self.seed);
        let stats = engine.stats();
        self.coverage.checkpoints += stats.checkpoints.completed;
        self.coverage.evicted_bytes += stats.written.by_stream_bytes[0];
    }

    /// The content of a store that was just opened, and the last commit in it. The content must be that of
    /// all commits up to this one, which must not be before `durable`.
    fn look(
        &mut self,
        harness: &mut Harness,
        engine: &Arc<Engine>,
        durable: u64,
        given: u64,
        case: &str,
    ) -> u64 {
        let recovery = engine.recovery();
        self.coverage.states += 1;
        self.coverage.replayed += recovery.records;
        self.coverage.torn += u64::from(recovery.torn);
        let last = engine.parts().log.last().0;
        let looked = Arc::clone(engine);
        let got = harness.run(move || content(&looked));
        let mut oracle = self.oracle.lock().unwrap();
        oracle.hear(&got);
        assert!((durable..=given).contains(&last), "{case}: {last} were recovered, of {durable} to {given}");
        let expected = oracle.content(last);
        let got: BTreeMap<_, _> = got.into_iter().map(|(key, (_, value))| (key, value)).collect();
        if got != expected {
            let differ: Vec<_> = differences(&got, &expected).take(3).collect();
            panic!("{case}: of {last} commits, {} records, not {}: {differ:?}", got.len(), expected.len());
        }
        last
    }

    /// Commits that were not recovered never happened.
    fn forget_after(&mut self, last: u64) {
        let mut oracle = self.oracle.lock().unwrap();
        drop(oracle.commits.split_off(&(last + 1)));
        oracle.durable = last;
        oracle.unheard.clear();
    }
}

fn differences<'a>(
    got: &'a Content,
    expected: &'a Content,
) -> impl Iterator<Item = (String, Option<String>, Option<String>)> {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(&bytes[..bytes.len().min(30)]).into_owned();
    got.keys().chain(expected.keys()).filter(|key| got.get(*key) != expected.get(*key)).map(move |key| {
        (format!("{}/{}", key.0, text(&key.1)), got.get(key).map(text), expected.get(key).map(text))
    })
}

/// Works until no task can go on, noting moments.
fn note_moments(
    story: &mut Story,
    harness: &mut Harness,
    device: &SimDevice,
    engine: &Engine,
) -> Vec<Moment> {
    let (mut moments, mut turns) = (Vec::new(), 0_u64);
    while harness.turn() {
        turns += 1;
        // Every turn is as likely to be kept as any other.
        let place = match moments.len() {
            few if few < STATES => few,
            _ => story.random.random_range(0..turns) as usize,
        };
        if place < STATES {
            let durable = story.oracle.lock().unwrap().durable;
            let moment = Moment { image: device.image(), durable, given: engine.parts().log.last().0 };
            if place < moments.len() { moments[place] = moment } else { moments.push(moment) }
        }
    }
    moments
}

/// Opens the store that a power cut leaves of a moment, and checks it.
fn look_at(
    story: &mut Story,
    moment: &Moment,
    cut: &PowerCut,
    device: &Arc<SimDevice>,
) -> (u64, Harness, Arc<Engine>) {
    device.restore(&moment.image.after(cut)).unwrap();
    let (mut harness, given) = world(device, story.workers, options());
    let case = format!("seed {}, life {}, {cut:?}", story.seed, story.life);
    let engine = open(&mut harness, given).unwrap_or_else(|error| panic!("{case}: {error}"));
    let last = story.look(&mut harness, &engine, moment.durable, moment.given, &case);
    (last, harness, engine)
}

#[test]
fn what_a_power_cut_leaves_of_a_moment_is_a_prefix_with_everything_acknowledged() {
    let mut total = Coverage::default();
    for seed in seeds(3) {
        let mut story = Story::new(seed);
        let (mut device, mut other) = (drive(seed), drive(seed));
        let (mut harness, given) = world(&device, story.workers, options());
        let mut engine = create(&mut harness, given, story.sync_method).unwrap();
        for life in 0..LIVES {
            story.begin(&harness, &engine, false);
            let moments = note_moments(&mut story, &mut harness, &device, &engine);
            story.end(&harness, &engine);
            for moment in &moments {
                let cut = random_cut(&mut story.random);
                look_at(&mut story, moment, &cut, &other);
            }
            if life + 1 < LIVES {
                let which = story.random.random_range(0..moments.len());
                let cut = random_cut(&mut story.random);
                let last;
                (last, harness, engine) = look_at(&mut story, &moments[which], &cut, &other);
                std::mem::swap(&mut device, &mut other);
                story.forget_after(last);
            }
        }
        total.add(&story.coverage);
    }
    println!("{total:?}");
    total.check();
}

/// Creates or opens, works, and ends with the power cut at an event, if it comes to it; the drive's events by
/// then.
fn live_until(story: &mut Story, device: &Arc<SimDevice>, event: Option<u64>, is_new: bool) -> u64 {
    if let Some(event) = event {
        let cut = random_cut(&mut story.random);
        device.inject(Fault::new(FaultKind::PowerCut(cut)).at(Trigger::Event(event)));
    }
    let (mut harness, given) = world(device, story.workers, options());
    let opened =
        if is_new { create(&mut harness, given, story.sync_method) } else { open(&mut harness, given) };
    match opened {
        Ok(engine) => {
            story.begin(&harness, &engine, true);
            harness.run_until_idle();
            story.end(&harness, &engine);
        }
        Err(error) => {
            assert!(!device.answers(), "seed {}: {error}", story.seed);
            harness.run_until_idle();
        }
    }
    device.events()
}

#[test]
fn after_a_power_cut_at_any_event_there_is_a_prefix_with_everything_acknowledged() {
    let mut total = Coverage::default();
    for seed in seeds(40) {
        let dry = live_until(&mut Story::new(seed), &drive(seed), None, true);
        let (mut story, device) = (Story::new(seed), drive(seed));
        // Creation is short: now and then the power fails there.
        let last_event = if seed % 6 == 5 { dry / 20 } else { dry };
        let mut event = story.random.random_range(0..last_event);
        let mut is_new = true;
        for life in 0..LIVES {
            live_until(&mut story, &device, Some(event), is_new);
            let case = format!("seed {seed}, life {life}, event {event}");
            device.disarm_faults();
            device.power_on();
            let (mut harness, given) = world(&device, story.workers, options());
            let opened = open(&mut harness, given.clone());
            let engine = match opened {
                Err(Error::NotAStore { .. }) if is_new && story.oracle.lock().unwrap().durable == 0 => {
                    create(&mut harness, given, story.sync_method).unwrap()
                }
                opened => opened.unwrap_or_else(|error| panic!("{case}: {error}")),
            };
            let durable = story.oracle.lock().unwrap().durable;
            let last = story.look(&mut harness, &engine, durable, u64::MAX, &case);
            story.forget_after(last);
            let looked = Arc::clone(&engine);
            harness.run(move || make_trees(&looked)).unwrap();
            // From now on a store exists, whatever happens.
            is_new = false;
            event = device.events() + story.random.random_range(0..dry);
        }
        total.add(&story.coverage);
    }
    println!("{total:?}");
    total.check();
}

impl Coverage {
    fn add(&mut self, other: &Self) {
        self.states += other.states;
        self.replayed += other.replayed;
        self.torn += other.torn;
        self.checkpoints += other.checkpoints;
        self.evicted_bytes += other.evicted_bytes;
    }

    /// Nothing is shown by stores to which nothing happened.
    fn check(&self) {
        assert!(self.replayed > self.states && self.torn > 0, "{self:?}");
        assert!(self.checkpoints > 10 && self.evicted_bytes > 1 << 20, "{self:?}");
    }
}

/// Timestamp and value of every key of every tree.
type Got = BTreeMap<(usize, Vec<u8>), (u64, Vec<u8>)>;

impl Oracle {
    /// Finds the numbers of commits that never returned by the marks that they left.
    pub fn hear(&mut self, got: &Got) {
        for (task, writes) in &self.unheard {
            let mark = (0, own_key(*task));
            let Some((timestamp, value)) = got.get(&mark) else { continue };
            if writes
                .iter()
                .any(|(tree, key, new)| (*tree, key) == (0, &mark.1) && new.as_ref() == Some(value))
            {
                self.commits.insert(*timestamp, writes.clone());
            }
        }
    }
}
