//! `flashgrain-simtest`: campaigns against the store's contract.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use flashgrain::IndexKind;
use flashgrain::testing::Bug;
use flashgrain_device::calendar_seconds;
use flashgrain_simtest::campaign::{
    AnyKind, Campaign, Counting, Counts, Crash, Decay, Errors, Extent, Failure, Faults, Full, Histories,
    Hunt, InBlocks, Inside, Kind, Listing, Lives, Nth, OfKind, Report, Rot, Swarm, Tokens, Trial, run,
    shrink,
};
use flashgrain_simtest::swarm::Feature;
use flashgrain_simtest::world::Habits;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Campaigns against the store's contract, on simulated drives: nothing on this machine is touched.
///
/// Every case is drawn from a seed; a failure prints the seed that leads to it, and the smallest case like it
/// that was found. Exit code 0: all promises were kept; 1: one was broken; 130: ended by Ctrl-C before that.
/// A second Ctrl-C does not wait for cases that are under way, and says which seeds they belong to.
#[derive(Debug, Parser)]
#[command(name = "flashgrain-simtest", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    campaign: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Recover from everything that a power cut could leave of a store, at every moment of its life and of
    /// its recoveries; cases are distinct images of the drive.
    Crash(Length),
    /// Use stores on drives that do something wrong: one kind of fault after the other.
    Faults {
        /// Only these kinds.
        #[arg(long, value_delimiter = ',', value_parser = parse_kind)]
        only: Vec<Kind>,
        #[command(flatten)]
        length: Length,
    },
    /// Let the n-th request fail, in each of four ways, for every n of a life.
    Nth(Length),
    /// Let pages be unreadable, memory be short and others' writes fail at any place inside of a store.
    Inside(Length),
    /// Flip every bit of stores of one mebibyte; a seed is a sector, 2,048 of them are a store.
    Rot {
        /// Flip one in this number of bits.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        every: u64,
        #[command(flatten)]
        length: Length,
    },
    /// Let stores crash, recover, work and crash again, several times in a row.
    Lives(Length),
    /// Let requests of data and log drives fail while a store is used, then open it again, perhaps after a
    /// power cut.
    Errors(Length),
    /// Put wrong bytes onto a store's drive, or make it shorter: flipped bits, images of other pages, older
    /// images.
    Decay(Length),
    /// Raise counters by many transactions at a time, and watch them from snapshots.
    Counting(Length),
    /// Record the reads of concurrent transactions, through crashes too, and look for anomalies; cases are
    /// histories.
    Isolation(Length),
    /// Back stores up while trees are made; cases are stores.
    Listing(Length),
    /// Move tokens between places by transactions and bulk removals, through restarts and power cuts; a case
    /// is a run of three lives.
    Tokens(Length),
    /// Keep stores full: insert until nothing more is taken, remove, insert again, close and open; cases are
    /// stores of any kind of trees.
    Full(Length),
    /// Draw everything: the features of a store, its operations and how it is read again; cases are stores
    /// with their lives. The end prints the features that were drawn, and the pairs that met.
    Swarm {
        /// Without these features.
        #[arg(long, value_delimiter = ',', value_parser = parse_feature)]
        without: Vec<Feature>,
        /// With these features.
        #[arg(long, value_delimiter = ',', value_parser = parse_feature)]
        with: Vec<Feature>,
        #[command(flatten)]
        length: Length,
    },
    /// Plant known bugs in the store, one at a time, and see whether the campaigns find them; exit code 1 if
    /// one is not found.
    Bugs(Planting),
}

fn parse_feature(name: &str) -> Result<Feature, String> {
    let names = || Feature::ALL.iter().map(|feature| feature.name()).collect::<Vec<_>>().join(", ");
    Feature::named(name).ok_or_else(|| format!("use one of {}", names()))
}

fn parse_bug(name: &str) -> Result<Bug, String> {
    let names = || Bug::ALL.iter().map(|bug| bug.name()).collect::<Vec<_>>().join(", ");
    Bug::named(name).ok_or_else(|| format!("use one of {}", names()))
}

fn parse_kind(name: &str) -> Result<Kind, String> {
    let names = || Kind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    Kind::ALL
        .iter()
        .find(|kind| kind.name() == name)
        .copied()
        .ok_or_else(|| format!("use one of {}", names()))
}

#[derive(Clone, Debug, Args)]
struct Planting {
    /// Only this bug; all there are unless given.
    #[arg(long, value_name = "NAME", value_parser = parse_bug)]
    only: Option<Bug>,
    /// Seeds of each campaign before a bug counts as not found.
    #[arg(long, default_value_t = Hunt::default().seeds)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads; one per core unless given.
    #[arg(long)]
    jobs: Option<usize>,
}

