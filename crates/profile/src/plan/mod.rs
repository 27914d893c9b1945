//! The plan: its experiments, their time and their bytes. It is made and shown before anything is touched.
//!
//! Bytes are hard limits, added up here and enforced again while running. Seconds are shares; the next stage
//! may use the time that one leaves over.

mod allot;

use std::fmt;

use flashgrain_device::Geometry;

pub(crate) use allot::{Allotted, Limits, PlannedTrial, allot};

use crate::Error;
use crate::config::{Config, ExperimentName, Precondition};
use crate::experiment::request_size::{
    READ_BYTES, REGION_BYTES_MIN as REQUEST_SIZE_REGION_BYTES_MIN, creation_bytes, regions, regions_per_size,
    write_sizes,
};
use crate::experiment::{Setting, Trials};
use crate::load::Region;
use crate::target::{Site, Target};
use crate::trial::bytes_text;
use crate::verify;

/// Repeats that the time slices are made for. More follow where points are noisy and time is left.
pub(crate) const ROUNDS: u32 = 4;

/// Repeats of the verification.
pub(crate) const VERIFICATION_ROUNDS: u32 = 3;

/// Bandwidth that the plan assumes while the drive is unknown; replaced by the bandwidth of the layout.
const ASSUMED_BYTES_PER_SECOND: f64 = 5e8;

/// Shares of the time budget.
const LAYOUT_FRACTION: f64 = 0.12;
const VERIFICATION_FRACTION: f64 = 0.12;
const FINISHING_FRACTION: f64 = 0.04;

/// Fitting takes about this long whatever the budget, but never more than the second share of it.
const FINISHING_S: f64 = 1.5;
const FINISHING_FRACTION_MAX: f64 = 0.15;

/// Written to a main region that holds data already, to see how fast that goes.
const SAMPLE_BYTES: u64 = 128 << 20;

/// Smallest scratch region.
const REGION_BYTES_MIN: u64 = 4 << 20;

/// Time and bytes of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stage {
    /// Seconds.
    pub seconds: f64,
    /// Bytes written at most.
    pub write_bytes: u64,
}

/// One experiment's part of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedExperiment {
    /// Name.
    pub name: ExperimentName,
    /// Trials of one round.
    pub trials: usize,
    /// Its share, preparation included.
    pub stage: Stage,
}

/// Plan of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Time for everything but `sustain`.
    pub budget_s: f64,
    /// Bytes for everything but `sustain`.
    pub budget_write_bytes: u64,
    /// How the scratch space is used.
    pub site: Site,
    /// Writing the scratch space once, or as often as preconditioning asks.
    pub layout: Stage,
    /// The experiments.
    pub experiments: Vec<PlannedExperiment>,
    /// Fresh workloads, predicted and measured.
    pub verification: Stage,
    /// Fitting and writing files.
    pub finishing_s: f64,
    /// `sustain`, on top of the budget.
    pub sustain: Option<Stage>,
    /// Trials that are left out, and why, in words.
    pub left_out: Vec<String>,
}

impl Plan {
    /// Below this write budget nothing useful can be written, and only reads are measured.
    pub const WRITE_BYTES_MIN: u64 = 16 << 20;

    /// Plans a run on `target`.
    ///
    /// # Errors
    /// [`Error::Argument`] if the limits make no sense on this device.
    pub fn new(target: &Target<'_>, config: &Config) -> Result<Self, Error> {
        config.check()?;
        let geometry = target.device.geometry();
        let writes = may_write(geometry, config);
        let site = site(geometry, config, writes)?;
        let layout_bytes = if writes { layout_bytes(&site, config) } else { 0 };
        let creation_bytes = creation_bytes(&regions(&site, config.seed));
        let models = config.experiments.iter().any(|name| name.feeds_models());
        let verification_share = if config.verify && models { VERIFICATION_FRACTION } else { 0.0 };
        let layout_share = if layout_bytes > 0 { LAYOUT_FRACTION } else { 0.0 };
        let finishing_share = match models {
            true => (FINISHING_S / config.budget_s).clamp(FINISHING_FRACTION, FINISHING_FRACTION_MAX),
            false => 0.02,
        };
        let measuring_s = config.budget_s * (1.0 - layout_share - verification_share - finishing_share);
        let for_trials = if writes { config.write_bytes - layout_bytes - creation_bytes } else { 0 };
        let verification_bytes = (for_trials as f64 * verification_share) as u64;

        let mut plan = Self {
            budget_s: config.budget_s,
            budget_write_bytes: config.write_bytes,
            site,
            layout: Stage { seconds: config.budget_s * layout_share, write_bytes: layout_bytes },
            experiments: Vec::new(),
            verification: Stage {
                seconds: config.budget_s * verification_share,
                write_bytes: verification_bytes,
            },
            finishing_s: config.budget_s * finishing_share,
            sustain: None,
            left_out: Vec::new(),
        };
        if !writes {
            plan.left_out.push(NO_WRITES.into());
        } else if config.wants(ExperimentName::Sustain) {
            let limits = config.sustain;
            plan.sustain = Some(Stage { seconds: limits.seconds, write_bytes: limits.write_bytes });
        }
        let measuring = Stage { seconds: measuring_s, write_bytes: for_trials - verification_bytes };
        plan.share_out(target, config, measuring, creation_bytes);
        Ok(plan)
    }

