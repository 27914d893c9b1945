//! Tests whether the campaigns find known bugs: every planted bug, one at a time.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use flashgrain::IndexKind;
use flashgrain::testing::{Bug, Finder};

use super::later::Later;
use super::run::Campaign;
use super::{
    Counting, Crash, Decay, Errors, Failure, Faults, Histories, InBlocks, Kind, Listing, Lives, OfKind,
    Swarm, Tokens,
};
use crate::media::Choices;
use crate::swarm::Feature;
use crate::world::{Counts, Habits};

/// Extent of the search for a planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hunt {
    /// The first seed of every campaign.
    pub seed: u64,
    /// Turns of the campaigns before it counts as not caught.
    pub seeds: u64,
}

impl Default for Hunt {
    fn default() -> Self {
        Self { seed: 0, seeds: 120 }
    }
}

/// Result of the search for one bug.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The planted bug.
    pub bug: Bug,
    /// The campaign that caught it, and the failure that the campaign saw.
    pub caught: Option<(&'static str, Failure)>,
    /// Cases until then.
    pub cases: u64,
    /// Number of times that the bug took effect.
    pub strikes: u64,
}

/// States of a life that are looked at: few of many lives find more than many of few.
const STATES_PER_LIFE: u64 = 250;

/// Of lives in which the log moves, only these moments.
const STATES_PER_MOVING_LIFE: u64 = 1500;

/// A campaign, and how many of its seeds are played in turn with others.
type Turn = (Box<dyn Campaign>, u64);

/// With LSM-trees.
fn lsm(campaign: impl Campaign + 'static, seeds: u64) -> Turn {
    (Box::new(OfKind::new(IndexKind::Lsm, campaign)), seeds)
}

/// With Bε-trees.
fn be_tree(campaign: impl Campaign + 'static, seeds: u64) -> Turn {
    (Box::new(OfKind::new(IndexKind::BeTree, campaign)), seeds)
}

/// With nodes in blocks.
fn in_blocks(campaign: impl Campaign + 'static, seeds: u64) -> Turn {
    (Box::new(InBlocks::new(campaign)), seeds)
}

/// With enough records that most leaves are not in memory.
fn in_many_blocks() -> Turn {
    in_blocks(Crash { habits: Some(Habits::many_records()), states_per_life: 20, ..crashes() }, 4)
}

/// With reads that take so long that the segment that is read is freed meanwhile.
fn in_stalled_blocks() -> Turn {
    let habits = Habits { checkpoint: 0.05, stalls: 1.0, sync: 0.1, ..Habits::many_records() };
    in_blocks(Crash { habits: Some(habits), states_per_life: 1, ..crashes() }, 1)
}

fn crashes() -> Crash {
    let choices = Choices { subsets: 2, tears: 3 };
    Crash { choices, states_per_life: STATES_PER_LIFE, ..Crash::default() }
}

/// These cost little, as hardly any crash states are looked at.
fn of_many_records() -> Turn {
    lsm(Crash { habits: Some(Habits::many_records()), states_per_life: 10, ..crashes() }, 4)
}

/// Crashes while the log moves, or the device becomes shorter.
fn of_moving_lives(about: Crash) -> Turn {
    (Box::new(Crash { states_per_life: STATES_PER_MOVING_LIFE, ..about }), 1)
}

fn lives() -> Turn {
    (Box::new(Lives::default()), 1)
}

fn listing() -> Turn {
    (Box::new(Listing), 4)
}

/// Stores on which everything is drawn, with some features and without others.
fn swarm(with: &[Feature], without: &[Feature]) -> Turn {
    (Box::new(Swarm { with: with.to_vec(), without: without.to_vec() }), 1)
}

/// The same with trees of one kind.
fn swarm_of(kind: Feature, with: &[Feature]) -> Turn {
    let kinds = [Feature::BTrees, Feature::Blocks, Feature::LsmTrees, Feature::BeTrees];
    let others: Vec<Feature> = kinds.into_iter().filter(|other| *other != kind).collect();
    swarm(&[&[kind], with].concat(), &others)
}

/// From this seed on.
fn after(first_seed: u64, (campaign, seeds): Turn) -> Turn {
    (Box::new(Later { first_seed, campaign }), seeds)
}

/// Hardly any commit waits, so that the log is written far beyond its durable end.
fn ahead_of_log() -> Habits {
    Habits { tasks: 12, keys: 100, value_bytes: 1500, overflow: 0.0, sync: 0.05, ..Habits::default() }
}

