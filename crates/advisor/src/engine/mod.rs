//! Settings of engines that people run, each with its reason.
//!
//! 1. An engine has a configuration type with its defaults, the configuration that follows from workload and
//!    drive, and a model that prices a configuration: `Tuned`.
//! 2. The gain of a setting is the predicted rate with all advised settings over the rate with this one back
//!    at the engine's default, at the same ends of the drive's intervals.
//!    Memory is the workload's: the default has the advised cache, and the size of a cache has no gain.
//! 3. A setting that the profile does not support, or that gains nothing, stays at the default and says why:
//!    [`Setting::value`] is `None`, and the file does not have it.
//!
//! Durability follows from the workload alone. No file weakens the promise of
//! [`Durability`](crate::workload::Durability) to gain speed.

mod flashgrain;
mod mariadb;
mod partition;
mod rocksdb;
mod sqlite;
mod tuned;
mod version;
mod wiredtiger;

use flashgrain_cost::ranking::Bound;
use flashgrain_cost::{Access, Interval};
use flashgrain_settings::Bytes;
use flashgrain_settings::drive::Decision;
use serde::Serialize;

use crate::drive::{Drive, LearnedNumber};
use crate::workload::Workload;

pub use flashgrain::{PredictedTree, StoreFacts, TreeStructure, predicted_tree};
pub use flashgrain_settings::LsmDesign;
pub use rocksdb::{RestingTree, predicted_rocksdb_rate};
pub use version::EngineVersion;

/// An engine that settings are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// RocksDB: an OPTIONS file.
    Rocksdb,
    /// SQLite: PRAGMAs.
    Sqlite,
    /// MariaDB with InnoDB: a fragment of `my.cnf`.
    Mariadb,
    /// WiredTiger: its configuration.
    Wiredtiger,
    /// The store of this project: the command that makes it.
    Flashgrain,
}

/// Settings for an engine.
#[derive(Clone, Debug, Serialize)]
pub struct EngineAdvice {
    /// The engine.
    pub engine: EngineName,
    /// The version whose defaults and names these are.
    pub version: &'static str,
    /// Predicted rate with the engine's defaults and the memory of the workload.
    pub default_rate_per_second: Interval,
    /// Predicted rate with all advised settings.
    pub advised_rate_per_second: Interval,
    /// The bottleneck with the defaults.
    pub default_bound: Bound,
    /// The bottleneck with all advised settings.
    pub advised_bound: Bound,
    /// The one over the other, at the same ends of the drive's intervals.
    pub gain: Interval,
    /// All settings that were looked at, those that stay at the default included.
    pub settings: Vec<Setting>,
    /// Advice that no setting expresses.
    pub notes: Vec<String>,
    /// The trees that the store of this project may have, the advised one among them; none of other engines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<PredictedTree>,
    /// The text that the engine loads.
    pub file: String,
}

/// A setting of an engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its advised value; `None`: it stays at the default.
    pub value: Option<String>,
    /// The engine's default.
    pub default: &'static str,
    /// Why.
    pub reason: String,
    /// The learned number that it is derived from, or that there is none.
    pub number: String,
    /// Predicted rate with it over the rate without it; `None` where the model does not know the setting.
    pub gain: Option<Interval>,
    /// Its costs in memory, durability and space.
    pub cost: String,
}

/// The settings of an engine, in its usual version or another, for a workload on a drive.
pub fn advise(engine: impl Into<EngineVersion>, workload: &Workload, drive: &Drive) -> EngineAdvice {
    let asked = engine.into();
    let mut advice = match asked.engine {
        EngineName::Rocksdb => rocksdb::advise(asked.version, workload, drive),
        EngineName::Sqlite => sqlite::advise(workload, drive),
        EngineName::Mariadb => mariadb::advise(workload, drive),
        EngineName::Wiredtiger => wiredtiger::advise(workload, drive),
        EngineName::Flashgrain => flashgrain::advise(workload, drive),
    };
    advice.notes.extend(workload.assumptions.iter().map(|text| format!("assumed: {text}")));
    advice
}

impl EngineAdvice {
    /// The advised value of a setting; `None`: it stays at the default.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|setting| setting.name == name)?.value.as_deref()
    }
}

impl EngineName {
    /// All.
    pub const ALL: [Self; 5] =
        [Self::Rocksdb, Self::Sqlite, Self::Mariadb, Self::Wiredtiger, Self::Flashgrain];

    /// Versions whose names and defaults are known, the usual one first.
    pub fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Rocksdb => rocksdb::VERSIONS,
            Self::Sqlite => &["3.40"],
            Self::Mariadb => &["10.11"],
            Self::Wiredtiger => &["3.2"],
            Self::Flashgrain => &[env!("CARGO_PKG_VERSION")],
        }
    }

    /// As people write it.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Rocksdb => "RocksDB",
            Self::Sqlite => "SQLite",
            Self::Mariadb => "MariaDB",
            Self::Wiredtiger => "WiredTiger",
            Self::Flashgrain => "Flashgrain",
        }
    }
}