    /// Gives each experiment its stage.
    fn share_out(&mut self, target: &Target<'_>, config: &Config, measuring: Stage, creation_bytes: u64) {
        let wanted = |name: &&ExperimentName| config.wants(**name);
        let names: Vec<ExperimentName> = ExperimentName::ALL.iter().filter(wanted).copied().collect();
        let time: f64 = names.iter().map(|name| name.time_weight()).sum();
        let bytes: f64 = names.iter().map(|name| name.write_weight()).sum();
        for name in names {
            if name == ExperimentName::Sustain {
                continue;
            }
            let seconds = measuring.seconds * name.time_weight() / time;
            let share = if bytes > 0.0 { name.write_weight() / bytes } else { 0.0 };
            let mut stage = Stage { seconds, write_bytes: (measuring.write_bytes as f64 * share) as u64 };
            let limits = self.limits(stage, config, name, None);
            let allotted = allot(self.trials(target, config, name), limits);
            self.left_out.extend(allotted.left_out);
            if name == ExperimentName::RequestSize {
                stage.write_bytes += creation_bytes;
            }
            self.experiments.push(PlannedExperiment { name, trials: allotted.trials.len(), stage });
        }
        if self.verification.seconds > 0.0 {
            let limits = Limits {
                rounds: VERIFICATION_ROUNDS,
                write_rounds: VERIFICATION_ROUNDS,
                full_bytes_per_stream: None,
                ..self.limits(self.verification, config, ExperimentName::Order, None)
            };
            let allotted = allot(verify::trials(&self.site), limits);
            self.left_out.extend(allotted.left_out.iter().map(|text| verify::left_out_text(text)));
        }
    }

    /// All trials of `name`, without regard to budgets.
    pub(crate) fn trials(&self, target: &Target<'_>, config: &Config, name: ExperimentName) -> Trials {
        let backends: Vec<(usize, String)> = target
            .backends
            .iter()
            .enumerate()
            .filter(|(_, backend)| backend.device.is_ok())
            .map(|(index, backend)| (index, backend.name.clone()))
            .collect();
        let setting = Setting {
            site: &self.site,
            backends: &backends,
            location_groups: config.location_groups,
            can_grow: target.scratch.is_some(),
            seed: config.seed,
        };
        Trials::of(name, &setting)
    }

    /// Limits for [`allot`] on a drive of `bytes_per_second`, if that is known.
    pub(crate) fn limits(
        &self,
        stage: Stage,
        config: &Config,
        name: ExperimentName,
        bytes_per_second: Option<f64>,
    ) -> Limits {
        let full = matches!(name, ExperimentName::Order | ExperimentName::Parallel);
        Limits {
            seconds: stage.seconds,
            write_bytes: stage.write_bytes,
            bytes_per_second: bytes_per_second.unwrap_or(ASSUMED_BYTES_PER_SECOND),
            rounds: ROUNDS,
            write_rounds: ROUNDS,
            sustained_bytes_min: 0,
            full_bytes_per_stream: config.bytes_per_stream.filter(|_| full),
        }
    }

    /// Whether anything is written.
    pub fn writes(&self) -> bool {
        self.layout.write_bytes > 0
    }

    /// The most that will be written, `sustain` included.
    pub fn write_bytes(&self) -> u64 {
        let experiments: u64 = self.experiments.iter().map(|planned| planned.stage.write_bytes).sum();
        let sustain = self.sustain.map_or(0, |stage| stage.write_bytes);
        self.layout.write_bytes + experiments + self.verification.write_bytes + sustain
    }