#[derive(Clone, Debug, Args)]
struct Length {
    /// Cases, such as 50000 or 10M.
    #[arg(long, default_value = "100k", value_parser = parse_count)]
    cases: u64,
    /// The first seed; the next ones follow.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads; one per core unless given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Hours after which no more cases begin; with this, however many there were.
    #[arg(long, conflicts_with = "cases")]
    hours: Option<f64>,
    /// Kind of the trees.
    #[arg(long, value_enum, default_value_t = Trees::Btree)]
    trees: Trees,
    /// Plant this bug in the store, to see whether the campaign finds it.
    #[arg(long, value_name = "NAME", value_parser = parse_bug)]
    plant: Option<Bug>,
}

/// Kinds of trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Trees {
    /// B+-trees.
    Btree,
    /// LSM-trees, whose options are drawn.
    Lsm,
    /// Bε-trees.
    BeTree,
    /// B+-trees whose nodes are in blocks.
    Blocks,
    /// These four kinds, in turn of the seeds.
    Mixed,
}

impl Trees {
    fn of<C: Campaign + 'static>(self, campaign: impl Fn() -> C) -> Box<dyn Campaign> {
        match self {
            Self::Mixed => Box::new(AnyKind::new(campaign)),
            Self::Btree => Box::new(campaign()),
            Self::Lsm => Box::new(OfKind::new(IndexKind::Lsm, campaign())),
            Self::BeTree => Box::new(OfKind::new(IndexKind::BeTree, campaign())),
            Self::Blocks => Box::new(InBlocks::new(campaign())),
        }
    }
}

/// A number, optionally with `k`, `M` or `G` after it.
fn parse_count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u64 =
        digits.parse().map_err(|_| format!("{text} is no number such as 50000, 100k or 10M"))?;
    number.checked_mul(factor).filter(|number| *number > 0).ok_or_else(|| format!("{text} is out of range"))
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().campaign {
        Command::Crash(length) => play(Crash::default, &length),
        Command::Nth(length) => play(Nth::default, &length),
        Command::Inside(length) => play(Inside::default, &length),
        Command::Rot { every, length } => play(|| Rot::every(every), &length),
        Command::Faults { only, length } => {
            let kinds = if only.is_empty() { Kind::ALL.to_vec() } else { only };
            play_all(kinds.into_iter().map(|kind| length.trees.of(|| Faults::new(kind))).collect(), &length)
        }
        Command::Lives(length) => play(Lives::default, &length),
        Command::Errors(length) => play(|| Errors { habits: None }, &length),
        Command::Decay(length) => play(Decay::default, &length),
        Command::Counting(length) => play(|| Counting, &length),
        Command::Isolation(length) => play(|| Histories, &length),
        Command::Listing(length) => play(|| Listing, &length),
        Command::Tokens(length) => play(|| Tokens, &length),
        Command::Full(length) => play_all(vec![Box::new(Full)], &length),
        Command::Swarm { without, with, length } => {
            play_all(vec![Box::new(Swarm { without, with })], &length)
        }
        Command::Bugs(planting) => Ok(plant(&planting)),
    }
}

fn play<C: Campaign + 'static>(campaign: impl Fn() -> C, length: &Length) -> anyhow::Result<ExitCode> {
    play_all(vec![length.trees.of(campaign)], length)
}

/// Prints a line for every bug as soon as it is decided.
fn plant(planting: &Planting) -> ExitCode {
    let bugs = planting.only.map_or_else(|| Bug::ALL.to_vec(), |bug| vec![bug]);
    let jobs = planting.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let hunt = Hunt { seed: planting.seed, seeds: planting.seeds };
    println!("{}", Trial::HEAD);
    let trials = hunt.run_all(&bugs, jobs.max(1), &|trial| println!("{trial}"));
    let survived = trials.iter().filter(|trial| trial.caught.is_none()).count();
    println!("{} of {} planted bugs found", trials.len() - survived, trials.len());
    if survived == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Plays one campaign after the other.
fn play_all(campaigns: Vec<Box<dyn Campaign>>, length: &Length) -> anyhow::Result<ExitCode> {
    let (stop, running) = (Arc::new(AtomicBool::new(false)), Running::default());
    stop_at_signals(&stop, &running)?;
    let end_s = length.hours.map(|hours| calendar_seconds() + (hours * 3600.0) as u64);
    let is_over = || end_s.is_some_and(|end_s| calendar_seconds() >= end_s);
    let mut all_kept = true;
    for campaign in &campaigns {
        let watched = Watched { campaign: campaign.as_ref(), running: &running, planted: length.plant };
        all_kept &= play_one(&watched, length, &stop, &is_over)?;
        if is_over() {
            break;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(ExitCode::from(130));
        }
    }
    Ok(if all_kept { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// At the first signal no more cases begin; at the second one the process ends, as a case may hang.
fn stop_at_signals(stop: &Arc<AtomicBool>, running: &Running) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (stop, running) = (Arc::clone(stop), running.clone());
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if stop.swap(true, Ordering::Relaxed) {
                running
                    .lock()
                    .iter()
                    .for_each(|(name, seed)| eprintln!("not at its end: {name} --seed {seed}"));
                std::process::exit(128 + signal);
            }
        }
    });
    Ok(())
}

/// The seeds that are being played, each with its campaign's name.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<BTreeSet<(&'static str, u64)>>>);

