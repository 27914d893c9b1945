//! The experiments. Each one says which trials it wants, and turns their results into points of the profile.
//!
//! Trials of all experiments are run together, in an order that is drawn anew for each round (see
//! [`crate::run`]), so that a drive that warms up, throttles or is shared with others shows as noise and not
//! as a property of whichever experiment came last.

pub(crate) mod depth;
mod flush;
mod group_latency;
mod interface;
mod location;
mod mix;
mod order;
mod parallel;
pub(crate) mod request_size;
mod sequential;
mod size;
pub(crate) mod sustain;

use crate::config::ExperimentName;
use crate::schema::{Measurements, Point};
use crate::series::Series;
use crate::target::Site;
use crate::trial::Trial;

/// Properties of a run on which an experiment's trials depend.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub site: &'a Site,
    /// Backends that work here: index among the target's, and name.
    pub backends: &'a [(usize, String)],
    /// Offset groups that `location` looks at for each chunk size.
    pub location_groups: usize,
    /// Whether files that grow can be made.
    pub can_grow: bool,
    pub seed: u64,
}

/// Named trials, and reasons for those that are impossible.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    pub trials: Vec<Trial>,
    /// In words, for `Budget::left_out`.
    pub left_out: Vec<String>,
}

impl Trials {
    /// The trials of `name` on the regions that `setting` provides.
    pub(crate) fn of(name: ExperimentName, setting: &Setting<'_>) -> Self {
        match name {
            ExperimentName::Order => order::trials(setting),
            ExperimentName::Parallel => parallel::trials(setting),
            ExperimentName::Size => size::trials(setting),
            ExperimentName::Depth => depth::trials(setting),
            ExperimentName::Mix => mix::trials(setting),
            ExperimentName::Sequential => sequential::trials(setting),
            ExperimentName::Interface => interface::trials(setting),
            ExperimentName::Flush => flush::trials(setting),
            ExperimentName::RequestSize => request_size::trials(setting),
            ExperimentName::Location => location::trials(setting),
            // It runs by itself after all others: see `sustain`.
            ExperimentName::Sustain => Self::default(),
        }
    }

    /// Leaves out loads that the region cannot hold.
    fn that_fit(mut self, site: &Site) -> Self {
        let room = site.main.length_bytes as f64;
        let fits =
            |trial: &Trial| trial.workload().is_none_or(|workload| workload.request_bytes * 4.0 <= room);
        let (fit, too_large): (Vec<_>, Vec<_>) = self.trials.into_iter().partition(fits);
        self.trials = fit;
        if let Some(first) = too_large.first() {
            self.left_out.push(format!(
                "{}: {} trials whose requests are more than a quarter of the scratch region",
                first.experiment,
                too_large.len()
            ));
        }
        self
    }
}

/// Puts the results of an experiment where they belong.
pub(crate) fn record(name: ExperimentName, series: &[&Series], seed: u64, into: &mut Measurements) {
    match name {
        ExperimentName::Order => into.order = points(series),
        ExperimentName::Parallel => into.parallel = points(series),
        ExperimentName::Size => into.size = points(series),
        ExperimentName::Depth => into.depth = points(series),
        ExperimentName::Mix => into.mix = points(series),
        ExperimentName::Sequential => into.sequential = points(series),
        ExperimentName::Interface => into.interface = interface::points(series),
        ExperimentName::Flush => into.flush = flush::points(series),
        ExperimentName::RequestSize => into.request_size = request_size::points(series, seed),
        ExperimentName::Location => into.location = location::points(series, seed),
        ExperimentName::Sustain => {}
    }
}

fn points(series: &[&Series]) -> Vec<Point> {
    series.iter().filter_map(|series| series.point()).collect()
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::load::Region;

    /// A site with all regions, 512-byte alignment.
    pub(crate) fn site() -> Site {
        Site {
            align_bytes: 512,
            page_bytes: 4096,
            main: Region { offset_bytes: 0, length_bytes: 512 << 20 },
            location: Region { offset_bytes: 512 << 20, length_bytes: 128 << 20 },
            request_size: Region { offset_bytes: 640 << 20, length_bytes: 160 << 20 },
        }
    }

    /// The trials of `name` on [`site`].
    pub(crate) fn trials(name: ExperimentName) -> Trials {
        let backends = [(0, "io_uring".to_owned()), (2, "sync".to_owned())];
        Trials::of(
            name,
            &Setting { site: &site(), backends: &backends, location_groups: 16, can_grow: false, seed: 1 },
        )
    }
}
