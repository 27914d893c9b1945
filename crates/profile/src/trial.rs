//! A trial: the smallest thing that is run, repeated and randomised.

pub use flashgrain_device::bytes_text;
use flashgrain_model::{Access, Workload};

use crate::config::ExperimentName;
use crate::load::Sync;
use crate::schema::Regime;

/// One workload or sweep of one experiment. Each visit to it is a repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The experiment that the trial belongs to.
    pub experiment: ExperimentName,
    /// Distinguishes trials of equal workload, such as by the backend or the sync method.
    pub variant: Option<String>,
    /// The load or sweep.
    pub work: Work,
    /// Order of importance: when not all trials fit, small ranks stay. A grid's corners come first, then its
    /// halves, quarters...
    pub rank: u32,
    /// Time slice relative to the other trials of the experiment.
    pub weight: f64,
    /// In which state of the write cache it runs; `None` if that is all the same.
    pub regime: Option<Regime>,
}

/// Work of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A closed-loop load.
    Load(LoadWork),
    /// Single reads in random order over groups of places.
    Sweep(Sweep),
}

/// A closed-loop load on the main region.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadWork {
    /// Kind, size, order, streams.
    pub workload: Workload,
    /// How writes are made durable.
    pub sync: Sync,
    /// The place of the requests.
    pub place: Place,
    /// Requests after which a repeat ends even if its time slice has not.
    pub max_requests: Option<u64>,
}

/// The place of a load's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The device.
    Device,
    /// The device through another of the target's backends, by its index.
    Backend(usize),
    /// A new file in the directory of the device's, which each repeat begins empty and which grows with every
    /// write.
    GrowingFile,
}

/// Reads of one length, one at a time, at places drawn from several groups in random order, so that drift of
/// the drive meets all groups alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Length of each read.
    pub length_bytes: u32,
    /// Places to read.
    pub groups: Vec<Group>,
}

/// Places that belong together: `count` of them from `first_bytes` on, `stride_bytes` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Distinguishes the group: by the write request size, or by the offset into a chunk.
    pub label: u64,
    /// Offset of the first place.
    pub first_bytes: u64,
    /// Distance between places.
    pub stride_bytes: u64,
    /// Places.
    pub count: u64,
}

impl Trial {
    pub(crate) fn load(experiment: ExperimentName, rank: u32, workload: Workload) -> Self {
        let work = LoadWork { workload, sync: Sync::None, place: Place::Device, max_requests: None };
        Self { experiment, variant: None, work: Work::Load(work), rank, weight: 1.0, regime: None }
    }

    /// The workload, for loads.
    pub fn workload(&self) -> Option<&Workload> {
        match &self.work {
            Work::Load(load) => Some(&load.workload),
            Work::Sweep(_) => None,
        }
    }

    /// Bytes that are in flight together: the least that a repeat moves.
    pub fn in_flight_bytes(&self) -> u64 {
        match &self.work {
            Work::Load(load) => (load.workload.request_bytes * load.workload.concurrency) as u64,
            Work::Sweep(sweep) => u64::from(sweep.length_bytes),
        }
    }

    /// Share of the bytes that are written.
    pub fn write_share(&self) -> f64 {
        self.workload().map_or(0.0, |workload| 1.0 - workload.read_share)
    }

    /// For messages, such as `order: 4 KiB writes by 8 streams`.
    pub fn describe(&self) -> String {
        let what = match &self.work {
            Work::Load(load) => describe_workload(&load.workload),
            Work::Sweep(sweep) => {
                format!(
                    "{} reads at {} groups of places",
                    bytes_text(u64::from(sweep.length_bytes)),
                    sweep.groups.len()
                )
            }
        };
        let variant = self.variant.as_deref().or(self.regime.map(Regime::as_str));
        match variant {
            Some(variant) => format!("{}: {what}, {variant}", self.experiment),
            None => format!("{}: {what}", self.experiment),
        }
    }
}