/// The first comments of a file: its title, the drive, and all that was assumed of the workload.
fn head(title: &str, comment: &str, workload: &Workload, drive: &Drive) -> String {
    let mut text =
        format!("{comment} {title}: settings for {}.\n{comment} {}\n", workload.name, drive.describe());
    for assumption in &workload.assumptions {
        text += &commented(&format!("Assumed: {assumption}."), comment);
    }
    text
}

/// Comments of a file: each setting with its reason, number, gain and cost.
fn explained(settings: &[Setting], comment: &str, line: impl Fn(&Setting, &str) -> String) -> String {
    let mut text = String::new();
    for setting in settings {
        text += &commented(&setting.why(), comment);
        match &setting.value {
            Some(value) => text += &line(setting, value),
            None => {
                let stays = format!("{} stays at {}, the default.", setting.name, setting.default);
                text += &commented(&stays, comment);
            }
        }
        text.push('\n');
    }
    text
}

/// Ends the cost of a cache.
const SAME_MEMORY: &str = "which the defaults are compared with, too";

/// Begins the text of a number that the profile does not have; its reason follows.
const UNDETERMINED: &str = "undetermined";

/// The number in words, or why the profile does not have it.
fn number_text(number: &LearnedNumber, in_words: impl Fn(f64) -> String) -> String {
    match number {
        LearnedNumber::Known(interval) => in_words(interval.value),
        LearnedNumber::Unknown(why) => format!("{UNDETERMINED}: {why}"),
    }
}

/// A decision of the profile with the number that led to it, or why a default stands.
fn decision_text(name: &str, value: Bytes, decision: &Decision) -> String {
    match decision.from_default {
        true => format!("{UNDETERMINED}: {name} {value} is a default; {}", decision.because),
        false => format!("{name} {value}: {}", decision.because),
    }
}

/// The size at which a lone reader has half of the bandwidth, or why the profile does not have it.
fn half_bandwidth_text(drive: &Drive) -> String {
    number_text(drive.half_bandwidth_bytes(), |bytes| {
        format!("random reads at depth 1 reach half the bandwidth with {}", Bytes(bytes as u64))
    })
}

/// The cost of a durable write, or that it was assumed.
fn flush_text(drive: &Drive, place: &str, seconds: Interval) -> String {
    let text = format!("a durable write {place}takes {:.0} µs", seconds.value * 1e6);
    match drive.knows_flushes() {
        true => text,
        false => format!("{UNDETERMINED}: flush was not run; assumed: {text}"),
    }
}

/// The cost of accesses of a kind, or that it was assumed.
fn measured_text(drive: &Drive, access: Access, text: String) -> String {
    let kind = if access == Access::Read { "reads" } else { "writes" };
    match drive.is_measured(access) {
        true => text,
        false => format!("{UNDETERMINED}: {kind} were not measured; assumed: {text}"),
    }
}

/// Columns of a comment in a file.
const COMMENT_COLUMNS: usize = 100;

/// Text as comment lines, broken at spaces.
fn commented(text: &str, comment: &str) -> String {
    let mut lines = vec![comment.to_owned()];
    for word in text.split_whitespace() {
        let is_full = lines.last().is_some_and(|line| {
            line.len() > comment.len() && line.chars().count() + 1 + word.chars().count() > COMMENT_COLUMNS
        });
        if is_full {
            lines.push(comment.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

impl Setting {
    fn why(&self) -> String {
        let gain = match (&self.value, self.gain) {
            (None, _) => String::new(),
            (Some(_), None) => " Gain: not predicted.".to_owned(),
            (Some(_), Some(gain)) => format!(" Gain: {}.", factor(gain)),
        };
        let cost = if self.cost.is_empty() { String::new() } else { format!(" Cost: {}.", self.cost) };
        format!("{}: {}. {}.{gain}{cost}", self.name, self.reason, self.learned())
    }

    /// The learned number, or that there is none.
    fn learned(&self) -> String {
        match self.number.strip_prefix(UNDETERMINED) {
            Some(why) => format!("Not learned: {}", why.trim_start_matches([':', ' '])),
            None => format!("Learned: {}", self.number),
        }
    }
}

/// Such as `1.32 x (1.10 to 1.60)`.
pub fn factor(gain: Interval) -> String {
    if format!("{:.2}", gain.low) == format!("{:.2}", gain.high) {
        format!("{:.2} x", gain.value)
    } else {
        format!("{:.2} x ({:.2} to {:.2})", gain.value, gain.low, gain.high)
    }
}
