//! Settings of a profile run.

use std::fmt;
use std::str::FromStr;

use flashgrain_model::FEWEST_VOLUMES;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The experiments, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExperimentName {
    /// The MQSSD grid of order and concurrency.
    Order,
    /// The PDAM rounds.
    Parallel,
    /// The affine line.
    Size,
    /// Queue depth x page size.
    Depth,
    /// Read shares and their interference.
    Mix,
    /// Sequential streams.
    Sequential,
    /// The backends.
    Interface,
    /// Durable writes.
    Flush,
    /// Hidden-parameters paper, Experiment 1.
    RequestSize,
    /// Hidden-parameters paper, Experiment 2.
    Location,
    /// Burst against sustained writes.
    Sustain,
}

impl ExperimentName {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Order,
        Self::Parallel,
        Self::Size,
        Self::Depth,
        Self::Mix,
        Self::Sequential,
        Self::Interface,
        Self::Flush,
        Self::RequestSize,
        Self::Location,
        Self::Sustain,
    ];

    /// Those that run unless asked otherwise: all but `sustain`, which takes long and wears the drive.
    pub fn default_set() -> Vec<Self> {
        Self::ALL.into_iter().filter(|name| *name != Self::Sustain).collect()
    }

    /// Name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Parallel => "parallel",
            Self::Size => "size",
            Self::Depth => "depth",
            Self::Mix => "mix",
            Self::Sequential => "sequential",
            Self::Interface => "interface",
            Self::Flush => "flush",
            Self::RequestSize => "request-size",
            Self::Location => "location",
            Self::Sustain => "sustain",
        }
    }

    /// One line for help texts.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Order => "random and sequential order x concurrency, reads and writes (the MQSSD grid)",
            Self::Parallel => "64 KiB random reads by 1 to 64 streams (PDAM)",
            Self::Size => "single random reads of one block to 16 MiB (affine)",
            Self::Depth => "queue depth x request size, 512 B to 64 KiB",
            Self::Mix => "read and write shares and their interference",
            Self::Sequential => "sequential streams of small and large requests",
            Self::Interface => "the kernel interfaces side by side",
            Self::Flush => "cost of a durable 4 KiB write by each sync method",
            Self::RequestSize => "which write sizes later read fast; the stripe size",
            Self::Location => "where in a chunk reads are fast; chunk and flash page size",
            Self::Sustain => "burst against sustained random writes (opt-in: writes much)",
        }
    }

    /// Whether its samples are throughputs that the cost models are fitted to.
    ///
    /// `sequential` is not: a stream of 4 KiB requests is bound by the cost of a request, which is no part of
    /// the models' random access and transfer costs; `interface` and `flush` vary the software, not the
    /// workload.
    pub fn feeds_models(self) -> bool {
        matches!(self, Self::Order | Self::Parallel | Self::Size | Self::Depth | Self::Mix)
    }

    /// Its weight when the time for measuring is shared out.
    pub(crate) fn time_weight(self) -> f64 {
        match self {
            Self::Order => 34.0,
            Self::Depth => 16.0,
            Self::Mix => 12.0,
            Self::Parallel | Self::Size => 6.0,
            Self::Interface => 4.0,
            Self::Sequential | Self::Flush => 3.0,
            Self::RequestSize => 12.0,
            Self::Location => 14.0,
            Self::Sustain => 0.0,
        }
    }

    /// Whether it runs before the others, so that nothing that overruns its time can take from it.
    pub(crate) fn runs_first(self) -> bool {
        matches!(self, Self::RequestSize | Self::Location | Self::Parallel | Self::Size | Self::Depth)
    }

    /// Its weight when the bytes for writing are shared out.
    pub(crate) fn write_weight(self) -> f64 {
        match self {
            Self::Order => 70.0,
            Self::Mix => 20.0,
            Self::Sequential => 6.0,
            Self::Flush => 4.0,
            _ => 0.0,
        }
    }
}

impl fmt::Display for ExperimentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ExperimentName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|name| name.as_str() == text).ok_or_else(|| {
            let all: Vec<_> = Self::ALL.iter().map(|name| name.as_str()).collect();
            Error::Argument(format!("there is no experiment '{text}'; there are {}", all.join(", ")))
        })
    }
}