fn lives_of(habits: Habits) -> Lives {
    Lives { habits: Some(habits), ..Lives::default() }
}

/// Lives of LSM-trees with many names, which are used again between a checkpoint and the part of the log that
/// a memtable keeps.
fn lives_of_many_names() -> Turn {
    lsm(lives_of(Habits { steps: 80, checkpoint: 0.05, value_bytes: 100, ..Habits::many_trees() }), 1)
}

/// The campaigns of a bug that those of its finder are not likely to find, or would take long to.
fn own_campaigns(bug: Bug) -> Option<Vec<Turn>> {
    let campaigns: Vec<Turn> = match bug {
        Bug::CutBeforeSuperblock => vec![of_moving_lives(Crash::about_cuts())],
        Bug::LogMovedBeforeSuperblock | Bug::OldRingFreedTooEarly => {
            vec![of_moving_lives(Crash::about_moves())]
        }
        Bug::MovedOntoStaleCopies => vec![(Box::new(Crash::about_moves_into_growth()), 1)],
        Bug::CatalogReplayedOverNewer => vec![lives_of_many_names()],
        Bug::LogWindowNotWatched => vec![(Box::new(lives_of(ahead_of_log())), 1)],
        Bug::ErasedNotFlushed
        | Bug::LoadingPageLeftOutOfMap
        | Bug::MapHasLaterPlaces
        | Bug::StaysClosedWhenOpened
        | Bug::TornRecordKept => vec![lives()],
        Bug::BlockWaitsForBlocks
        | Bug::BorderKeyLost
        | Bug::TableSweptWhileRead
        | Bug::VersionsSplitOverTables => vec![of_many_records()],
        Bug::OperandsJoinedAcrossSnapshot => {
            vec![lsm(Errors { habits: Some(Habits::many_records()) }, 1), lsm(Errors { habits: None }, 1)]
        }
        Bug::OverflowNotHeldForReplay => vec![lsm(Lives::default(), 1)],
        Bug::RangeRemovalNotValidated => vec![lsm(Tokens, 2), (Box::new(Tokens), 2)],
        Bug::ReadErrorEndsTable => vec![lsm(Faults::new(Kind::ReadErrorTransient), 1)],
        Bug::FrozenMemtableNotReplayed => {
            vec![swarm_of(Feature::LsmTrees, &[Feature::Flash, Feature::PowerCuts])]
        }
        Bug::FrozenBufferNotReplayed => {
            vec![after(280, swarm_of(Feature::BeTrees, &[Feature::Flash, Feature::PowerCuts]))]
        }
        Bug::ReplayedRangeLeftInTables => {
            let with = [
                Feature::LsmTrees,
                Feature::Ranges,
                Feature::SeveralTrees,
                Feature::EarlyMemtables,
                Feature::Kills,
                Feature::LittleRoom,
                Feature::FewTasks,
            ];
            let without =
                [Feature::BTrees, Feature::Blocks, Feature::BeTrees, Feature::ReadErrors, Feature::NoLog];
            vec![after(420, swarm(&with, &without))]
        }
        Bug::CutAmidCommits | Bug::CutWithoutMemtables => vec![swarm(
            &[Feature::NoLog, Feature::Kills, Feature::SeveralTrees, Feature::LsmTrees, Feature::Preempted],
            &[],
        )],
        Bug::CleanerMovesStale => vec![swarm_of(Feature::BTrees, &[Feature::LittleRoom])],
        Bug::RangeOfNeighbourTaken => vec![swarm_of(Feature::BeTrees, &[Feature::Ranges])],
        Bug::ScanSkipsLastKeyOfTable => {
            vec![swarm_of(Feature::LsmTrees, &[Feature::Scans, Feature::EagerJobs])]
        }
        Bug::BlockOutlivesImage | Bug::MovedImageTakenForDamage => vec![in_stalled_blocks()],
        // It takes bounds beyond the longest key, where keys are as long.
        Bug::LongBoundCut => vec![swarm(
            &[Feature::BeTrees, Feature::LongKeys, Feature::Ranges],
            &[Feature::BTrees, Feature::Blocks, Feature::OneLength],
        )],
        Bug::NewestMemtableFlushedFirst | Bug::FlushedMemtableStays => vec![lsm(Counting, 1)],
        Bug::BackupMissesNewTree => vec![listing()],
        // One seed in some hundreds finds it, at little cost.
        Bug::WayDownNotValidated => vec![after(310, be_tree(Tokens, 2))],
        _ => return None,
    };
    Some(campaigns)
}