/// Such as `4 KiB random reads by 8 streams` or `16 KiB 50 % random writes by 1 stream`.
pub fn describe_workload(workload: &Workload) -> String {
    let percent = |share: f64| format!("{} %", (share * 1000.0).round() / 10.0);
    let kind = match workload.access() {
        Some(Access::Read) => "reads".to_owned(),
        Some(Access::Write) => "writes".to_owned(),
        None => format!("{} reads", percent(workload.read_share)),
    };
    let order = if workload.random_share >= 1.0 {
        "random".to_owned()
    } else if workload.random_share <= 0.0 {
        "sequential".to_owned()
    } else {
        format!("{} random", percent(workload.random_share))
    };
    let streams = if workload.concurrency == 1.0 { "stream" } else { "streams" };
    format!(
        "{} {order} {kind} by {} {streams}",
        bytes_text(workload.request_bytes as u64),
        workload.concurrency
    )
}

/// How coarse a grid has to be to hold `index` of `count`: 0 for both ends, 1 for the middle, 2 for the
/// quarters...
pub(crate) fn grid_level(index: usize, count: usize) -> u32 {
    let (mut low, mut high) = (0, count.saturating_sub(1));
    if index == low || index >= high {
        return 0;
    }
    let mut level = 1;
    loop {
        let middle = low.midpoint(high);
        if index == middle {
            return level;
        }
        if index < middle {
            high = middle;
        } else {
            low = middle;
        }
        level += 1;
    }
}

/// Powers of two from `first` to `last`, both included.
pub(crate) fn doublings(first: u64, last: u64) -> Vec<u64> {
    std::iter::successors(Some(first), |value| value.checked_mul(2))
        .take_while(|value| *value <= last)
        .collect()
}

/// The first doubling that is missing between the smallest and the largest of these sizes: trials of a coarse
/// grid are no neighbours.
pub(crate) fn missing_doubling(sizes: &[u64]) -> Option<u64> {
    let (first, last) = (*sizes.iter().min()?, *sizes.iter().max()?);
    doublings(first, last).into_iter().find(|bytes| !sizes.contains(bytes))
}

/// The doublings, and between each and the next those that are 5/4 and 3/2 of it, as far as they are
/// multiples of `unit`.
pub(crate) fn doublings_and_between(first: u64, last: u64, unit: u64) -> Vec<u64> {
    let between = |bytes: &u64| [bytes + bytes / 4, bytes + bytes / 2];
    let mut sizes = doublings(first, last);
    let others: Vec<u64> =
        sizes.iter().flat_map(between).filter(|bytes| *bytes <= last && bytes.is_multiple_of(unit)).collect();
    sizes.extend(others);
    sizes.sort_unstable();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_between_doublings_are_whole_units() {
        assert_eq!(doublings_and_between(4, 32, 4), [4, 8, 12, 16, 20, 24, 32]);
        assert_eq!(doublings_and_between(1, 16, 4), [1, 2, 4, 8, 12, 16]);
    }

    #[test]
    fn grid_levels_refine_from_the_ends() {
        let levels: Vec<u32> = (0..9).map(|index| grid_level(index, 9)).collect();
        assert_eq!(levels, [0, 3, 2, 3, 1, 3, 2, 3, 0]);
        assert_eq!((0..2).map(|index| grid_level(index, 2)).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(grid_level(0, 1), 0);
    }

    #[test]
    fn bytes_read_well() {
        assert_eq!(bytes_text(512), "512 B");
        assert_eq!(bytes_text(4096), "4 KiB");
        assert_eq!(bytes_text(409_600), "400 KiB");
        assert_eq!(bytes_text((1 << 20) + (1 << 19)), "1.5 MiB");
    }

    #[test]
    fn a_coarse_grid_lacks_doublings() {
        assert_eq!(missing_doubling(&[4, 8, 12, 16]), None);
        assert_eq!(missing_doubling(&[32, 4, 16]), Some(8));
        assert_eq!(missing_doubling(&[]), None);
    }

    #[test]
    fn doublings_include_both_ends() {
        assert_eq!(doublings(1, 8), [1, 2, 4, 8]);
        assert_eq!(doublings(512, 3000), [512, 1024, 2048]);
        assert!(doublings(8, 4).is_empty());
    }
}