impl Running {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<(&'static str, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A campaign that says which seeds are being played.
struct Watched<'a> {
    campaign: &'a dyn Campaign,
    running: &'a Running,
    planted: Option<Bug>,
}

impl Campaign for Watched<'_> {
    fn name(&self) -> &'static str {
        self.campaign.name()
    }

    fn habits(&self, seed: u64) -> Habits {
        self.campaign.habits(seed)
    }

    fn with_habits(&self, habits: Habits) -> Box<dyn Campaign> {
        self.campaign.with_habits(habits)
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let _planted = self.planted.map(Bug::plant);
        self.running.lock().insert((self.name(), seed));
        let played = self.campaign.play(seed, goes_on);
        self.running.lock().remove(&(self.name(), seed));
        played
    }

    fn smaller(&self, failure: &Failure) -> Option<Failure> {
        self.campaign.smaller(failure)
    }

    fn summary(&self, seeds: std::ops::Range<u64>) -> String {
        self.campaign.summary(seeds)
    }
}

/// Whether all promises were kept.
fn play_one(
    campaign: &dyn Campaign,
    length: &Length,
    stop: &AtomicBool,
    is_over: &(dyn Fn() -> bool + Sync),
) -> anyhow::Result<bool> {
    let jobs = length.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let cases = if length.hours.is_some() { u64::MAX } else { length.cases };
    let extent = Extent { seed: length.seed, cases, jobs: jobs.max(1) };
    let began_s = calendar_seconds();
    let progress = Progress::new(campaign.name(), cases);
    let report = run(campaign, &extent, stop, &|report| {
        progress.show(report);
        if is_over() {
            stop.store(true, Ordering::Relaxed);
        }
    });
    progress.bar.finish_and_clear();
    let (seeds, seconds) = (report.seeds, calendar_seconds().saturating_sub(began_s));
    let mut out = io::stdout().lock();
    let last = length.seed + seeds.saturating_sub(1);
    writeln!(out, "{}: {}; seeds {} to {last}, {seconds} s", campaign.name(), report.counts, length.seed)?;
    let summary = campaign.summary(length.seed..length.seed + seeds);
    if !summary.is_empty() {
        writeln!(out, "{summary}")?;
    }
    let Some(failure) = report.failure else { return Ok(true) };
    writeln!(out, "FAILED: {failure}")?;
    if length.plant.is_some() {
        return Ok(false);
    }
    let small = shrink(campaign, failure);
    writeln!(out, "\nThe smallest like it: {small}\n\n{}", small.trace)?;
    Ok(false)
}

/// Progress of a campaign: a bar on a terminal, otherwise an occasional line for a log.
struct Progress {
    campaign: &'static str,
    cases: u64,
    began_s: u64,
    told_s: AtomicU64,
    bar: ProgressBar,
}

/// Seconds between two lines.
const PAUSE_S: u64 = 30;

impl Progress {
    fn new(campaign: &'static str, cases: u64) -> Self {
        let began_s = calendar_seconds();
        let bar = if io::stderr().is_terminal() { ProgressBar::new(cases) } else { ProgressBar::hidden() };
        let style = "{bar:30} {human_pos} of {human_len} cases, {per_sec}, {eta} left, {msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { campaign, cases, began_s, told_s: began_s.into(), bar }
    }

    fn show(&self, report: &Report) {
        let done = report.counts.cases().min(self.cases);
        self.bar.set_position(done);
        self.bar.set_message(format!("{} seeds", report.seeds));
        let (now_s, told_s) = (calendar_seconds(), self.told_s.load(Ordering::Relaxed));
        if io::stderr().is_terminal() || now_s < told_s + PAUSE_S {
            return;
        }
        self.told_s.store(now_s, Ordering::Relaxed);
        eprintln!("{}", self.line(done, report.seeds, now_s));
    }

    fn line(&self, done: u64, seeds: u64, now_s: u64) -> String {
        let per_s = done as f64 / now_s.saturating_sub(self.began_s).max(1) as f64;
        let remaining_s = (self.cases - done) as f64 / per_s.max(f64::MIN_POSITIVE);
        let remaining = HumanDuration(Duration::try_from_secs_f64(remaining_s).unwrap_or(Duration::MAX));
        let (campaign, done, cases) = (self.campaign, HumanCount(done), HumanCount(self.cases));
        format!("{campaign}: {done} of {cases} cases, {per_s:.0}/s, {seeds} seeds, {remaining} left")
    }
}

#[cfg(test)]
#[path = "../../cli/tests/documentation/parsed.rs"]
mod documented;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_commands_are_understood() {
        let refused = documented::refused("flashgrain-simtest", Cli::try_parse_from);
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }

    #[test]
    fn a_line_says_how_far_a_campaign_is_and_how_long_it_takes() {
        let progress = Progress { began_s: 1000, ..Progress::new("crash", 1_000_000) };
        let line = progress.line(250_000, 63, 1600);
        assert_eq!(line, "crash: 250,000 of 1,000,000 cases, 417/s, 63 seeds, 30 minutes left");
    }
}