/// The campaigns that should find a bug, the cheapest first.
fn campaigns(bug: Bug) -> Vec<Turn> {
    if let Some(campaigns) = own_campaigns(bug) {
        return campaigns;
    }
    let crash = || -> Turn { (Box::new(crashes()), 1) };
    let tokens = || -> Turn { (Box::new(Tokens), 2) };
    let counting = || -> Turn { (Box::new(Counting), 1) };
    match bug.finder() {
        Finder::Errors => vec![(Box::new(Errors { habits: None }), 10)],
        Finder::Decay => vec![(Box::new(Decay::default()), 1)],
        Finder::Isolation => vec![counting(), (Box::new(Histories), 4), tokens(), crash()],
        Finder::Lsm => vec![
            lsm(Counting, 1),
            lsm(Tokens, 2),
            lsm(Histories, 2),
            lsm(crashes(), 1),
            lsm(Errors { habits: None }, 10),
            lsm(Errors { habits: Some(Habits::many_records()) }, 10),
            of_many_records(),
            lsm(Lives::default(), 1),
        ],
        Finder::BeTree => vec![
            be_tree(Counting, 1),
            be_tree(Tokens, 2),
            be_tree(Histories, 2),
            be_tree(crashes(), 1),
            be_tree(Errors { habits: None }, 10),
            be_tree(Errors { habits: Some(Habits::many_records()) }, 10),
            be_tree(Crash { habits: Some(Habits::many_records()), states_per_life: 10, ..crashes() }, 4),
            be_tree(Lives::default(), 1),
        ],
        Finder::LsmDecay => vec![lsm(Decay::default(), 1)],
        Finder::Blocks => vec![
            in_blocks(Counting, 1),
            in_blocks(Tokens, 2),
            in_many_blocks(),
            in_blocks(Errors { habits: Some(Habits::many_records()) }, 10),
            in_blocks(Lives::default(), 1),
        ],
        Finder::BlocksDecay => vec![in_blocks(Decay::default(), 1)],
        Finder::Swarm => vec![(Box::new(Swarm::default()), 1)],
        Finder::Model => vec![counting(), tokens(), listing(), crash(), lives()],
        _ => vec![crash(), lives()],
    }
}

impl Hunt {
    /// Plants a bug and plays the campaigns in turn, seed after seed, until one of them finds it.
    pub fn run(&self, bug: Bug) -> Trial {
        let campaigns = campaigns(bug);
        let planted = bug.plant();
        let mut counts = Counts::default();
        let mut caught = None;
        let seeds = |turn: u64| {
            campaigns.iter().flat_map(move |(campaign, each)| {
                (turn * each..(turn + 1) * each).map(move |seed| (campaign, seed))
            })
        };
        for (campaign, seed) in (self.seed..self.seed + self.seeds).flat_map(seeds) {
            match campaign.play(seed, &|| true) {
                Ok(more) => counts.add_all(&more),
                Err(failure) => {
                    caught = Some((campaign.name(), failure));
                    break;
                }
            }
        }
        Trial { bug, caught, cases: counts.cases() + 1, strikes: planted.strikes() }
    }

    /// Every bug in turn, on several threads; `show` is called with each trial as soon as it is decided.
    pub fn run_all(&self, bugs: &[Bug], jobs: usize, show: &(dyn Fn(&Trial) + Sync)) -> Vec<Trial> {
        let (next, trials) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let trial = self.run(*bug);
                let mut trials = trials.lock().unwrap_or_else(PoisonError::into_inner);
                show(&trial);
                trials.push(trial);
            }
        };
        std::thread::scope(|scope| {
            (1..jobs).for_each(|_| _ = scope.spawn(work));
            work();
        });
        trials.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trial {
    /// Heading of the columns that `Display` writes.
    pub const HEAD: &str = "bug                           found by      cases  strikes  failure";
}

impl fmt::Display for Trial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bug, caught, cases, strikes } = self;
        match caught {
            Some((campaign, failure)) => {
                write!(formatter, "{:29} {campaign:9} {cases:>7} {strikes:>8}  {failure}", bug.name())
            }
            None => write!(formatter, "{:29} {:9} {cases:>7} {strikes:>8}", bug.name(), "SURVIVED"),
        }
    }
}
