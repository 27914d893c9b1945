//! The costs of a profile's drive, for predictions.
//!
//! 1. [`costs`] takes setup and transfer costs over concurrency from the profile's models, the finest that
//!    were fitted, each with its interval. A cost that no model has is bracketed, and a note says so.
//! 2. [`flush`] takes the time that makes a write durable.
//! 3. [`Drive`] adds the numbers that settings follow from. A number that is undetermined keeps its reason.
//!
//! The kernel's `rotational` flag is not consulted: virtual disks set it wrongly, and costs say more.

mod costs;
mod flush;

use flashgrain_cost::Interval;
use flashgrain_cost::ranking::DriveCosts;
use flashgrain_model::{Access, Estimate};
use flashgrain_profile::schema::{DeviceProfile, LearnedValue};
use flashgrain_settings::{SyncMethod, drive as decided};

use costs::interval_of;
use flush::Flushes;

/// A drive as the advisor sees it.
#[derive(Clone, Debug)]
pub struct Drive {
    name: String,
    date_utc: String,
    costs: DriveCosts,
    reads_measured: bool,
    writes_measured: bool,
    flushes: Flushes,
    depth_90: LearnedNumber,
    half_bandwidth_bytes: LearnedNumber,
    hot_locations: Option<HotLocations>,
    decisions: Vec<decided::Decision>,
    notes: Vec<String>,
}

/// Locations at which reads of a chunk are fastest (hidden-parameters paper, §3.1.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HotLocations {
    pub chunk_bytes: u64,
    /// Of a hot location within a chunk.
    pub offset_bytes: u64,
    /// By how much reads are shorter there: 0.39 is 39 %.
    pub latency_drop: f64,
}

/// A learned number that settings follow from, or the reason why there is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LearnedNumber {
    Known(Interval),
    Unknown(String),
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
        Self {
            name: profile.provenance.identity.target.clone(),
            date_utc: profile.provenance.date_utc.clone(),
            reads_measured: reads.is_measured,
            writes_measured: writes.is_measured,
            costs: DriveCosts {
                reads: reads.numbers,
                writes: writes.numbers,
                flush_seconds: flushes.of_method(SyncMethod::Fdatasync),
                parallelism: interval_of(&learned.parallelism.estimate),
                interference: costs::interference(profile),
            },
            flushes,
            depth_90: LearnedNumber::of(&learned.depth_90),
            half_bandwidth_bytes: LearnedNumber::of(&learned.half_bandwidth_bytes),
            hot_locations: HotLocations::of(profile),
            decisions: profile.decisions.clone(),
            notes,
        }
    }

    /// All that a ranking takes of the drive.
    pub fn costs(&self) -> &DriveCosts {
        &self.costs
    }

    /// The target that was profiled, and when.
    pub fn describe(&self) -> String {
        // Files have it in a comment, which ends with the line.
        let text = format!("{}, profiled {}", self.name, self.date_utc);
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }

    /// Undetermined values and their replacements.
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

    /// Requests in flight for 90 % of the drive's rate.
    pub(crate) fn depth_90(&self) -> &LearnedNumber {
        &self.depth_90
    }

    /// Bytes of reads that reach half of the drive's bandwidth.
    pub(crate) fn half_bandwidth_bytes(&self) -> &LearnedNumber {
        &self.half_bandwidth_bytes
    }

    /// Its hot locations, if it has some that are known.
    pub(crate) fn hot_locations(&self) -> Option<&HotLocations> {
        self.hot_locations.as_ref()
    }

    /// Whether costs of this kind come from measurements.
    pub(crate) fn is_measured(&self, access: Access) -> bool {
        match access {
            Access::Read => self.reads_measured,
            Access::Write => self.writes_measured,
        }
    }

    /// Whether durable writes were measured.
    pub(crate) fn knows_flushes(&self) -> bool {
        self.flushes.is_measured()
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

impl HotLocations {
    fn of(profile: &DeviceProfile) -> Option<Self> {
        let learned = &profile.learned;
        let bytes = |value: &LearnedValue| {
            let value = value.estimate.value()?;
            (value.is_finite() && value >= 0.0).then_some(value.round() as u64)
        };
        let (chunk_bytes, offset_bytes) = (bytes(&learned.chunk_bytes)?, bytes(&learned.hot_offset_bytes)?);
        let drop = learned.hot_latency_drop.estimate.value();
        let latency_drop = drop.filter(|drop| *drop > 0.0 && *drop < 1.0)?;
        (offset_bytes < chunk_bytes).then_some(Self { chunk_bytes, offset_bytes, latency_drop })
    }
}

impl LearnedNumber {
    fn of(value: &LearnedValue) -> Self {
        match (&value.estimate, interval_of(&value.estimate)) {
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
}