/// The state to bring the drive to before measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precondition {
    /// As found; the scratch region is written once.
    #[default]
    None,
    /// The region is written sequentially twice.
    Sequential,
    /// The region is written sequentially once and then as many bytes again twice at random places, 4 KiB
    /// each.
    Random,
}

impl Precondition {
    /// How many times the region's bytes are written before measuring.
    pub(crate) fn fills(self) -> u64 {
        match self {
            Self::None => 1,
            Self::Sequential => 2,
            Self::Random => 3,
        }
    }

    /// A description for the record.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::None => "as found",
            Self::Sequential => "preconditioned (region written sequentially twice)",
            Self::Random => {
                "preconditioned (region written sequentially, then twice its size in random 4 KiB writes)"
            }
        }
    }
}

/// How far `sustain` may go. It comes on top of the budget of the other experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SustainLimits {
    /// Seconds.
    pub seconds: f64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Size of the random writes.
    pub request_bytes: u64,
    /// Outstanding writes.
    pub concurrency: u32,
    /// Length of a round, seconds. SNIA's specification takes 60; shorter rounds find the end of small
    /// caches.
    pub round_s: f64,
}

impl Default for SustainLimits {
    fn default() -> Self {
        Self { seconds: 60.0, write_bytes: 8 << 30, request_bytes: 4096, concurrency: 32, round_s: 2.0 }
    }
}

/// Limits and choices of one profile run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Time for everything: measuring, fitting, verifying, reporting; seconds. `sustain` comes on top.
    pub budget_s: f64,
    /// Bytes that may be written, the layout of the scratch region included. `sustain` comes on top. Zero:
    /// nothing is written, only reads are measured.
    pub write_bytes: u64,
    /// The part of the device that is used, from its beginning. `None`: as much as the limits allow.
    pub region_bytes: Option<u64>,
    /// Whether the device holds data everywhere, as a simulated drive may from its beginning. Then all of it
    /// is used, and before measuring only parts that must be written in a special way are written.
    pub holds_data: bool,
    /// Experiments to run.
    pub experiments: Vec<ExperimentName>,
    /// Full-size runs: each stream of `order` and `parallel` moves this many bytes, however long it takes
    /// (the papers: 1 GB and 10 GiB). `None`: trials are time slices.
    pub bytes_per_stream: Option<u64>,
    /// Bytes per region of `request-size` (the paper: 1 GB). `None`: as the budget allows.
    pub request_size_region_bytes: Option<u64>,
    /// Offset groups that `location` examines per chunk size, at most; the others are left out. 512 examines
    /// all, as the paper does.
    pub location_groups: usize,
    /// Limits of `sustain`.
    pub sustain: SustainLimits,
    /// Shares of the region, above 0 and below 1, for further steady states of `sustain`: only these hold
    /// valid data, the rest of the region is discarded. None, or as many as the term for garbage collection
    /// needs next to the whole region.
    pub sustain_valid_shares: Vec<f64>,
    /// State of the drive.
    pub precondition: Precondition,
    /// Driver threads at most. `None`: one for every two processors up to four, and one on a simulated drive.
    pub workers: Option<u32>,
    /// Poll for completions where the device has poll queues.
    pub polled: bool,
    /// Repeats of a workload end when the relative half width of the 95 % interval of its mean is at most
    /// this.
    pub tight_enough: f64,
    /// Whether to predict and measure fresh workloads.
    pub verify: bool,
    /// Bootstrap resamples of the fits.
    pub resamples: u32,
    /// Seed of all randomness.
    pub seed: u64,
    /// Whether an interrupt ends measuring and keeps the measurements until then, instead of failing.
    pub keep_interrupted: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            budget_s: 60.0,
            write_bytes: 4 << 30,
            region_bytes: None,
            holds_data: false,
            experiments: ExperimentName::default_set(),
            bytes_per_stream: None,
            request_size_region_bytes: None,
            location_groups: 16,
            sustain: SustainLimits::default(),
            sustain_valid_shares: Vec::new(),
            precondition: Precondition::None,
            workers: None,
            polled: false,
            tight_enough: 0.05,
            verify: true,
            resamples: 200,
            seed: 1,
            keep_interrupted: false,
        }
    }
}

impl Config {
    /// Shortest budget that can measure anything.
    pub const BUDGET_S_MIN: f64 = 1.0;

