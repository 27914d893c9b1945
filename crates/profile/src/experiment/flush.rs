//! `flush`: the cost of a durable 4 KiB write, by each way to make it durable. The writes follow each other
//! on the device as those of a log do. In a directory they are also made to a file that grows, as logs of
//! many programs do, which has the file system write its own records as well.

use flashgrain_model::Workload;
use flashgrain_settings::SyncMethod;

use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::load::Sync;
use crate::schema::FlushPoint;
use crate::series::Series;
use crate::trial::{Place, Trial, Work};

/// Methods by name; when the budget is short they are dropped from the end.
fn methods(can_grow: bool) -> impl Iterator<Item = (&'static str, Sync, Place)> {
    let in_place = SyncMethod::ALL.into_iter().map(|method| (method.name(), method.into(), Place::Device));
    let growing = (FlushPoint::GROWING_FILE, Sync::WriteThenFdatasync, Place::GrowingFile);
    let plain = (FlushPoint::NO_FLUSH, Sync::None, Place::Device);
    in_place.chain([plain]).chain(can_grow.then_some(growing))
}

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let trials = methods(setting.can_grow).enumerate().map(|(rank, (name, sync, place))| {
        let workload = Workload {
            read_share: 0.0,
            request_bytes: setting.site.page_bytes as f64,
            random_share: 0.0,
            concurrency: 1.0,
        };
        let mut trial = Trial::load(ExperimentName::Flush, rank as u32, workload);
        trial.variant = Some(name.to_owned());
        if let Work::Load(load) = &mut trial.work {
            (load.sync, load.place) = (sync, place);
        }
        trial
    });
    Trials { trials: trials.collect(), left_out: Vec::new() }.that_fit(setting.site)
}

pub(super) fn points(series: &[&Series]) -> Vec<FlushPoint> {
    let point = |series: &&Series| {
        // One write at a time: the mean time of a repeat is the inverse of its rate.
        let means_us = || series.repeats.iter().map(|repeat| 1e6 / repeat.requests_per_second);
        let repeated = series.repeats.len() > 1;
        Some(FlushPoint {
            method: series.trial.variant.clone()?,
            latency: series.write_latency()?,
            mean_us_min: means_us().reduce(f64::min).filter(|_| repeated),
            mean_us_max: means_us().reduce(f64::max).filter(|_| repeated),
        })
    };
    series.iter().filter_map(point).collect()
}
