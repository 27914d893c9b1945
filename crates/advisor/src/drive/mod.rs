//! What a profile says of its drive, as the costs that predictions use.
//!
//! 1. [`costs`] takes setup and transfer costs over concurrency from the profile's models, the finest that
//!    were fitted, each with its interval. A cost that no model has is bracketed, and a note says so.
//! 2. [`flush`] takes the time that makes a write durable.
//! 3. [`Drive`] adds the numbers that settings follow from. A number that is undetermined keeps its reason.
//!
//! The kernel's `rotational` flag is not consulted: virtual disks set it wrongly, and costs say more.

mod costs;
mod flush;

use flashgrain_model::{Access, Estimate};
use flashgrain_profile::schema::{DeviceProfile, LearnedValue};
use flashgrain_settings::{Bytes, SyncMethod, drive as decided};

use crate::interval::{End, Interval};
use crate::what_if::DriveCosts;
use costs::Costs;
pub use costs::CostsOfKind;
use flush::Flushes;

/// Writes that background work keeps outstanding where the profile does not say how many the drive rewards.
const WRITE_CONCURRENCY: f64 = 4.0;

/// A drive as the advisor sees it.
#[derive(Clone, Debug)]
pub struct Drive {
    name: String,
    date_utc: String,
    reads: Costs,
    writes: Costs,
    flushes: Flushes,
    numbers: Vec<(Number, LearnedNumber)>,
    decisions: Vec<decided::Decision>,
    notes: Vec<String>,
}

/// A learned number that settings follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    DesirableWrite,
    Stripe,
    FlashPage,
    BestPage,
    Depth90,
    Parallelism,
    HalfBandwidth,
}

/// Its value, or the reason why there is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LearnedNumber {
    Known(Interval),
    Unknown(String),
}

/// Requests of one kind, as predictions describe them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Requests {
    pub access: Access,
    /// Bytes of each.
    pub bytes: f64,
    /// Whether each begins at a place of its own, rather than where the one before it ended.
    pub random: bool,
    /// In flight at a time.
    pub concurrency: f64,
}

/// The ends of intervals at which a prediction is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub reads: End,
    pub writes: End,
    pub flushes: End,
}

impl Ends {
    pub const VALUE: Self = Self { reads: End::Value, writes: End::Value, flushes: End::Value };

    /// All combinations of the ends.
    pub fn corners() -> impl Iterator<Item = Self> {
        const ENDS: [End; 2] = [End::Low, End::High];
        ENDS.into_iter().flat_map(|reads| {
            ENDS.into_iter()
                .flat_map(move |writes| ENDS.into_iter().map(move |flushes| Self { reads, writes, flushes }))
        })
    }
}

impl Drive {
    /// The drive of a profile. Whatever the profile left undetermined is bracketed, which widens the
    /// intervals of predictions and is noted.
    pub fn of(profile: &DeviceProfile) -> Self {
        let mut notes: Vec<String> = profile.distrust.iter().cloned().collect();
        let [reads, writes] = costs::of(profile, &mut notes);
        let flushes = Flushes::of(profile, &mut notes);
        if let Some(cap) = &profile.learned.cap {
            notes.push(format!("{} before the drive limits all predictions", cap.describe()));
        }
        let learned = &profile.learned;
        let numbers = [
            (Number::DesirableWrite, &learned.desirable_write_bytes),
            (Number::Stripe, &learned.stripe_bytes),
            (Number::FlashPage, &learned.flash_page_bytes),
            (Number::BestPage, &learned.best_page_iops_bytes),
            (Number::Depth90, &learned.depth_90),
            (Number::Parallelism, &learned.parallelism),
            (Number::HalfBandwidth, &learned.half_bandwidth_bytes),
        ]
        .map(|(number, value)| (number, LearnedNumber::of(value)))
        .to_vec();
        Self {
            name: profile.provenance.identity.target.clone(),
            date_utc: profile.provenance.date_utc.clone(),
            reads,
            writes,
            flushes,
            numbers,
            decisions: profile.decisions.clone(),
            notes,
        }
    }

    /// What a ranking takes of the drive.
    pub(crate) fn what_if_costs(&self) -> DriveCosts {
        let parallelism = match self.number(Number::Parallelism) {
            LearnedNumber::Known(parallelism) => Some(*parallelism),
            LearnedNumber::Unknown(_) => None,
        };
        DriveCosts {
            reads: self.reads.numbers(),
            writes: self.writes.numbers(),
            flush_seconds: self.flush(SyncMethod::Fdatasync),
            parallelism,
        }
    }