    /// The scratch file worth creating: 1 GiB, or less if the write budget or the free space is small (a
    /// quarter of either).
    pub fn default_file_bytes(&self, free_bytes: u64) -> u64 {
        let fills = self.precondition.fills();
        (1 << 30).min(self.write_bytes / (3 + fills)).min(free_bytes / 4) / (1 << 20) * (1 << 20)
    }

    /// Whether `name` was asked for.
    pub(crate) fn wants(&self, name: ExperimentName) -> bool {
        self.experiments.contains(&name)
    }

    /// Refuses settings that make no sense.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !(self.budget_s >= Self::BUDGET_S_MIN && self.budget_s.is_finite()) {
            let least = Self::BUDGET_S_MIN;
            return Err(Error::Argument(format!(
                "a budget of {} s is too short; give at least {least} s",
                self.budget_s
            )));
        }
        if self.experiments.is_empty() {
            return Err(Error::Argument("no experiment was asked for".into()));
        }
        if self.bytes_per_stream == Some(0) || self.request_size_region_bytes == Some(0) {
            return Err(Error::Argument("sizes must not be zero".into()));
        }
        if self.tight_enough.is_nan() || self.tight_enough <= 0.0 {
            return Err(Error::Argument("the wanted relative confidence interval must be above zero".into()));
        }
        if self.wants(ExperimentName::Sustain) {
            self.check_sustain()?;
        }
        Ok(())
    }

    fn check_sustain(&self) -> Result<(), Error> {
        let limits = self.sustain;
        let sound = limits.seconds > 0.0
            && limits.seconds.is_finite()
            && limits.round_s > 0.0
            && limits.request_bytes > 0
            && limits.concurrency > 0;
        if !sound {
            return Err(Error::Argument(
                "sustain needs a time, a round, a request size and a depth above zero".into(),
            ));
        }
        if !self.sustain_valid_shares.iter().all(|share| *share > 0.0 && *share < 1.0) {
            return Err(Error::Argument("sustain needs shares of valid data above 0 and below 1".into()));
        }
        let mut shares = self.sustain_valid_shares.clone();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        let fewest = FEWEST_VOLUMES - 1;
        if (1..fewest).contains(&shares.len()) {
            let few = shares.len();
            return Err(Error::Argument(format!(
                "{few} shares of valid data cannot show how garbage collection slows writes down: give at least {fewest}"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for name in ExperimentName::ALL {
            assert_eq!(name.as_str().parse::<ExperimentName>().unwrap(), name);
            assert_eq!(serde_json::to_string(&name).unwrap(), format!("\"{name}\""));
        }
        let problem = "ordr".parse::<ExperimentName>().unwrap_err().to_string();
        assert!(problem.contains("request-size"), "{problem}");
    }

    #[test]
    fn nonsense_is_refused() {
        for budget_s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Config { budget_s, ..Config::default() }.check().is_err(), "{budget_s}");
        }
        assert!(Config { experiments: vec![], ..Config::default() }.check().is_err());
        assert!(Config::default().check().is_ok());
    }

    #[test]
    fn shares_of_valid_data_lie_within_the_region_and_are_enough_for_a_fit() {
        let check = |shares: &[f64]| {
            let experiments = vec![ExperimentName::Sustain];
            let sustain_valid_shares = shares.to_vec();
            Config { experiments, sustain_valid_shares, ..Config::default() }.check()
        };
        for sound in [&[][..], &[0.3, 0.5, 0.7]] {
            assert!(check(sound).is_ok(), "{sound:?}");
        }
        for unsound in [&[0.3, 0.5][..], &[0.3, 0.5, 0.5], &[0.0, 0.3, 0.5], &[0.3, 0.5, 1.0]] {
            assert!(check(unsound).is_err(), "{unsound:?}");
        }
        assert!(check(&[f64::NAN, 0.3, 0.5]).is_err());
    }

    #[test]
    fn the_file_leaves_room_for_measuring() {
        let config = Config::default();
        assert_eq!(config.default_file_bytes(100 << 30), 1 << 30);
        assert_eq!(config.default_file_bytes(1 << 30), 256 << 20);
        let small = Config { write_bytes: 400 << 20, ..Config::default() };
        assert_eq!(small.default_file_bytes(100 << 30), 100 << 20);
    }
}