    /// The time that it will take, `sustain` included.
    pub fn seconds(&self) -> f64 {
        let experiments: f64 = self.experiments.iter().map(|planned| planned.stage.seconds).sum();
        let sustain = self.sustain.map_or(0.0, |stage| stage.seconds);
        self.layout.seconds + experiments + self.verification.seconds + self.finishing_s + sustain
    }
}

pub(crate) const NO_WRITES: &str = "everything that writes: the target is read-only or the write budget below 16 MiB; parts of it that were \
                         never written may be answered without reaching the drive";

fn may_write(geometry: &Geometry, config: &Config) -> bool {
    geometry.writable && config.write_bytes >= Plan::WRITE_BYTES_MIN
}

/// The most space whose layout takes no more than half of the write budget, divided among the experiments.
fn site(geometry: &Geometry, config: &Config, writes: bool) -> Result<Site, Error> {
    let fills = config.precondition.fills();
    let most = geometry.capacity_bytes.min(config.region_bytes.unwrap_or(u64::MAX));
    let written = (config.write_bytes / 2 / fills).min(most);
    let bytes = if writes && !lies_ready(config) { written } else { most };
    if bytes < REGION_BYTES_MIN {
        return Err(Error::Argument(format!(
            "{} of scratch space is too little to measure on; give at least {} (a larger file, or a larger write budget)",
            bytes_text(bytes),
            bytes_text(REGION_BYTES_MIN)
        )));
    }
    let room_bytes = if config.request_size_region_bytes.is_some() { u64::MAX } else { written / 2 };
    let sizes = write_sizes(u64::from(geometry.offset_align_bytes).max(512), room_bytes).len() as u64;
    let request_size = match config.request_size_region_bytes {
        _ if !writes || !config.wants(ExperimentName::RequestSize) => 0,
        Some(each) => each.next_multiple_of(READ_BYTES).saturating_mul(sizes),
        // A quarter of the space, or up to half of it where regions would otherwise be too small.
        None => {
            let regions = (sizes * regions_per_size(sizes, written / 2)).max(1);
            let each = |divisor: u64| written / divisor / regions;
            each(4).max(each(2).min(REQUEST_SIZE_REGION_BYTES_MIN)).min(32 << 20) / READ_BYTES
                * READ_BYTES
                * regions
        }
    };
    let location = if writes && config.wants(ExperimentName::Location) { written / 4 } else { 0 };
    Ok(Site::divide(geometry, bytes, location, request_size))
}

/// Whether the main region need not be written before it is used.
fn lies_ready(config: &Config) -> bool {
    config.holds_data && config.precondition == Precondition::None
}

/// The part of the main region that is written before measuring: all of it, or enough to tell how fast the
/// drive writes.
pub(crate) fn main_layout(site: &Site, config: &Config) -> Region {
    match lies_ready(config) {
        true => Region {
            length_bytes: site.main.length_bytes.min(config.write_bytes / 16).min(SAMPLE_BYTES),
            ..site.main
        },
        false => site.main,
    }
}

/// Bytes that the layout writes: the main region as often as preconditioning asks, the others once.
fn layout_bytes(site: &Site, config: &Config) -> u64 {
    let others = site.location.length_bytes + site.request_size.length_bytes;
    site.main.length_bytes * (config.precondition.fills() - 1)
        + main_layout(site, config).length_bytes
        + others
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, trials: &str, stage: Stage| {
            let writes = if stage.write_bytes > 0 { bytes_text(stage.write_bytes) } else { "-".into() };
            writeln!(f, "  {name:<14} {trials:>7} {:>8.1} s {writes:>12}", stage.seconds)
        };
        writeln!(f, "  {:<14} {:>7} {:>10} {:>12}", "stage", "trials", "time", "writes up to")?;
        line(f, "layout", "", self.layout)?;
        for planned in &self.experiments {
            line(f, planned.name.as_str(), &planned.trials.to_string(), planned.stage)?;
        }
        line(f, "verification", "", self.verification)?;
        line(f, "fitting", "", Stage { seconds: self.finishing_s, write_bytes: 0 })?;
        if let Some(stage) = self.sustain {
            line(f, "sustain", "", stage)?;
        }
        let total = Stage { seconds: self.seconds(), write_bytes: self.write_bytes() };
        line(f, "total", "", total)
    }
}

#[cfg(test)]
mod tests;
