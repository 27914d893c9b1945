//! `interface`: the kernel's interfaces side by side (NVMe paper §2.4).

use flashgrain_model::{Access, Workload};

use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::schema::InterfacePoint;
use crate::series::Series;
use crate::trial::{Place, Trial, Work, grid_level};

const DEPTHS: [u32; 3] = [1, 32, 128];

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let mut found = Trials::default();
    for (backend, name) in setting.backends {
        for (index, depth) in DEPTHS.into_iter().enumerate() {
            let workload = Workload::random(Access::Read, setting.site.page_bytes as f64, f64::from(depth));
            let mut trial = Trial::load(ExperimentName::Interface, grid_level(index, DEPTHS.len()), workload);
            trial.variant = Some(name.clone());
            if let Work::Load(load) = &mut trial.work {
                load.place = Place::Backend(*backend);
            }
            found.trials.push(trial);
        }
    }
    if setting.backends.is_empty() {
        found.left_out.push("interface: the target is reached in one way only".into());
    }
    found.that_fit(setting.site)
}

pub(super) fn points(series: &[&Series]) -> Vec<InterfacePoint> {
    let point = |series: &&Series| {
        Some(InterfacePoint { backend: series.trial.variant.clone()?, point: series.point()? })
    };
    series.iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing;

    #[test]
    fn each_backend_runs_at_each_depth() {
        let found = testing::trials(ExperimentName::Interface);
        assert_eq!(found.trials.len(), 2 * 3);
        let sync: Vec<_> =
            found.trials.iter().filter(|trial| trial.variant.as_deref() == Some("sync")).collect();
        assert!(
            sync.iter()
                .all(|trial| matches!(&trial.work, Work::Load(load) if load.place == Place::Backend(2)))
        );
        assert_eq!(sync.len(), 3);
    }
}