    /// A drive that has these costs and is otherwise unknown.
    pub(crate) fn of_what_if_costs(costs: &DriveCosts) -> Self {
        let parallelism = costs.parallelism.map(|own| (Number::Parallelism, LearnedNumber::Known(own)));
        Self {
            name: "what if".into(),
            date_utc: String::new(),
            reads: Costs::of_numbers(&costs.reads),
            writes: Costs::of_numbers(&costs.writes),
            flushes: Flushes::of_any_method(costs.flush_seconds),
            numbers: parallelism.into_iter().collect(),
            decisions: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The target that was profiled, and when.
    pub fn describe(&self) -> String {
        // Files have it in a comment, which ends with the line.
        let text = format!("{}, profiled {}", self.name, self.date_utc);
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }

    /// What was undetermined, and what stands in.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// A setting of the profile, and how it was decided.
    pub(crate) fn decided<T>(
        &self,
        setting: fn(&decided::Setting) -> Option<T>,
    ) -> Option<(T, &decided::Decision)> {
        decided::decided(&self.decisions, setting)
    }

    pub(crate) fn number(&self, number: Number) -> &LearnedNumber {
        static NOT_ASKED: LearnedNumber = LearnedNumber::Unknown(String::new());
        self.numbers.iter().find(|(own, _)| *own == number).map_or(&NOT_ASKED, |(_, value)| value)
    }

    /// Device time of one request when so many are in flight: the inverse of their rate.
    pub(crate) fn seconds(&self, requests: &Requests, end: End) -> f64 {
        self.costs(requests.access).seconds(requests, end)
    }

    /// Setup cost of one access.
    pub(crate) fn setup(&self, access: Access, concurrency: f64) -> Interval {
        self.costs(access).setup(concurrency)
    }

    /// Writes that background work keeps outstanding: as many as the drive serves at a time.
    pub(crate) fn write_concurrency(&self) -> f64 {
        match self.number(Number::Parallelism) {
            LearnedNumber::Known(parallelism) => parallelism.value.max(1.0).ceil(),
            LearnedNumber::Unknown(_) => WRITE_CONCURRENCY,
        }
    }

    /// Random reads that the drive serves in the time of one: PDAM's P, or what its setup costs say.
    pub(crate) fn parallelism(&self) -> f64 {
        const DEEP: f64 = 64.0;
        let of_costs = || self.setup(Access::Read, 1.0).value / self.setup(Access::Read, DEEP).value;
        self.number(Number::Parallelism).value().unwrap_or_else(of_costs).clamp(1.0, DEEP).round()
    }

    /// Bytes of a request whose transfer takes as long as its setup.
    pub(crate) fn half_bandwidth_bytes(&self, access: Access, concurrency: f64) -> f64 {
        let costs = self.costs(access);
        costs.setup(concurrency).value / costs.transfer(concurrency).value
    }

    fn costs(&self, access: Access) -> &Costs {
        match access {
            Access::Read => &self.reads,
            Access::Write => &self.writes,
        }
    }

    /// Whether costs of this kind come from measurements.
    pub(crate) fn is_measured(&self, access: Access) -> bool {
        self.costs(access).is_measured()
    }

    /// Where the costs of this kind come from.
    pub(crate) fn source(&self, access: Access) -> &str {
        self.costs(access).source()
    }

    /// Seconds of a durable write of a log by this method.
    pub(crate) fn flush(&self, method: SyncMethod) -> Interval {
        self.flushes.of_method(method)
    }

    /// Seconds of a durable write of a log that grows with it.
    pub(crate) fn flush_of_growing_file(&self) -> Interval {
        self.flushes.of_growing_file()
    }
}

impl LearnedNumber {
    fn of(value: &LearnedValue) -> Self {
        match (&value.estimate, Interval::of(&value.estimate)) {
            (_, Some(interval)) => Self::Known(interval),
            (Estimate::Undetermined { why }, None) => Self::Unknown(why.clone()),
            (Estimate::Determined { .. }, None) => Self::Unknown(String::new()),
        }
    }

    pub(crate) fn value(&self) -> Option<f64> {
        match self {
            Self::Known(interval) => Some(interval.value),
            Self::Unknown(_) => None,
        }
    }

    /// As bytes in words, or that it is undetermined.
    pub(crate) fn bytes_text(&self) -> String {
        match self {
            Self::Known(interval) => Bytes(interval.value as u64).to_string(),
            Self::Unknown(why) => format!("undetermined ({why})"),
        }
    }
}
