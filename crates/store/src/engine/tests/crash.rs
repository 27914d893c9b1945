//! The contract: with k commits acknowledged as durable and n submitted, recovery yields the state after exactly j commits in order, k <= j <= n.
//!
//! A store is worked on by tasks on several workers; from time to time the drive's bytes are noted, as a power cut would find them. Afterwards, when every commit's number is known, each of
//! these states is cut in several ways, opened and compared. One of them is where the story goes on, for several lives.
//! FLASHGRAIN_CRASH_SEEDS says how many stories there are; FLASHGRAIN_CRASH_FIRST is the first one's seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use flashgrain_ssdsim::fault::{PowerCut, Survivors, Tear};
use flashgrain_ssdsim::{Image, SimDevice};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::world::{Oracle, Work, content, create, drive, open, options, world};
use crate::layout::SyncMethod;
use crate::worker::Harness;

const LIVES: u32 = 3;
const TASKS: u64 = 12;
const COMMITS: u32 = 40;

/// States that are looked at in each life.
const STATES: usize = 12;

/// The drive at a moment, and what had been promised by then.
struct Moment {
    image: Image,
    durable: u64,
    given: u64,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
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
    oracle: Arc<Mutex<Oracle>>,
    states: u64,
}

impl Story {
    /// Work on a store that `engine` has open, noting moments.
    fn live(
        &mut self,
        harness: &mut Harness,
        device: &SimDevice,
        engine: Arc<crate::engine::Engine>,
    ) -> Vec<Moment> {
        for task in 0..TASKS {
            let work = Work {
                engine: Arc::clone(&engine),
                oracle: Arc::clone(&self.oracle),
                seed: self.random.random::<u32>().into(),
                commits: COMMITS,
            };
            let _goes_on = harness.spawn(task as usize % self.workers, move || work.run());
        }
        let checkpoints = Arc::clone(&engine);
        let count = self.random.random_range(1..6);
        let _goes_on = harness.spawn(0, move || (0..count).for_each(|_| checkpoints.checkpoint().unwrap()));
        let (mut moments, mut turns) = (Vec::new(), 0_u64);
        while harness.turn() {
            turns += 1;
            // Reservoir: every turn is as likely to be kept.
            let place = if moments.len() < STATES {
                moments.len()
            } else {
                self.random.random_range(0..turns) as usize
            };
            if place < STATES {
                let moment = Moment {
                    image: device.image(),
                    durable: self.oracle.lock().unwrap().durable,
                    given: engine.parts().log.last().0,
                };
                if place < moments.len() { moments[place] = moment } else { moments.push(moment) }
            }
        }
        assert_eq!(harness.unfinished(), 0, "seed {}: tasks wait for each other", self.seed);
        moments
    }

    /// Opens what a cut leaves of a moment; the last commit that it contains.
    fn look(&mut self, moment: &Moment, cut: &PowerCut, device: &Arc<SimDevice>) -> u64 {
        device.restore(&moment.image.after(cut)).unwrap();
        let (mut harness, given) = world(device, self.workers, options());
        let case = format!("seed {}, {cut:?}, {} durable of {}", self.seed, moment.durable, moment.given);
        let engine = open(&mut harness, given).unwrap_or_else(|error| panic!("{case}: {error}"));
        let last = engine.parts().log.last().0;
        let looked = Arc::clone(&engine);
        let got = harness.run(move || content(&looked));
        assert!((moment.durable..=moment.given).contains(&last), "{case}: {last} were recovered");
        let expected = self.oracle.lock().unwrap().content(last);
        if got != expected {
            let differ: Vec<_> = differences(&got, &expected).take(3).collect();
            panic!(
                "{case}: of {last} commits, {} records instead of {}: {differ:?}",
                got.len(),
                expected.len()
            );
        }
        self.states += 1;
        last
    }
}

fn differences<'a, K: Ord, V: PartialEq>(
    got: &'a BTreeMap<K, V>,
    expected: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, Option<&'a V>, Option<&'a V>)> {
    let keys = got.keys().chain(expected.keys());
    keys.map(|key| (key, got.get(key), expected.get(key))).filter(|(_, got, expected)| got != expected)
}

/// Lives one after another; how many states were looked at.
fn story(seed: u64) -> u64 {
    let mut random = Pcg64::seed_from_u64(seed);
    let workers = random.random_range(1..4);
    let sync_method =
        [SyncMethod::Dsync, SyncMethod::LinkedFlush, SyncMethod::Fdatasync][random.random_range(0..3)];
    let mut story = Story { seed, random, workers, oracle: Arc::default(), states: 0 };
    let (device, other) = (drive(seed), drive(seed + 1));
    let (mut harness, given) = world(&device, workers, options());
    let mut engine = create(&mut harness, given, sync_method);
    for life in 0..LIVES {
        let moments = story.live(&mut harness, &device, engine);
        for moment in &moments {
            for _ in 0..2 {
                let cut = random_cut(&mut story.random);
                story.look(moment, &cut, &other);
            }
        }
        if life + 1 == LIVES {
            break;
        }
        let which = story.random.random_range(0..moments.len());
        let cut = random_cut(&mut story.random);
        let last = story.look(&moments[which], &cut, &other);
        let mut oracle = story.oracle.lock().unwrap();
        oracle.commits.split_off(&(last + 1));
        oracle.durable = last;
        drop(oracle);
        device.restore(&moments[which].image.after(&cut)).unwrap();
        let given;
        (harness, given) = world(&device, workers, options());
        engine = open(&mut harness, given).unwrap();
    }
    story.states
}

#[test]
fn a_power_cut_leaves_a_prefix_with_everything_acknowledged() {
    let first = number("FLASHGRAIN_CRASH_FIRST", 0);
    let states: u64 = (first..first + number("FLASHGRAIN_CRASH_SEEDS", 4)).map(story).sum();
    println!("{states} states");
}
